"""Random graphs of integer operators with any number of inputs and outputs."""

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.conversions import Dequantize, Quantize, Shift128
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Requantize, Softmax
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d, MaxPool2d
from dovetail.compiler.graph.operators.movement import Concatenate, Reshape, Slice, Transpose
from dovetail.compiler.graph.types import TensorType

__all__ = ["inputs_of", "random_integer_graph"]

Array = NDArray[Any]


class _Drawing:
    """Draws nodes over int8 images; ``block``: channels that slices begin at multiples of."""

    def __init__(self, seed: int, block: int) -> None:
        self.random, self.block = random.Random(seed), block
        self.values = np.random.default_rng(seed)
        self.builder = GraphBuilder()
        self.images: list[str] = []

    def shape(self, name: str) -> tuple[int, ...]:
        return self.builder.types[name].shape

    def emit(self, operator: Any, *inputs: str) -> str:
        number = len(self.builder.nodes)
        return self.builder.node(operator, inputs, f"t{number}", f"n{number}")

    def constant(self, low: float, high: float, shape: tuple[int, ...], kind: str) -> str:
        return self.builder.constant("c", self.values.uniform(low, high, shape).astype(kind))

    def source(self) -> None:
        """An image from a new input, or once more from an old one."""
        shape = (1, *self.random.choice([(6, 5), (3, 3)]), self.random.choice([3, self.block, 20]))
        if self.builder.inputs and self.random.random() < 0.3:
            x = self.random.choice(self.builder.inputs)
        else:
            kind = self.random.choice(["int8", "uint8", "float32"])
            flipped = kind == "float32" and self.random.random() < 0.5
            placed = (shape[0], shape[3], *shape[1:3]) if flipped else shape
            x = self.builder.input(f"x{len(self.builder.inputs)}", TensorType(placed, kind))
            if flipped:
                x = self.emit(Transpose((0, 2, 3, 1)), x)
        match str(self.builder.types[x].dtype):
            case "float32":
                x = self.emit(Quantize(self.random.choice([0.5, 0.25]), 3), x)
            case "uint8":
                x = self.emit(Shift128("int8"), x)
        if self.shape(x)[1:3] in ((6, 5), (3, 3)):
            self.images.append(x)

    def layer(self) -> None:
        kinds = (self.conv, self.conv, self.depthwise, self.add, self.pool, self.average)
        more = (self.join, self.join, self.part, self.lookup, self.flat)
        self.images.append(
            self.random.choice((*kinds, *more))(self.random.choice(self.images[-5:]))
        )

    def requantized(self, sums: str) -> str:
        channels = self.shape(sums)[-1]
        scale = self.constant(1e-3, 1e-2, (channels,), "float32")
        return self.emit(Requantize(self.random.randint(-9, 9), -128, 127), sums, scale)

    def conv(self, x: str) -> str:
        height, width, channels = self.shape(x)[1:]
        size = 3 if min(height, width) >= 3 and self.random.random() < 0.6 else 1
        pads = (1, 1, 1, 1) if size == 3 and self.random.random() < 0.7 else (0, 0, 0, 0)
        outputs = self.random.choice([channels, self.block, 5])
        weights = self.constant(-127, 128, (outputs, size, size, channels), "int8")
        bias = self.constant(-900, 900, (outputs,), "int32")
        operator = Conv2d((1, 1), pads, 1, -128 if any(pads) else 4)
        return self.requantized(self.emit(operator, x, weights, bias))

    def depthwise(self, x: str) -> str:
        channels = self.shape(x)[3]
        weights = self.constant(-127, 128, (channels, 1, 1, 1), "int8")
        bias = self.constant(-900, 900, (channels,), "int32")
        return self.requantized(self.emit(Conv2d((1, 1), (0,) * 4, channels, 4), x, weights, bias))

    def add(self, x: str) -> str:
        alike = [y for y in self.images if self.shape(y) == self.shape(x)]
        operator = Add(0.75, 0.5, 3, -4, 1, -128, 127)
        return self.emit(operator, x, self.random.choice(alike))

    def pool(self, x: str) -> str:
        size = min(2, *self.shape(x)[1:3])
        return self.emit(MaxPool2d((size, size), (1, 1), (0, 0, 0, 0)), x)

    def average(self, x: str) -> str:
        height, width = self.shape(x)[1:3]
        return self.emit(AveragePool2d((height, width), (1, 1), 2, 1, 0.7 / height / width), x)

    def join(self, x: str) -> str:
        alike = [y for y in self.images if self.shape(y)[1:3] == self.shape(x)[1:3]]
        parts = [x, *(self.random.choice(alike) for _ in range(self.random.randint(1, 2)))]
        return self.emit(Concatenate(3), *parts)

    def part(self, x: str) -> str:
        _, height, width, channels = self.shape(x)
        start = (0, 0, 0, self.random.randrange(channels))
        size = self.random.randint(1, channels - start[3])
        return self.emit(Slice(start, (1, 1, 1, 1), (1, height, width, size)), x)

    def lookup(self, x: str) -> str:
        return self.emit(Lookup(), x, self.constant(-128, 128, (256,), "int8"))

    def flat(self, x: str) -> str:
        """A pixel by another name, and back."""
        if self.shape(x)[1:3] != (1, 1):
            return self.pool(x)
        channels = self.shape(x)[3]
        return self.emit(
            Reshape((1, 1, 1, channels)), self.emit(Reshape((1, channels)), self.lookup(x))
        )

    def output(self, x: str) -> str:
        """Perhaps some steps of the host behind an image."""
        match self.random.randrange(6):
            case 0:
                return self.emit(Dequantize(0.5, 3), x)
            case 1:
                return self.emit(Transpose((0, 3, 1, 2)), x)
            case 2:
                return self.emit(Reshape((1, int(np.prod(self.shape(x))))), x)
            case 3:
                return self.emit(Shift128("uint8"), self.emit(Softmax(0.1, 0, 1 / 256, -128), x))
        return x


def random_integer_graph(seed: int, block: int, layers: int = 8) -> Graph:
    """One to three images come in; what nothing reads goes out, and some of what is read.

    block: channels of a block.
    """
    drawing = _Drawing(seed, block)
    for _ in range(drawing.random.randint(1, 3)):
        drawing.source()
    if not drawing.images:
        drawing.source()
    given = set(drawing.images)
    for _ in range(layers):
        drawing.layer()
    read = {name for node in drawing.builder.nodes for name in node.inputs}
    made = [name for name in dict.fromkeys(drawing.images) if name not in given]
    ends = [name for name in made if name not in read or drawing.random.random() < 0.25]
    ends += [name for name in ends if drawing.random.random() < 0.2]
    return drawing.builder.build(tuple(dict.fromkeys(map(drawing.output, ends))))


def inputs_of(graph: Graph, seed: int) -> dict[str, Array]:
    """Random values for the graph's inputs."""
    rng = np.random.default_rng(seed)
    kinds = {name: graph.types[name] for name in graph.inputs}
    return {
        name: rng.integers(0 if str(kind.dtype) == "uint8" else -50, 50, kind.shape).astype(
            str(kind.dtype)
        )
        for name, kind in kinds.items()
    }
