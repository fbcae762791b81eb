"""The proof: ONNX Runtime runs what was built, and it must say what is known."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph import HIDDEN, POSITIONS

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

EXAMPLE = "This is an example sentence"
PUBLISHED = (0.0676569, 0.0634959, 0.0487131, 0.0793050, 0.0374480, 0.0026528, 0.0393750, -0.0070984)
PUBLISHED_TOLERANCE = 2e-6
SIMILAR = ("How do I reset my password?", "I forgot my password and need a new one.")
UNRELATED = "The volcano erupted at dawn."
# Cosines of an int8 embedding with the fp32 one, for a single text and on average. Measured: at least 0.9935, for a text of
# three tokens, and 0.9989.
CLOSE, CLOSE_ON_AVERAGE = 0.99, 0.997


class BuildError(Exception):
    """The package cannot be built, or is not what it must be."""


class Tokenizer:
    """The official tokenizer; it cuts texts where the SDK's does, after the special tokens are added."""

    def __init__(self, path: Path) -> None:
        import tokenizers

        self.tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def encode(self, text: str) -> list[int]:
        """The token numbers of `text`."""
        ids: list[int] = self.tokenizer.encode(text).ids
        return ids[:POSITIONS]


class Embedder:
    """A model in ONNX Runtime."""

    def __init__(self, model: Path, tokenizer: Tokenizer) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(2, os.cpu_count() or 1)
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name for value in self.session.get_inputs()}
        self.tokenizer = tokenizer

    def run(self, ids: Array, mask: Array) -> Array:
        """The embeddings of token numbers, [batch, sequence], of which `mask` tells the real ones."""
        import numpy as np

        values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self.session.run(["last_hidden_state"], {name: values[name] for name in self.inputs})[0]
        if hidden.shape != (*ids.shape, HIDDEN) or hidden.dtype != np.float32:
            raise BuildError(f"last_hidden_state is {hidden.dtype} {hidden.shape}, expected float32 {(*ids.shape, HIDDEN)}")
        pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    def embed(self, *texts: str) -> Array:
        """The embeddings of texts, in one batch."""
        import numpy as np

        encoded = [self.tokenizer.encode(text) for text in texts]
        ids = np.zeros((len(texts), max(map(len, encoded))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(encoded):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        return self.run(ids, mask)


def check_embedder(embedder: Embedder) -> None:
    """What holds for every model."""
    import numpy as np

    first, second, other = (embedder.embed(text)[0] for text in (*SIMILAR, UNRELATED))
    if not first @ second > first @ other:
        raise BuildError(f"similar texts have cosine {first @ second:.4f}, unrelated ones {first @ other:.4f}")

    longest = np.full((1, POSITIONS), 2000, np.int64)
    if not np.isfinite(embedder.run(longest, np.ones_like(longest))).all():
        raise BuildError(f"{POSITIONS} tokens give values that are not finite")


def check_fp32(model: Path, tokenizer: Tokenizer) -> Embedder:
    """Compares the fp32 model's embeddings with the published ones."""
    import numpy as np

    embedder = Embedder(model, tokenizer)
    example = embedder.embed(EXAMPLE)[0]
    for index, published in enumerate(PUBLISHED):
        if not abs(example[index] - published) <= PUBLISHED_TOLERANCE:
            raise BuildError(f'value {index} of "{EXAMPLE}" is {example[index]:.7f}, published is {published:.7f}')
    check_embedder(embedder)

    texts = (EXAMPLE, *SIMILAR, UNRELATED)
    difference = np.abs(embedder.embed(*texts) - [embedder.embed(text)[0] for text in texts]).max()
    if not difference <= 1e-5:
        raise BuildError(f"padding in a batch moves an embedding by {difference:.1e}")
    return embedder


def check_q8(model: Path, reference: Embedder, texts: list[str]) -> str:
    """Compares the int8 model's embeddings with those of the fp32 model, and says how close they are."""
    embedder = Embedder(model, reference.tokenizer)
    check_embedder(embedder)
    cosines = [float(embedder.embed(text)[0] @ reference.embed(text)[0]) for text in (EXAMPLE, *texts)]
    lowest, average = min(cosines), sum(cosines) / len(cosines)
    result = f"cosines with fp32: {cosines[0]:.4f} for the example, {average:.4f} on average, at least {lowest:.4f}"
    if not (lowest >= CLOSE and average >= CLOSE_ON_AVERAGE):
        raise BuildError(f"{result}; expected {CLOSE_ON_AVERAGE} on average, at least {CLOSE}")
    return result
