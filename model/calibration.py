"""The texts that the int8 model is calibrated with: prose, and what stretches the layers more than prose does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PROSE = Path(__file__).resolve().parent / "calibration.txt"
VOCABULARY = 30522
# Of control, Latin to symbols, Chinese, and emoji: where random characters are from.
PLANES = ((32, 126), (0xA0, 0x2FFF), (0x4E00, 0x9FFF), (0x1F300, 0x1F6FF))


def prose() -> list[str]:
    """The texts of calibration.txt."""
    return PROSE.read_text("utf-8").rstrip("\n").split("\n-----\n")


def varied(words: list[str]) -> list[str]:
    """Texts that are no prose."""
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


def calibration(encode: Callable[[str], list[int]]) -> list[list[int]]:
    """The token ids of all texts for calibration; `encode` cuts a text at the model's limit."""
    texts = prose()
    words = "\n-----\n".join(texts).split()
    return [*map(encode, [*texts, *varied(words)]), *tokens(11, 12)]


def write_ids(path: Path, texts: list[list[int]]) -> None:
    """Writes token ids, a line for each text, as the encoder's programs read them."""
    path.write_text("".join(" ".join(map(str, ids)) + "\n" for ids in texts), "ascii")
