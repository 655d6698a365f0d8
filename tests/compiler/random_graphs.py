"""Random graphs of general operators, small enough to interpret."""

import random
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators import elementwise, indexing, movement, reductions, sorting
from dovetail.compiler.graph.operators.elementwise import BinaryFunction, UnaryFunction
from dovetail.compiler.graph.operators.indexing import ScatterFunction
from dovetail.compiler.graph.operators.movement import PadMode
from dovetail.compiler.graph.operators.reductions import ReduceFunction
from dovetail.compiler.graph.types import TensorType

__all__ = ["random_graph", "random_inputs"]

Array = NDArray[Any]

UNARY = (UnaryFunction.NEG, UnaryFunction.ABS, UnaryFunction.TANH, UnaryFunction.SIN)
BINARY = (BinaryFunction.ADD, BinaryFunction.SUB, BinaryFunction.MIN, BinaryFunction.MAX)
LARGEST = 200


class _Drawing:
    """Draws nodes over float32 tensors of at most three dimensions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.builder = GraphBuilder()
        self.tensors: list[str] = []

    def shape(self, name: str) -> tuple[int, ...]:
        return self.builder.types[name].shape

    def pick(self) -> str:
        return self.random.choice(self.tensors[-6:])

    def emit(self, operator: Any, *inputs: str) -> None:
        kinds = operator.result(tuple(self.builder.types[name] for name in inputs))
        if any(kind.elements > LARGEST for kind in kinds):
            return
        names = self.builder.node_outputs(operator, inputs, "t", f"n{len(self.builder.nodes)}")
        for name in names:
            kind = self.builder.types[name]
            if str(kind.dtype) == "float32":
                self.tensors.append(name)
            else:
                cast = elementwise.Cast("float32")  # type: ignore[arg-type]
                self.tensors.append(self.builder.node(cast, (name,), "t", "cast"))

    def indices(self, shape: tuple[int, ...], size: int) -> str:
        generator = np.random.default_rng(self.random.randrange(1 << 30))
        return self.builder.constant("c", generator.integers(-size, size, shape))

    def step(self) -> None:
        kinds = (
            self.unary, self.binary, self.where, self.reshape, self.transpose, self.slice,
            self.concatenate, self.pad, self.expand, self.reduce, self.arg,
            self.cumulative, self.gather, self.scatter, self.sort, self.binary, self.unary,
        )  # fmt: skip
        self.random.choice(kinds)(self.pick())

    def unary(self, x: str) -> None:
        self.emit(elementwise.Unary(self.random.choice(UNARY)), x)

    def partner(self, x: str) -> str:
        fitting = [name for name in self.tensors if _broadcasts(self.shape(name), self.shape(x))]
        return self.random.choice(fitting)

    def binary(self, x: str) -> None:
        sides = [x, self.partner(x)]
        self.random.shuffle(sides)
        self.emit(elementwise.Binary(self.random.choice(BINARY)), *sides)

    def where(self, x: str) -> None:
        y = self.partner(x)
        less = self.builder.node(elementwise.Binary(BinaryFunction.LT), (x, y), "t", "less")
        self.emit(elementwise.Where(), less, x, y)

    def reshape(self, x: str) -> None:
        total = prod(self.shape(x))
        first = self.random.choice([n for n in range(1, total + 1) if total % n == 0])
        rest = total // first
        second = self.random.choice([n for n in range(1, rest + 1) if rest % n == 0])
        self.emit(movement.Reshape((first, second, rest // second)), x)

    def transpose(self, x: str) -> None:
        order = list(range(len(self.shape(x))))
        self.random.shuffle(order)
        self.emit(movement.Transpose(tuple(order)), x)

    def slice(self, x: str) -> None:
        starts, steps, sizes = [], [], []
        for size in self.shape(x):
            step = self.random.choice((1, 1, 2, -1))
            start = self.random.randrange(size)
            room = (size - 1 - start) // step if step > 0 else start // -step
            starts.append(start)
            steps.append(step)
            sizes.append(self.random.randint(1, room + 1))
        self.emit(movement.Slice(tuple(starts), tuple(steps), tuple(sizes)), x)

    def concatenate(self, x: str) -> None:
        if not self.shape(x):
            return
        axis = self.random.randrange(len(self.shape(x)))
        fitting = [
            name
            for name in self.tensors
            if len(self.shape(name)) == len(self.shape(x))
            and all(
                d == axis or a == b
                for d, (a, b) in enumerate(zip(self.shape(name), self.shape(x), strict=True))
            )
        ]
        parts = [self.random.choice(fitting) for _ in range(self.random.randint(1, 2))]
        self.emit(movement.Concatenate(axis), x, *parts)

    def pad(self, x: str) -> None:
        mode = self.random.choice(list(PadMode))
        widths = [tuple(self.random.randint(0, 2) for _ in self.shape(x)) for _ in range(2)]
        value = self.builder.constant("c", np.float32(self.random.uniform(-1, 1)))
        self.emit(movement.PadTensor(widths[0], widths[1], mode), x, value)

    def expand(self, x: str) -> None:
        grown = tuple(self.random.randint(1, 3) if n == 1 else n for n in self.shape(x))
        lead = (self.random.randint(1, 2),) if len(grown) < 3 else ()
        self.emit(movement.Expand((*lead, *grown)), x)

    def reduce(self, x: str) -> None:
        function = self.random.choice((ReduceFunction.SUM, ReduceFunction.MIN, ReduceFunction.MAX))
        axes = [d for d in range(len(self.shape(x))) if self.random.random() < 0.5]
        self.emit(reductions.Reduce(function, tuple(axes), self.random.random() < 0.5), x)

    def arg(self, x: str) -> None:
        if self.shape(x):
            function = self.random.choice((ReduceFunction.MIN, ReduceFunction.MAX))
            axis = self.random.randrange(len(self.shape(x)))
            self.emit(reductions.ArgReduce(function, axis, self.random.random() < 0.5), x)

    def cumulative(self, x: str) -> None:
        if self.shape(x):
            flags = [self.random.random() < 0.5 for _ in range(2)]
            axis = self.random.randrange(len(self.shape(x)))
            self.emit(reductions.Cumulative(ReduceFunction.SUM, axis, *flags), x)

    def gather(self, x: str) -> None:
        shape = self.shape(x)
        if not shape:
            return
        axis = self.random.randrange(len(shape))
        if self.random.random() < 0.5:
            self.emit(indexing.Gather(axis), x, self.indices((2,), shape[axis]))
        else:
            self.emit(indexing.GatherElements(axis), x, self.indices(shape, shape[axis]))

    def scatter(self, x: str) -> None:
        shape = self.shape(x)
        if not shape:
            return
        function = self.random.choice(list(ScatterFunction))
        axis = self.random.randrange(len(shape))
        source = self.builder.node(elementwise.Unary(UnaryFunction.SIN), (x,), "t", "updates")
        operator = indexing.ScatterElements(axis, function)
        self.emit(operator, x, self.indices(shape, shape[axis]), source)

    def sort(self, x: str) -> None:
        if self.shape(x):
            count = self.random.randint(1, self.shape(x)[-1])
            self.emit(sorting.Sort(count, self.random.random() < 0.5), x)


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False))


def random_graph(seed: int, nodes: int = 14) -> Graph:
    """A graph of two inputs; all tensors that nothing reads are outputs, and some others."""
    drawing = _Drawing(seed)
    for number in range(2):
        rank = drawing.random.randint(1, 3)
        shape = tuple(drawing.random.randint(1, 4) for _ in range(rank))
        drawing.tensors.append(drawing.builder.input(f"x{number}", TensorType(shape, "float32")))
    for _ in range(nodes):
        drawing.step()
    read = {name for node in drawing.builder.nodes for name in node.inputs}
    computed = [name for node in drawing.builder.nodes for name in node.outputs]
    outputs = [name for name in computed if name not in read or drawing.random.random() < 0.15]
    return drawing.builder.build(tuple(outputs))


def random_inputs(graph: Graph, seed: int) -> dict[str, Array]:
    """Values between -1 and 1; quarters, so that some are equal."""
    generator = np.random.default_rng(seed)
    return {
        name: (generator.integers(-4, 5, graph.types[name].shape) / 4).astype(np.float32)
        for name in graph.inputs
    }
