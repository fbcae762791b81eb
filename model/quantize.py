"""The int8 network: smoothed with the maxima that calibration texts reach, then quantised.

ONNX Runtime quantises the input of a linear layer with one scale for the whole tensor, so one large channel costs all others
their precision, and this network has such channels. Before its weights are quantised each is therefore made smaller, and the
weights that read it larger (SmoothQuant, https://arxiv.org/abs/2211.10438).

A processor without VNNI multiplies unsigned by signed bytes in pairs and adds the two in 16 bits, which saturate. The weights are
scaled so that no pair can, whatever the input: the integer results are the same on every processor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from graph import EPSILON, HEADS, HIDDEN, LAYERS, MICROSOFT, Graph

if TYPE_CHECKING:
    import numpy as np

    from graph import Weights

    Array = np.ndarray[Any, Any]
    # For each layer's inputs "qkv", "up" and "down": the largest absolute value of each channel.
    Peaks = dict[tuple[int, str], Array]

# How much of the difficulty goes from a layer normalisation's output into the weights.
STRENGTH = 0.7
# What a channel of the activation function's output is cut down to.
CEILING = 4.0
# The largest byte of a weight, and of a pair of weights of the same sign: rounding may add 1 to a pair, and 255 * 128 < 2 ** 15.
LARGEST = 127


# --- Calibration ------------------------------------------------------------------------------------------------------------


def measure(weights: Weights, texts: Iterable[list[int]]) -> Peaks:
    """The peaks over tokenised texts. In double precision: after rounding, every machine gets the same."""
    import numpy as np

    double = {name: values.astype("f8") for name, values in weights.items()}
    peaks: Peaks = {}

    def linear(name: str, x: Array) -> Array:
        return x @ double[f"{name}.weight"].T + double[f"{name}.bias"]

    def norm(name: str, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
        return scaled * double[f"{name}.weight"] + double[f"{name}.bias"]

    def heads(x: Array) -> Array:
        return np.ascontiguousarray(x.reshape(len(x), HEADS, -1).transpose(1, 0, 2))  # Many times faster to multiply.

    def watch(layer: int, kind: str, x: Array) -> Array:
        peaks[layer, kind] = np.maximum(peaks.get((layer, kind), 0.0), np.abs(x).max(0))
        return x

    for ids in texts:
        x = double["embeddings.word_embeddings.weight"][ids]
        x = x + double["embeddings.position_embeddings.weight"][: len(ids)] + double["embeddings.token_type_embeddings.weight"][0]
        x = norm("embeddings.LayerNorm", x)
        for layer in range(LAYERS):
            prefix = f"encoder.layer.{layer}"
            watch(layer, "qkv", x)
            query, key, value = (heads(linear(f"{prefix}.attention.self.{name}", x)) for name in ("query", "key", "value"))
            scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            context = (shares / shares.sum(-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(x.shape)
            x = norm(f"{prefix}.attention.output.LayerNorm", x + linear(f"{prefix}.attention.output.dense", context))
            watch(layer, "up", x)
            inner = linear(f"{prefix}.intermediate.dense", x)
            # The approximation of Gelu without erf, which numpy lacks.
            inner = inner / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner * inner * inner)))
            watch(layer, "down", inner)
            x = norm(f"{prefix}.output.LayerNorm", x + linear(f"{prefix}.output.dense", inner))
    return peaks


# --- Numbers ----------------------------------------------------------------------------------------------------------------


def rounded(factors: Array) -> Array:
    """To quarters of an octave: the last bits of a measurement must not show."""
    import numpy as np

    return np.exp2(np.rint(np.log2(factors) * 4) / 4)


def smoothing(peaks: Array, weight: Array) -> Array:
    """By what to divide each input channel of `weight` ([in, out]) and multiply its row, around 1."""
    import numpy as np

    factors = peaks**STRENGTH / np.abs(weight).max(1) ** (1 - STRENGTH)
    return rounded(factors / np.median(factors))


def spread(weight: Array, factors: Array) -> tuple[Array, list[int]]:
    """Rows of `weight` times `factors`, none larger than the unscaled rows allow, and the input channel of each.

    A scaled row that would coarsen the scale of its columns is cut into a sum of rows, all for the same channel.
    """
    import numpy as np

    limit = np.abs(weight[factors == 1]).max(0)
    rows, channels = list(weight), list(range(len(weight)))
    for channel in np.flatnonzero(factors != 1).tolist():
        rest = weight[channel] * factors[channel]
        rows[channel] = np.clip(rest, -limit, limit)
        rest = rest - rows[channel]
        while rest.any():
            rows.append(np.clip(rest, -limit, limit))
            channels.append(channel)
            rest = rest - rows[-1]
    return np.array(rows), channels


def quantized(weight: Array) -> tuple[Array, Array]:
    """Signed bytes and a scale for each column of `weight` ([in, out]), such that no pair of products saturates."""
    import numpy as np

    padded = np.pad(weight, ((0, len(weight) % 2), (0, 0)))
    largest = np.max([(part[::2] + part[1::2]).max(0) for part in (padded.clip(0), (-padded).clip(0))], 0)
    scale = (largest / LARGEST).astype("f4")  # At least as large as the largest single weight.
    return np.rint(weight / scale).astype("i1"), scale


# --- The graph --------------------------------------------------------------------------------------------------------------


class QuantizedGraph(Graph):
    """The encoder with int8 tables and linear layers, for one text at a time: there is nothing to mask."""

    def __init__(self, weights: Weights, peaks: Peaks) -> None:
        super().__init__(weights)
        self.peaks = peaks

    def quantized_linear(self, name: str, x: str, weight: Array, bias: Array) -> str:
        """`x @ weight + bias` with int8 weights, `x` quantised on the way."""
        values, scale = self.weight_and_scale(name, weight)
        bias_name = self.constant(f"{name}.bias", bias)
        return self.node("DynamicQuantizeMatMul", name, x, values, scale, "", bias_name, domain=MICROSOFT)

    def weight_and_scale(self, name: str, weight: Array) -> tuple[str, str]:
        """Adds the quantised weight and its scales, and returns their names."""
        values, scale = quantized(weight)
        return self.constant(f"{name}.weight", values, "i1"), self.constant(f"{name}.scale", scale)

    def divided(self, name: str, x: str, factors: Array) -> str:
        """`x` with each channel divided by its factor."""
        return self.node("Mul", name, x, self.constant(f"{name}.factors", 1 / factors))

    def embeddings(self) -> str:
        """Word and position embeddings, added. The words' are int8 with a scale for each; all tokens are of type 0."""
        import numpy as np

        table = self.weights["embeddings.word_embeddings.weight"].astype("f8")
        scales = np.abs(table).max(1, keepdims=True) / LARGEST
        words = self.node("Gather", "word.int8", self.constant("word.table", np.rint(table / scales), "i1"), "input_ids")
        words = self.node("Cast", "word.float", words, to=1)
        scales = self.node("Gather", "word.scale", self.constant("word.scales", scales), "input_ids")
        words = self.node("Mul", "word", words, scales)
        positions = self.weights["embeddings.position_embeddings.weight"]
        positions = positions + self.weights["embeddings.token_type_embeddings.weight"][0]
        length = self.node("Shape", "length", "input_ids", start=1, end=2)
        positions = self.node("Slice", "position", self.constant("position.table", positions), self.ints(0), length, self.ints(0))
        return self.node("Add", "embeddings", words, positions)

    def double(self, name: str) -> Array:
        """The weights called `name` in double precision; matrices as [in, out]."""
        return self.weights[name].astype("f8").T

    def quantized_attention(self, layer: int, x: str) -> str:
        """Multi-head attention with its output projection. Queries, keys and values come from one product; scores stay fp32."""
        import numpy as np

        prefix = f"encoder.layer.{layer}"
        names = [f"{prefix}.attention.self.{name}" for name in ("query", "key", "value")]
        weight = np.concatenate([self.double(f"{name}.weight") for name in names], 1)
        factors = smoothing(self.peaks[layer, "qkv"], weight)
        # The bias of the keys has no effect, that of the values is in the output's: see `Graph.attention`.
        bias = np.concatenate([self.double(f"{names[0]}.bias"), np.zeros(2 * HIDDEN)])

        name = f"{prefix}.attention"
        inputs = [f"{name}.int8", f"{name}.int8.scale", f"{name}.int8.zero"]
        self.node("DynamicQuantizeLinear", inputs[0], self.divided(f"{name}.input", x, factors))
        self.nodes[-1].output.extend(inputs[1:])
        values, scale = self.weight_and_scale(name, weight * factors[:, None])
        bias_name = self.constant(f"{name}.bias", bias)
        zero = self.constant("zero", 0, "i1")
        arguments = (inputs[0], values, bias_name, inputs[1], scale, "", inputs[2], zero)
        context = self.node("QAttention", name, *arguments, domain=MICROSOFT, num_heads=HEADS)
        output = f"{name}.output"
        return self.quantized_linear(output, context, self.double(f"{output}.dense.weight"), self.output_bias(prefix))

    def feed_forward(self, layer: int, x: str) -> str:
        """The two dense layers and the activation function between them."""
        import numpy as np

        prefix = f"encoder.layer.{layer}"
        up, down = (self.double(f"{prefix}.{name}.dense.weight") for name in ("intermediate", "output"))
        bias = self.double(f"{prefix}.intermediate.dense.bias")
        factors = smoothing(self.peaks[layer, "up"], up)
        cuts = np.maximum(1, rounded(self.peaks[layer, "down"] / CEILING))
        down, channels = spread(down, cuts)
        x = self.divided(f"{prefix}.intermediate.input", x, factors)
        inner = self.quantized_linear(f"{prefix}.intermediate", x, (up * factors[:, None])[:, channels], bias[channels])
        inner = self.divided(f"{prefix}.output.input", self.node("Gelu", f"{prefix}.gelu", inner), cuts[channels])
        return self.quantized_linear(f"{prefix}.output", inner, down, self.double(f"{prefix}.output.dense.bias"))

    def encoder(self) -> None:
        """The whole network."""
        x = self.norm("embeddings.LayerNorm", self.embeddings())
        for layer in range(LAYERS):
            prefix = f"encoder.layer.{layer}"
            attended = self.node("Add", f"{prefix}.attended", self.quantized_attention(layer, x), x)
            x = self.norm(f"{prefix}.attention.output.LayerNorm", attended)
            transformed = self.node("Add", f"{prefix}.transformed", self.feed_forward(layer, x), x)
            x = self.norm(f"{prefix}.output.LayerNorm", transformed)
        self.nodes[-1].output[0] = "last_hidden_state"


def build_model(weights: Weights, peaks: Peaks, source: str) -> bytes:
    """The int8 model as an ONNX file; `source` says where the weights are from."""
    graph = QuantizedGraph(weights, peaks)
    graph.encoder()
    return graph.serialize(("input_ids",), source.format(dtype="int8"))
