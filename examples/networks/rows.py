"""Layers of transformers as float ONNX nodes with random weights, as PyTorch exports them.

Weights of a layer are normal with variance ``1 / inputs``, so rows keep their size.
"""

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

__all__ = ["RowBuilder"]

OPSET, IR_VERSION = 17, 8
SPREAD = 0.04
"""Deviation of biases, and of what a normalisation scales and shifts by."""


class RowBuilder:
    """Collects nodes and constants; every method adds a layer of rows and returns its output.

    Rows are float32[1, rows, width].
    """

    def __init__(self, rows: int, width: int, heads: int, seed: int, epsilon: float) -> None:
        self._rows, self._width, self._heads, self._epsilon = rows, width, heads, epsilon
        self._rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def model(
        self,
        name: str,
        inputs: list[onnx.ValueInfoProto],
        results: Sequence[str],
        outputs: list[onnx.ValueInfoProto],
    ) -> onnx.ModelProto:
        """The model from ``inputs`` to ``results``, which are called as ``outputs`` are."""
        for result, output in zip(results, outputs, strict=True):
            self._nodes.append(helper.make_node("Identity", [result], [output.name]))
        graph = helper.make_graph(self._nodes, name, inputs, outputs, self._constants)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)

    def attention(self, x: str, mask: str = "") -> str:
        """Softmax(Q K^T / root of a head's width + mask) V, and its projection."""
        q, k, v = (self._heads_of(self.dense(x, self._width, self._width), t) for t in (0, 1, 0))
        root = self.scalar(np.sqrt(self._width / self._heads))
        scores = self.node("Div", self.node("MatMul", q, k), root)
        scores = self.node("Add", scores, mask) if mask else scores
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        mixed = self.node("Transpose", mixed, perm=[0, 2, 1, 3])
        shape = self.constant(np.array([1, self._rows, self._width]))
        return self.dense(self.node("Reshape", mixed, shape), self._width, self._width)

    def feed_forward(self, x: str, inner: int) -> str:
        """Two dense layers, with a GELU in arithmetic between."""
        hidden = self.dense(x, self._width, inner)
        bell = self.node("Erf", self.node("Div", hidden, self.scalar(np.sqrt(2))))
        hidden = self.node("Mul", hidden, self.node("Add", bell, self.scalar(1.0)))
        return self.dense(self.node("Mul", hidden, self.scalar(0.5)), inner, self._width)

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        """A product by a matrix, and a bias."""
        product = self.node("MatMul", x, self.weights(inputs, outputs))
        return self.node("Add", self.constant(self.normal(SPREAD, outputs)), product)

    def normalized(self, x: str) -> str:
        """LayerNormalization."""
        scale = self.constant(1 + self.normal(SPREAD, self._width))
        shift = self.constant(self.normal(SPREAD, self._width))
        return self.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=self._epsilon)

    def weights(self, inputs: int, *shape: int) -> str:
        """Constant float32[inputs, *shape]."""
        return self.constant(self.normal(inputs**-0.5, inputs, *shape))

    def normal(self, deviation: float, *shape: int) -> NDArray[np.float32]:
        """Random float32 of that shape."""
        return self._rng.standard_normal(shape, np.float32) * np.float32(deviation)

    def scalar(self, value: float) -> str:
        """Constant float32[]."""
        return self.constant(np.array(value, np.float32))

    def constant(self, array: NDArray[np.generic]) -> str:
        """The name of a new constant."""
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        """The output of a new node."""
        name = f"{kind.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def _heads_of(self, x: str, turned: int) -> str:
        """float32[1, heads, rows, width of a head]; ``turned``: the last two the other way."""
        shape = np.array([1, self._rows, self._heads, self._width // self._heads])
        x = self.node("Reshape", x, self.constant(shape))
        return self.node("Transpose", x, perm=[0, 2, 3, 1] if turned else [0, 2, 1, 3])
