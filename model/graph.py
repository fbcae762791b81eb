"""The network as ONNX graphs whose weights lie in a safetensors file beside them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # The up-to-date check must stay fast: numpy and onnx are imported where they are used.
    import onnx

LAYERS, HEADS, HEAD_SIZE, HIDDEN, POSITIONS = 6, 12, 32, 384, 512
EPSILON = 1e-12
# What a masked key loses before the softmax: exp(-10000) is exactly 0, and it is finite, so that an all-masked row is no NaN.
MASK_PENALTY = 10_000.0
# The least step between two bytes. A row of inputs that are all the same would have 0, and be divided by it.
SMALLEST_STEP = 1e-30
# Pinned, not the library's newest: both load in every ONNX Runtime since 1.17, and the bytes do not depend on onnx's version.
OPSET, IR_VERSION = 20, 9
MICROSOFT = "com.microsoft"


class Tensor(NamedTuple):
    """Where a safetensors file holds a tensor: `begin` and `length` are bytes, counted from the file's first."""

    dtype: str
    shape: list[int]
    begin: int
    length: int


def read_header(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file by name, and its metadata: a length, a JSON header, then the raw values."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = Tensor(entry["dtype"], entry["shape"], 8 + length + begin, end - begin)
    return tensors, metadata


class Graph:
    """The BERT encoder as ONNX nodes, shaped for the least work on a CPU. A node is known by the name of its output.

    Weights are what the safetensors file holds, as [out, in]. What a layer wants to be different is written as nodes that have
    constants alone for inputs, such as a transposition: ONNX Runtime computes these once, when it makes a session.
    """

    INPUTS: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids")
    # Tensors of the file that the graph does without: the positions are counted, sentence embeddings use no pooler, and the bias of
    # the keys changes nothing; see `attention`.
    UNUSED = re.compile(r"embeddings\.position_ids|pooler\..*|.*\.key\.bias")

    def __init__(self, weights: Path) -> None:
        self.file = weights.name
        self.tensors, _ = read_header(weights)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}

    def node(self, op: str, name: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node and returns the name of its output."""
        from onnx import helper

        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def constant(self, name: str, values: Any, dtype: str = "<f4") -> str:
        """Adds an initializer with these values, once per name, and returns the name."""
        import numpy as np
        from onnx import numpy_helper

        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(values, dtype), name)
        return name

    def ints(self, *values: int) -> str:
        """A one-dimensional integer constant: axes, shapes."""
        return self.constant("ints." + ".".join(map(str, values)), values, "<i8")

    def weight(self, name: str) -> str:
        """Adds the tensor of this name in the file as an initializer, once, and returns the name."""
        import onnx

        if name not in self.initializers:
            found = self.tensors[name]
            types = {"F32": onnx.TensorProto.FLOAT, "I8": onnx.TensorProto.INT8}
            tensor = onnx.TensorProto(name=name, dims=found.shape, data_type=types[found.dtype])
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", self.file), ("offset", found.begin), ("length", found.length)):
                tensor.external_data.add(key=key, value=str(value))
            self.initializers[name] = tensor
        return name

    def transposed(self, name: str) -> str:
        """The weight of the linear layer called `name`, as [in, out]."""
        return self.node("Transpose", f"{name}.transposed", self.weight(f"{name}.weight"), perm=[1, 0])

    def norm(self, name: str, x: str) -> str:
        """Layer normalisation with the weights called `name`."""
        weight, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node("LayerNormalization", name, x, weight, bias, axis=-1, epsilon=EPSILON)

    def dense(self, name: str, x: str) -> str:
        """A linear layer with the weights called `name`."""
        product = self.node("MatMul", f"{name}.matmul", x, self.transposed(name))
        return self.node("Add", name, product, self.weight(f"{name}.bias"))

    def positions(self, table: str) -> str:
        """The first rows of `table`, as many as there are tokens."""
        length = self.node("Shape", "length", "input_ids", start=1, end=2)
        return self.node("Slice", "position", table, self.ints(0), length, self.ints(0))

    def embeddings(self) -> str:
        """Word, token type and position embeddings, added and normalised."""

        def gather(kind: str, ids: str) -> str:
            return self.node("Gather", kind, self.weight(f"embeddings.{kind}_embeddings.weight"), ids)

        words = self.node("Add", "words", gather("word", "input_ids"), gather("token_type", "token_type_ids"))
        positions = self.positions(self.weight("embeddings.position_embeddings.weight"))
        return self.norm("embeddings.LayerNorm", self.node("Add", "embeddings", words, positions))

    def mask(self) -> str:
        """What is added to every layer's keys: [batch, sequence, heads * (head size + 1)]. See `attention`."""
        import numpy as np
        from onnx import TensorProto

        mask = self.node("Cast", "mask.float", "attention_mask", to=TensorProto.FLOAT)
        masked = self.node("Sub", "mask.inverted", self.constant("one", 1.0), mask)
        penalty = self.node("Mul", "mask.penalty", masked, self.constant("penalty", -MASK_PENALTY))
        column = np.zeros((HEADS, HEAD_SIZE + 1), "f4")
        column[:, -1] = 1
        penalty = self.node("Unsqueeze", "mask.column", penalty, self.ints(2))
        return self.node("Mul", "mask", penalty, self.constant("mask.columns", column.ravel()))

    def widened(self, name: str, constant: str, extra: float) -> str:
        """`constant` with the number `extra` after those of each head, in its last axis."""
        filling = self.constant(f"extra.{extra}", extra)
        heads = self.node("Reshape", f"{name}.heads", constant, self.ints(-1, HEADS, HEAD_SIZE))
        padded = self.node("Pad", f"{name}.padded", heads, self.ints(0, 0, 0, 0, 0, 1), filling)
        return self.node("Reshape", f"{name}.widened", padded, self.ints(-1, HEADS * (HEAD_SIZE + 1)))

    def attention(self, prefix: str, x: str, mask: str) -> str:
        """Multi-head attention with its output projection.

        Exact rewritings keep large intermediate results from being touched more often than necessary:
        - the scale 1/sqrt(head size) is part of the query's weights;
        - the bias of the keys adds the same to all scores of a row, which softmax ignores: it is left out;
        - the rows of the softmax sum to 1, so the bias of the values goes through unchanged, into the output's bias;
        - the mask is an extra dimension of each head, 1 in the queries and the penalty in the keys: the product of the two adds
          it to the scores for next to nothing, where an addition would walk through [batch, heads, sequence, sequence] again.
        """
        query, key, value = (f"{prefix}.attention.self.{name}" for name in ("query", "key", "value"))
        scale = self.constant("scale", 1 / math.sqrt(HEAD_SIZE))

        weight = self.node("Mul", f"{query}.scaled", self.transposed(query), scale)
        weight = self.widened(f"{query}.weight", weight, 0.0)
        bias = self.node("Mul", f"{query}.bias.scaled", self.weight(f"{query}.bias"), scale)
        bias = self.widened(f"{query}.bias", bias, 1.0)
        queries = self.node("Add", query, self.node("MatMul", f"{query}.matmul", x, weight), bias)
        weight = self.widened(f"{key}.weight", self.transposed(key), 0.0)
        keys = self.node("Add", key, self.node("MatMul", f"{key}.matmul", x, weight), mask)
        values = self.node("MatMul", value, x, self.transposed(value))

        def heads(name: str, size: int, perm: list[int]) -> str:
            split = self.node("Reshape", f"{name}.by_head", name, self.ints(0, 0, HEADS, size))
            return self.node("Transpose", f"{name}.head_first", split, perm=perm)

        queries = heads(queries, HEAD_SIZE + 1, [0, 2, 1, 3])
        keys = heads(keys, HEAD_SIZE + 1, [0, 2, 3, 1])
        values = heads(values, HEAD_SIZE, [0, 2, 1, 3])
        scores = self.node("MatMul", f"{prefix}.scores", queries, keys)
        shares = self.node("Softmax", f"{prefix}.shares", scores, axis=-1)
        context = self.node("MatMul", f"{prefix}.context", shares, values)
        context = self.node("Transpose", f"{prefix}.context.transposed", context, perm=[0, 2, 1, 3])
        context = self.node("Reshape", f"{prefix}.context.joined", context, self.ints(0, 0, HIDDEN))

        output = f"{prefix}.attention.output.dense"
        bias = self.node("MatMul", f"{output}.of_value", self.weight(f"{output}.weight"), self.weight(f"{value}.bias"))
        bias = self.node("Add", f"{output}.both", bias, self.weight(f"{output}.bias"))
        product = self.node("MatMul", f"{output}.matmul", context, self.transposed(output))
        return self.node("Add", output, product, bias)

    def layers(self) -> None:
        """The whole network."""
        x, mask = self.embeddings(), self.mask()
        for layer in range(LAYERS):
            prefix = f"encoder.layer.{layer}"
            attended = self.node("Add", f"{prefix}.attended", self.attention(prefix, x, mask), x)
            x = self.norm(f"{prefix}.attention.output.LayerNorm", attended)
            inner = self.node("Gelu", f"{prefix}.gelu", self.dense(f"{prefix}.intermediate.dense", x))
            transformed = self.node("Add", f"{prefix}.transformed", self.dense(f"{prefix}.output.dense", inner), x)
            x = self.norm(f"{prefix}.output.LayerNorm", transformed)

    def write(self, path: Path, description: str) -> None:
        """Writes the ONNX file, which belongs beside the file of the weights."""
        import onnx
        from onnx import helper

        self.layers()
        self.nodes[-1].output[0] = "last_hidden_state"
        unused = [name for name in self.tensors if name not in self.initializers and not self.UNUSED.fullmatch(name)]
        if unused:
            # Whoever writes more into the file means something by it.
            raise ValueError(f"the graph does not use {', '.join(unused)} of {self.file}")
        integer, floating = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
        proto = helper.make_graph(
            self.nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info(name, integer, ["batch", "sequence"]) for name in self.INPUTS],
            [helper.make_tensor_value_info("last_hidden_state", floating, ["batch", "sequence", HIDDEN])],
            list(self.initializers.values()),
            # Shape inference loses the name of the sequence axis at the sliced positions, and without it ONNX Runtime does not
            # fuse the additions into the layer normalisations: a tenth of the run time.
            value_info=[helper.make_tensor_value_info("embeddings", floating, ["batch", "sequence", HIDDEN])],
        )
        operators = [helper.make_opsetid("", OPSET)]
        if any(node.domain == MICROSOFT for node in self.nodes):
            operators.append(helper.make_opsetid(MICROSOFT, 1))
        model = helper.make_model(proto, opset_imports=operators, ir_version=IR_VERSION)
        model.producer_name = "knowledgepulse"
        model.doc_string = description
        path.write_bytes(model.SerializeToString(deterministic=True))
        onnx.checker.check_model(path, full_check=True)


