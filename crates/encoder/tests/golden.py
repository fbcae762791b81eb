#!/usr/bin/env python3
"""Writes golden.json: the embeddings that ONNX Runtime computes, in single precision, for a few texts of 1 to 512 tokens.

    model/.venv/bin/python crates/encoder/tests/golden.py

reads the package that model/build.py has built. The tests of the encoder are held to this file, so they need no ONNX Runtime.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

HERE = Path(__file__).resolve().parent
MODEL = HERE.parents[2] / "npm" / "all-minilm-l6-v2"
TEXTS = (
    "This is an example sentence",
    "Gib mir bitte die Rechnung für Zimmer 12, naïve café 東京",
    "The reservation ZFA04Y cannot be changed: basic economy flights are final. " * 3,
    'call: {"tool": "search", "arguments": {"query": "capital of Burkina Faso", "limit": 10}}\n' * 7,
    "Observation: no results found.\n" * 40,
    "0123456789 " * 180,
)


def embed(session: onnxruntime.InferenceSession, ids: list[int]) -> list[float]:
    """The mean of the last states, rounded, at length one, rounded."""
    feeds = {"input_ids": [ids], "attention_mask": [[1] * len(ids)], "token_type_ids": [[0] * len(ids)]}
    (states,) = session.run(["last_hidden_state"], {name: np.array(value, "i8") for name, value in feeds.items()})
    mean = states[0].astype("f8").mean(0).astype("f4").astype("f8")
    return [float(x) for x in (mean / np.sqrt((mean**2).sum())).astype("f4")]


def main() -> None:
    """Writes the file."""
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    session = onnxruntime.InferenceSession(str(MODEL / "model.onnx"), providers=["CPUExecutionProvider"])
    inputs = [[101], [101, 102], *(tokenizer.encode(text).ids[:512] for text in TEXTS)]
    lines = [json.dumps({"tokens": ids, "embedding": embed(session, ids)}) for ids in inputs]
    (HERE / "golden.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
    print([len(ids) for ids in inputs])


if __name__ == "__main__":
    main()
