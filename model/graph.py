"""The network as an ONNX graph."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # The up-to-date check must stay fast: numpy and onnx are imported where they are used.
    import numpy as np
    import onnx

    Weights = dict[str, "np.ndarray[Any, Any]"]

LAYERS, HEADS, HEAD_SIZE, HIDDEN, POSITIONS = 6, 12, 32, 384, 512
EPSILON = 1e-12
# What a masked key loses before the softmax: exp(-10000) is exactly 0, and it is finite, so that an all-masked row is no NaN.
MASK_PENALTY = 10_000.0
# Pinned, not the library's newest: both load in every ONNX Runtime since 1.17, and the bytes do not depend on onnx's version.
OPSET, IR_VERSION = 20, 9
MICROSOFT = "com.microsoft"


class Graph:
    """The BERT encoder as ONNX nodes, shaped for the least work on a CPU. Every node's output bears the node's name."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}

    def node(self, op: str, name: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node and returns the name of its output."""
        from onnx import helper

        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def constant(self, name: str, values: Any, dtype: str = "<f4") -> str:
        """Adds an initializer, once per name, and returns the name."""
        import numpy as np
        from onnx import numpy_helper

        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(values, dtype), name)
        return name

    def ints(self, *values: int) -> str:
        """A one-dimensional integer constant: axes, shapes."""
        return self.constant("ints." + ".".join(map(str, values)), values, "<i8")

    def linear(self, name: str, x: str, weight: np.ndarray[Any, Any], bias: np.ndarray[Any, Any]) -> str:
        """`x @ weight + bias`, the weight as [in, out] so that nothing is transposed at run time."""
        product = self.node("MatMul", f"{name}.matmul", x, self.constant(f"{name}.weight", weight))
        return self.node("Add", name, product, self.constant(f"{name}.bias", bias))

    def norm(self, name: str, x: str) -> str:
        """Layer normalisation with the weights called `name`."""
        weight = self.constant(f"{name}.weight", self.weights[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        return self.node("LayerNormalization", name, x, weight, bias, axis=-1, epsilon=EPSILON)

    def embeddings(self) -> str:
        """Word, token type and position embeddings, added and normalised."""

        def gather(kind: str, ids: str) -> str:
            table = self.constant(f"{kind}.table", self.weights[f"embeddings.{kind}_embeddings.weight"])
            return self.node("Gather", kind, table, ids)

        words = self.node("Add", "words", gather("word", "input_ids"), gather("token_type", "token_type_ids"))
        table = self.constant("position.table", self.weights["embeddings.position_embeddings.weight"])
        length = self.node("Shape", "length", "input_ids", start=1, end=2)
        positions = self.node("Slice", "position", table, self.ints(0), length, self.ints(0))
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

    def attention(self, prefix: str, x: str, mask: str) -> str:
        """Multi-head attention up to its output projection.

        Exact rewritings keep large intermediate results from being touched more often than necessary:
        - the scale 1/sqrt(head size) is part of the query's weights;
        - the bias of the keys adds the same to all scores of a row, which softmax ignores: it is left out;
        - the rows of the softmax sum to 1, so the bias of the values goes through unchanged, into the output's bias;
        - the mask is an extra dimension of each head, 1 in the queries and the penalty in the keys: the product of the two adds
          it to the scores for next to nothing, where an addition would walk through [batch, heads, sequence, sequence] again.
        """
        import numpy as np

        source = f"{prefix}.attention.self"

        def per_head(values: np.ndarray[Any, Any], extra: float) -> np.ndarray[Any, Any]:
            heads = values.reshape(*values.shape[:-1], HEADS, HEAD_SIZE)
            widened = np.full((*heads.shape[:-1], HEAD_SIZE + 1), extra, heads.dtype)
            widened[..., :HEAD_SIZE] = heads
            return widened.reshape(*values.shape[:-1], -1)

        def scaled(name: str) -> np.ndarray[Any, Any]:
            return self.weights[name].astype("f8") / math.sqrt(HEAD_SIZE)

        query = self.linear(
            f"{prefix}.query", x, per_head(scaled(f"{source}.query.weight").T, 0), per_head(scaled(f"{source}.query.bias"), 1)
        )
        key_weight = self.constant(f"{prefix}.key.weight", per_head(self.weights[f"{source}.key.weight"].T, 0))
        key = self.node("Add", f"{prefix}.key", self.node("MatMul", f"{prefix}.key.matmul", x, key_weight), mask)
        value_weight = self.constant(f"{prefix}.value.weight", self.weights[f"{source}.value.weight"].T)
        value = self.node("MatMul", f"{prefix}.value", x, value_weight)

        def heads(name: str, size: int, perm: list[int]) -> str:
            split = self.node("Reshape", f"{name}.heads", name, self.ints(0, 0, HEADS, size))
            return self.node("Transpose", f"{name}.transposed", split, perm=perm)

        query = heads(query, HEAD_SIZE + 1, [0, 2, 1, 3])
        key = heads(key, HEAD_SIZE + 1, [0, 2, 3, 1])
        value = heads(value, HEAD_SIZE, [0, 2, 1, 3])
        scores = self.node("MatMul", f"{prefix}.scores", query, key)
        shares = self.node("Softmax", f"{prefix}.shares", scores, axis=-1)
        context = self.node("MatMul", f"{prefix}.context", shares, value)
        context = self.node("Transpose", f"{prefix}.context.transposed", context, perm=[0, 2, 1, 3])
        context = self.node("Reshape", f"{prefix}.context.joined", context, self.ints(0, 0, HIDDEN))

        weight = self.weights[f"{prefix}.attention.output.dense.weight"]
        return self.linear(f"{prefix}.attention.output", context, weight.T, self.output_bias(prefix))

    def output_bias(self, prefix: str) -> np.ndarray[Any, Any]:
        """The bias of the attention's output, with the bias of the values folded in."""
        import numpy as np

        weight = self.weights[f"{prefix}.attention.output.dense.weight"]
        bias = self.weights[f"{prefix}.attention.output.dense.bias"]
        # A product of two floats is exact in a double and fsum rounds once: the same bytes on every machine, unlike a matmul.
        products = (weight.astype("f8") * self.weights[f"{prefix}.attention.self.value.bias"].astype("f8")).tolist()
        return np.array([math.fsum([b, *row]) for b, row in zip(bias.tolist(), products, strict=True)])

    def dense(self, name: str, x: str) -> str:
        """A linear layer with the weights called `name`."""
        return self.linear(name, x, self.weights[f"{name}.weight"].T, self.weights[f"{name}.bias"])

    def encoder(self) -> None:
        """The whole network. The pooler's weights are left out: nothing here uses them."""
        x, mask = self.embeddings(), self.mask()
        for layer in range(LAYERS):
            prefix = f"encoder.layer.{layer}"
            attended = self.node("Add", f"{prefix}.attended", self.attention(prefix, x, mask), x)
            x = self.norm(f"{prefix}.attention.output.LayerNorm", attended)
            inner = self.node("Gelu", f"{prefix}.gelu", self.dense(f"{prefix}.intermediate.dense", x))
            transformed = self.node("Add", f"{prefix}.transformed", self.dense(f"{prefix}.output.dense", inner), x)
            x = self.norm(f"{prefix}.output.LayerNorm", transformed)
        self.nodes[-1].output[0] = "last_hidden_state"

    def serialize(self, inputs: tuple[str, ...], description: str) -> bytes:
        """The ONNX file of the network that `encoder` made."""
        import onnx
        from onnx import helper

        integer, floating = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
        proto = helper.make_graph(
            self.nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info(name, integer, ["batch", "sequence"]) for name in inputs],
            [helper.make_tensor_value_info(self.nodes[-1].output[0], floating, ["batch", "sequence", HIDDEN])],
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
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString(deterministic=True))


def build_model(weights: Weights, source: str) -> bytes:
    """The fp32 model as an ONNX file; `source` says where the weights are from."""
    graph = Graph(weights)
    graph.encoder()
    return graph.serialize(("input_ids", "attention_mask", "token_type_ids"), source.format(dtype="fp32"))