class Int8Graph(Graph):
    """The encoder with int8 tables and linear layers, for one text at a time: there is nothing to mask.

    It computes what the built-in encoder computes, but for the attention, which is in fp32 here. A row of inputs, that is a token,
    is brought into unsigned bytes by a scale and an offset of its own: its smallest number becomes 0, its largest 255.
    """

    INPUTS = ("input_ids",)
    UNUSED = re.compile("")

    def embeddings(self) -> str:
        """Word and position embeddings, added and normalised. The words' are int8 with a scale for each; all tokens are of type 0."""
        from onnx import TensorProto

        name = "embeddings.word_embeddings"
        words = self.node("Gather", "word.int8", self.weight(f"{name}.weight"), "input_ids")
        words = self.node("Cast", "word.float", words, to=TensorProto.FLOAT)
        scales = self.node("Unsqueeze", "word.scales", self.weight(f"{name}.scale"), self.ints(1))
        words = self.node("Mul", "word", words, self.node("Gather", "word.scale", scales, "input_ids"))
        types = self.weight("embeddings.token_type_embeddings.weight")
        first = self.node("Slice", "token_type", types, self.ints(0), self.ints(1), self.ints(0))
        table = self.node("Add", "position.table", self.weight("embeddings.position_embeddings.weight"), first)
        return self.norm("embeddings.LayerNorm", self.node("Add", "embeddings", words, self.positions(table)))

    def quantized(self, layer: str, x: str) -> tuple[str, str, str]:
        """The bytes of the input `x` of `layer`, and for each row the step from one byte to the next and what byte 0 stands for.

        Where the file has scales for the inputs, because a few are larger than the rest, the weights are divided by them.
        """
        name, scale = f"{layer}.input", f"{layer}.input_scale"
        if scale in self.tensors:
            x = self.node("Mul", f"{name}.scaled", x, self.weight(scale))
        lowest = self.node("ReduceMin", f"{name}.lowest", x, self.ints(-1))
        highest = self.node("ReduceMax", f"{name}.highest", x, self.ints(-1))
        spread = self.node("Sub", f"{name}.range", highest, lowest)
        step = self.node("Div", f"{name}.quotient", spread, self.constant("largest_byte", 255.0))
        step = self.node("Max", f"{name}.step", step, self.constant("smallest_step", SMALLEST_STEP))
        above = self.node("Sub", f"{name}.above", x, lowest)
        steps = self.node("Reshape", f"{name}.steps", step, self.ints(-1))
        return self.node("QuantizeLinear", f"{name}.int8", above, steps, axis=1), step, lowest

    def product(self, name: str, quantized: tuple[str, str, str]) -> str:
        """The linear layer called `name` without its bias: byte times byte in whole numbers, then steps, scales and offsets."""
        from onnx import TensorProto

        values, step, lowest = quantized
        weight, scale = self.weight(f"{name}.weight"), self.weight(f"{name}.scale")
        # Without a step of its own for the whole input; that of each row is multiplied afterwards.
        arguments = (values, self.transposed(name), self.constant("one", 1.0), scale)
        product = self.node("MatMulIntegerToFloat", f"{name}.matmul", *arguments, domain=MICROSOFT)
        product = self.node("Mul", f"{name}.scaled", product, step)
        floats = self.node("Cast", f"{name}.floats", weight, to=TensorProto.FLOAT)
        sums = self.node("ReduceSum", f"{name}.bytes", floats, self.ints(1), keepdims=0)
        sums = self.node("Mul", f"{name}.sums", sums, scale)
        return self.node("Add", f"{name}.product", product, self.node("Mul", f"{name}.offset", lowest, sums))

    def dense(self, name: str, x: str) -> str:
        """A linear layer with the weights called `name`."""
        return self.node("Add", name, self.product(name, self.quantized(name, x)), self.weight(f"{name}.bias"))

    def attention(self, prefix: str, x: str, mask: str) -> str:
        """Multi-head attention with its output projection. Queries, keys and values share their quantised input."""
        del mask
        source = f"{prefix}.attention.self"
        names = [f"{source}.{name}" for name in ("query", "key", "value")]
        quantized = self.quantized(source, x)
        products = [self.product(name, quantized) for name in names]
        bias = self.node("Concat", f"{source}.bias", *[self.weight(f"{name}.bias") for name in names], axis=0)
        context = self.node("MultiHeadAttention", f"{prefix}.context", *products, bias, domain=MICROSOFT, num_heads=HEADS)
        return self.dense(f"{prefix}.attention.output.dense", context)

    def mask(self) -> str:
        """None is needed."""
        return ""
