"""BERT's encoder as a float ONNX model with seeded random weights, as PyTorch exports it.

Source: J. Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2018: the base
model's sizes, with fewer layers.
"""

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

__all__ = ["bert"]

OPSET, IR_VERSION = 17, 8
WIDTH, HEADS, INNER, VOCABULARY = 768, 12, 3072, 30522
SPREAD = 0.04
EPSILON = 1e-12


def bert(layers: int = 4, tokens: int = 128, seed: int = 0) -> onnx.ModelProto:
    """Inputs ``ids`` and ``mask``, int64[1, tokens]; output ``hidden``, float32[1, tokens, 768]."""
    return _Builder(tokens, seed).model(layers)


class _Builder:
    def __init__(self, tokens: int, seed: int) -> None:
        self._tokens = tokens
        self._rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def model(self, layers: int) -> onnx.ModelProto:
        """The model of as many encoder layers."""
        x, mask = self._embedded(), self._mask()
        for _ in range(layers):
            x = self._encoder(x, mask)
        self._nodes.append(helper.make_node("Identity", [x], ["hidden"]))
        given = [
            helper.make_tensor_value_info(name, TensorProto.INT64, (1, self._tokens))
            for name in ("ids", "mask")
        ]
        shape = (1, self._tokens, WIDTH)
        found = [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self._nodes, "bert", given, found, self._constants)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)

    def _embedded(self) -> str:
        words = self._node("Gather", self._weights(VOCABULARY, WIDTH), "ids", axis=0)
        places = self._constant(self._normal(1, self._tokens, WIDTH))
        return self._normalized(self._node("Add", words, places))

    def _mask(self) -> str:
        """0 for tokens that count, a large negative number for others."""
        mask = self._node("Unsqueeze", "mask", self._constant(np.array([1, 2])))
        mask = self._node("Cast", mask, to=TensorProto.FLOAT)
        mask = self._node("Sub", self._scalar(1.0), mask)
        return self._node("Mul", mask, self._scalar(-1e4))

    def _encoder(self, x: str, mask: str) -> str:
        x = self._normalized(self._node("Add", x, self._attention(x, mask)))
        inner = self._dense(x, WIDTH, INNER)
        bell = self._node("Erf", self._node("Div", inner, self._scalar(np.sqrt(2))))
        inner = self._node("Mul", inner, self._node("Add", bell, self._scalar(1.0)))
        inner = self._node("Mul", inner, self._scalar(0.5))
        return self._normalized(self._node("Add", x, self._dense(inner, INNER, WIDTH)))

    def _attention(self, x: str, mask: str) -> str:
        q, k, v = (self._heads(self._dense(x, WIDTH, WIDTH), turned) for turned in (0, 1, 0))
        scores = self._node("MatMul", q, k)
        scores = self._node("Div", scores, self._scalar(np.sqrt(WIDTH / HEADS)))
        shares = self._node("Softmax", self._node("Add", scores, mask), axis=-1)
        mixed = self._node("Transpose", self._node("MatMul", shares, v), perm=[0, 2, 1, 3])
        mixed = self._node("Reshape", mixed, self._constant(np.array([1, self._tokens, WIDTH])))
        return self._dense(mixed, WIDTH, WIDTH)

    def _heads(self, x: str, turned: int) -> str:
        shape = np.array([1, self._tokens, HEADS, WIDTH // HEADS])
        x = self._node("Reshape", x, self._constant(shape))
        return self._node("Transpose", x, perm=[0, 2, 3, 1] if turned else [0, 2, 1, 3])

    def _dense(self, x: str, inputs: int, outputs: int) -> str:
        product = self._node("MatMul", x, self._weights(inputs, outputs))
        return self._node("Add", self._constant(self._normal(outputs)), product)

    def _normalized(self, x: str) -> str:
        scale = self._constant(1 + self._normal(WIDTH))
        shift = self._constant(self._normal(WIDTH))
        return self._node("LayerNormalization", x, scale, shift, axis=-1, epsilon=EPSILON)

    def _normal(self, *shape: int) -> NDArray[np.float32]:
        return self._rng.standard_normal(shape, np.float32) * np.float32(SPREAD)

    def _weights(self, *shape: int) -> str:
        return self._constant(self._normal(*shape))

    def _scalar(self, value: float) -> str:
        return self._constant(np.array(value, np.float32))

    def _constant(self, array: NDArray[np.generic]) -> str:
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def _node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name
