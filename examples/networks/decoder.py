"""A decoder of one token, as llama2.c's models are: RMSNorm, rotary positions, SwiGLU, and a cache.

Source: H. Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023.
"""

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from .rows import RowBuilder

__all__ = ["calibration_steps", "decoder"]

EPSILON = 1e-5
MASKED = -1e4
"""The score of a position that is not there."""


def decoder(
    layers: int,
    positions: int,
    seed: int = 0,
    *,
    width: int = 64,
    heads: int = 8,
    groups: int = 2,
    vocabulary: int = 512,
) -> onnx.ModelProto:
    """Weights are random; ``groups`` heads of queries share one of keys and values.

    Inputs ``token`` and ``position``, int64[1]; ``past_keys`` and ``past_values``, float32[layers,
    heads / groups, positions, width / heads].  Outputs ``logits``, float32[1, vocabulary];
    ``new_keys`` and ``new_values``, float32[layers, heads / groups, width / heads].
    """
    net = _Decoder(width, heads, groups, positions, seed)
    x = net.rows.node("Gather", net.constant(net.rows.normal(0.5, vocabulary, width)), "token")
    keys, values = list[str](), list[str]()
    for layer in range(layers):
        mixed, key, value = net.attention(net.normalized(x), layer)
        x = net.rows.node("Add", x, mixed)
        x = net.rows.node("Add", x, net.feed_forward(net.normalized(x), 3 * width))
        keys.append(key)
        values.append(value)
    logits = net.dense(net.normalized(x), width, vocabulary)
    kept, size = heads // groups, width // heads
    joined = [net.rows.node("Concat", *each, axis=0) for each in (keys, values)]
    inputs = [_info(name, (1,), TensorProto.INT64) for name in ("token", "position")]
    inputs += [_info(f"past_{n}", (layers, kept, positions, size)) for n in ("keys", "values")]
    outputs = [_info("logits", (1, vocabulary))]
    outputs += [_info(f"new_{n}", (layers, kept, size)) for n in ("keys", "values")]
    return net.rows.model("decoder", inputs, (logits, *joined), outputs)


def calibration_steps(
    model: onnx.ModelProto, count: int, seed: int = 0
) -> list[dict[str, NDArray[np.generic]]]:
    """Inputs of ``decoder``: random tokens behind up to as many random ones as the cache holds."""
    rng = np.random.default_rng(seed)
    shape = tuple(each.dim_value for each in model.graph.input[2].type.tensor_type.shape.dim)
    words = model.graph.output[0].type.tensor_type.shape.dim[1].dim_value
    found = []
    for step in range(count):
        position = step * (shape[2] - 1) // max(count - 1, 1)
        there = np.arange(shape[2])[:, None] < position
        found.append(
            {
                "token": rng.integers(0, words, 1),
                "position": np.array([position]),
                **{
                    name: np.where(there, rng.standard_normal(shape), 0).astype(np.float32)
                    for name in ("past_keys", "past_values")
                },
            }
        )
    return found


def _info(name: str, shape: tuple[int, ...], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


class _Decoder:
    """Layers of one row, float32[1, width]."""

    def __init__(self, width: int, heads: int, groups: int, positions: int, seed: int) -> None:
        self.rows = RowBuilder(1, width, heads, seed, EPSILON)
        self.constant = self.rows.constant
        self.width, self.heads, self.groups = width, heads, groups
        self.size, self.positions = width // heads, positions
        node = self.rows.node
        pairs = np.arange(0, self.size, 2, dtype=np.float32) / self.size
        angles = np.arange(positions, dtype=np.float32)[:, None] / np.float32(1e4) ** pairs
        tables = (each(angles)[:, None, :, None] for each in (np.cos, np.sin))
        self.turns = [node("Gather", self.constant(each), "position") for each in tables]
        columns = self.constant(np.append(np.arange(positions), -1))
        self.visible = node("Less", columns, "position")

    def attention(self, x: str, layer: int) -> tuple[str, str, str]:
        """The addition to a row, and its key and value, float32[1, heads / groups, size]."""
        node, size = self.rows.node, self.size
        kept = self.heads // self.groups
        q = self.turned(self.dense(x, self.width, self.width), self.heads)
        k = self.turned(self.dense(x, self.width, kept * size), kept)
        k = self.shaped(k, kept, 1, size)
        v = self.shaped(self.dense(x, self.width, kept * size), kept, 1, size)
        index = self.constant(np.array(layer))
        past = [node("Gather", f"past_{name}", index) for name in ("keys", "values")]
        keys, values = (node("Concat", *pair, axis=1) for pair in zip(past, (k, v), strict=True))
        keys = node("Transpose", keys, perm=[0, 2, 1])
        scores = node("MatMul", self.shaped(q, kept, self.groups, size), keys)
        scores = node("Mul", scores, self.rows.scalar(size**-0.5))
        scores = node("Where", self.visible, scores, self.rows.scalar(MASKED))
        mixed = node("MatMul", node("Softmax", scores, axis=-1), values)
        mixed = self.dense(self.shaped(mixed, 1, self.width), self.width, self.width)
        return mixed, self.shaped(k, 1, kept, size), self.shaped(v, 1, kept, size)

    def turned(self, x: str, heads: int) -> str:
        """Each pair of neighbours in a head by its position's angle."""
        node, (cos, sin) = self.rows.node, self.turns
        pairs = self.shaped(x, 1, heads, self.size // 2, 2)
        even, odd = (
            node("Slice", pairs, *(self.constant(np.array([n])) for n in (place, place + 1, 3)))
            for place in (0, 1)
        )
        new_even = node("Sub", node("Mul", even, cos), node("Mul", odd, sin))
        new_odd = node("Add", node("Mul", even, sin), node("Mul", odd, cos))
        return node("Concat", new_even, new_odd, axis=3)

    def feed_forward(self, x: str, inner: int) -> str:
        """``w2(silu(w1 x) * w3 x)``."""
        node = self.rows.node
        gate, up = (self.dense(x, self.width, inner) for _ in range(2))
        gate = node("Mul", gate, node("Sigmoid", gate))
        return self.dense(node("Mul", gate, up), inner, self.width)

    def normalized(self, x: str) -> str:
        """RMSNorm."""
        node = self.rows.node
        mean = node("ReduceMean", node("Mul", x, x), axes=[-1])
        root = node("Sqrt", node("Add", mean, self.rows.scalar(EPSILON)))
        gain = self.constant(1 + self.rows.normal(0.04, self.width))
        return node("Mul", node("Div", x, root), gain)

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        """A product by a matrix."""
        return self.rows.node("MatMul", x, self.rows.weights(inputs, outputs))

    def shaped(self, x: str, *shape: int) -> str:
        """The same elements in another shape."""
        return self.rows.node("Reshape", x, self.constant(np.array(shape)))
