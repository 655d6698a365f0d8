"""Random graphs of integer operators whose channels lie in every way: parts, slices, sums."""

import numpy as np

from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.indexing import Gather
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Requantize
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d, MaxPool2d
from dovetail.compiler.graph.operators.movement import Concatenate, Slice
from dovetail.compiler.graph.types import TensorType

__all__ = ["random_layers"]

SIZE = 5
"""Rows and columns, of all tensors but the last."""


def random_layers(seed: int, count: int = 6) -> Graph:
    """About ``count`` operators; most read what was made last, some anything before it."""
    return _Layers(seed).graph(count)


class _Layers:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = GraphBuilder()
        self.known: list[str] = []

    def graph(self, count: int) -> Graph:
        channels = int(self.rng.integers(1, 11))
        x = self.builder.input("x", TensorType((1, SIZE, SIZE, channels), "int8"))
        self.known = [self.conv(x)]
        for _ in range(count):
            self.known.append(self.layer())
        return self.builder.build((self.known[-1],))

    def node(self, operator: object, *inputs: str) -> str:
        return self.builder.node(operator, inputs, f"t{len(self.builder.nodes)}", "node")

    def any(self) -> str:
        last = self.rng.random() < 0.6
        return self.known[-1] if last else self.known[self.rng.integers(len(self.known))]

    def channels(self, x: str) -> int:
        return self.builder.types[x].shape[3]

    def layer(self) -> str:
        x, pick = self.any(), int(self.rng.integers(10))
        match pick:
            case 0:
                return self.conv(x)
            case 1:
                return self.conv(x, self.channels(x))
            case 2:
                return self.conv(x, 2 if self.channels(x) % 2 == 0 else 1)
            case 3:
                return self.node(Concatenate(3), x, *(self.any() for _ in range(2)))
            case 4 if self.channels(x) > 1:
                return self.part(x)
            case 5:
                count = int(self.rng.integers(1, self.channels(x) + 1))
                places = self.rng.integers(0, self.channels(x), count)
                return self.node(Gather(3), x, self.builder.constant("places", places))
            case 6:
                return self.add(x)
            case 7:
                return self.node(MaxPool2d((3, 3), (1, 1), (1, 1, 1, 1)), x)
            case 8:
                pool = AveragePool2d((1, 1), (1, 1), 3, -2, 0.7)
                return self.node(pool, x)
            case _:
                table = self.rng.integers(-128, 128, 256).astype(np.int8)
                return self.node(Lookup(), x, self.builder.constant("table", table))

    def part(self, x: str) -> str:
        first = int(self.rng.integers(0, self.channels(x)))
        count = int(self.rng.integers(1, self.channels(x) - first + 1))
        part = Slice((0, 0, 0, first), (1, 1, 1, 1), (1, SIZE, SIZE, count))
        return self.node(part, x)

    def add(self, x: str) -> str:
        same = [name for name in self.known if self.channels(name) == self.channels(x)]
        other = same[self.rng.integers(len(same))]
        return self.node(Add(0.5, 0.75, 1, -3, 2, -128, 127), x, other)

    def conv(self, x: str, groups: int = 1) -> str:
        channels = self.channels(x)
        each = int(self.rng.integers(1, 7))
        outputs = channels if groups == channels else groups * each
        size = 3 if self.rng.random() < 0.5 else 1
        pads = (size // 2,) * 4
        shape = (outputs, size, size, channels // groups)
        zero = int(self.rng.integers(-5, 5))
        weights = self.builder.constant("w", self.rng.integers(-128, 128, shape).astype(np.int8))
        bias = self.builder.constant("b", self.rng.integers(-999, 999, outputs).astype(np.int32))
        total = self.node(Conv2d((1, 1), pads, groups, zero), x, weights, bias)
        scales = self.rng.uniform(1e-3, 4e-3, outputs).astype(np.float32)
        scale = self.builder.constant("s", scales)
        return self.node(Requantize(1, -128, 127), total, scale)
