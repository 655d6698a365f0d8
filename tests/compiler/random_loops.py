"""Random graphs with loops in loops: sliced, collecting, conditional and guarded."""

import random
from dataclasses import dataclass

import numpy as np

from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import contract
from dovetail.compiler.graph.operators.elementwise import (
    Binary,
    BinaryFunction,
    Cast,
    Unary,
    UnaryFunction,
)
from dovetail.compiler.graph.operators.movement import Reshape, Transpose
from dovetail.compiler.graph.operators.reductions import Reduce, ReduceFunction
from dovetail.compiler.graph.operators.repetition import Repeat
from dovetail.compiler.graph.types import TensorType

SHAPES = ((3, 4), (4, 3), (12,), (1, 12))


@dataclass
class Drawing:
    """Draws graphs over tensors of twelve floats."""

    random: random.Random
    nested: int = 1

    def graph(self, inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]]) -> Graph:
        """A graph of these shapes; the first input is an iteration's number."""
        builder = GraphBuilder()
        number = builder.input("number", TensorType((), "int64"))
        given = [
            builder.input(f"x{place}", TensorType(shape, "float32"))
            for place, shape in enumerate(inputs)
        ]
        tensors = [*given, builder.node(Cast("float32"), (number,), "float", "cast")]  # type: ignore[arg-type]
        tensors.append(builder.constant("c", np.full((3, 4), 0.25, np.float32)))
        for _ in range(self.random.randrange(1, 7)):
            tensors += self.step(builder, tensors)
        results: list[str] = []
        for shape in outputs:
            found = [t for t in tensors if builder.types[t].elements == 12]
            chosen = self.shaped(builder, self.random.choice(found[-5:]), shape)
            if chosen in results or chosen in given or self.random.random() < 0.2:
                chosen = builder.node(Reshape(shape), (chosen,), "result", "reshape")
            results.append(chosen)
        return builder.build(tuple(results))

    def shaped(self, builder: GraphBuilder, name: str, shape: tuple[int, ...]) -> str:
        if builder.types[name].shape == shape:
            return name
        return builder.node(Reshape(shape), (name,), "shaped", "reshape")

    def step(self, builder: GraphBuilder, tensors: list[str]) -> list[str]:
        a, b = self.random.choice(tensors), self.random.choice(tensors)
        match self.random.randrange(6):
            case 0:
                return [builder.node(Unary(UnaryFunction.TANH), (a,), "t", "unary")]
            case 1 | 2:
                pair = [
                    self.shaped(builder, each, (3, 4))
                    if builder.types[each].elements == 12
                    else each
                    for each in (a, b)
                ]
                function = self.random.choice((BinaryFunction.MAX, BinaryFunction.SUB))
                return [builder.node(Binary(function), tuple(pair), "t", "binary")]
            case 3 if builder.types[a].elements == 12:
                wide = self.shaped(builder, a, (3, 4))
                return [builder.node(Transpose((1, 0)), (wide,), "t", "transpose")]
            case 4 if builder.types[a].elements == builder.types[b].elements == 12:
                left, right = (self.shaped(builder, each, (3, 4)) for each in (a, b))
                kinds = [builder.types[left], builder.types[right]]
                product = contract(kinds, ([0, 1], [2, 1]), (0, 2), kinds[0].dtype)
                square = builder.node(product, (left, right), "p", "product")
                square = builder.node(Unary(UnaryFunction.TANH), (square,), "t", "unary")
                kinds = [builder.types[square], builder.types[right]]
                product = contract(kinds, ([0, 1], [1, 2]), (0, 2), kinds[0].dtype)
                return [builder.node(product, (square, right), "p", "product")]
            case 5 if self.nested:
                draw = self.random.choice((self.loop, self.open_loop))
                return list(draw(builder, tensors))
            case _:
                return []

    def loop(self, builder: GraphBuilder, tensors: list[str]) -> tuple[str, ...]:
        """A loop over the first dimension of tensors of twelve elements, of three slices."""
        inner = Drawing(self.random, self.nested - 1)
        whole = [t for t in tensors if builder.types[t].elements == 12]
        if not whole:
            return ()
        states = [self.random.choice(SHAPES) for _ in range(self.random.randrange(3))]
        sliced, kept, collected = (self.random.randrange(3) for _ in range(3))
        collected += not states
        rest = [self.random.choice(whole) for _ in range(kept)]
        body = inner.sliced_graph(states, sliced, [builder.types[t].shape for t in rest], collected)
        operator = Repeat(
            body, 3, len(states),
            tuple(self.random.random() < 0.5 for _ in range(sliced)),
            tuple(self.random.random() < 0.5 for _ in range(collected)),
        )  # fmt: skip
        operands = [self.shaped(builder, self.random.choice(whole), shape) for shape in states]
        operands += [self.shaped(builder, self.random.choice(whole), (3, 4)) for _ in range(sliced)]
        results = builder.node_outputs(operator, (*operands, *rest), "r", "loop")
        picked = list(results[: len(states)])
        for name in results[len(states) :]:
            rows = builder.node(Reshape((3, 3, 4)), (name,), "r", "reshape")
            total = Reduce(ReduceFunction.SUM, (self.random.randrange(2),), False)
            picked.append(builder.node(total, (rows,), "r", "sum"))
        return tuple(picked)

    def open_loop(self, builder: GraphBuilder, tensors: list[str]) -> tuple[str, ...]:
        """A loop that is entered, or goes on, as values say."""
        inner = Drawing(self.random, self.nested - 1)
        whole = [t for t in tensors if builder.types[t].elements == 12]
        if not whole:
            return ()
        states = [self.random.choice(SHAPES) for _ in range(self.random.randrange(1, 3))]
        guarded, conditional = self.random.random() < 0.5, self.random.random() < 0.5
        body = inner.graph(states, [*states, (12,)] if conditional else states)
        if conditional:
            *results, tested = body.outputs
            inside = GraphBuilder(list(body.inputs), list(body.nodes), {**body.constants})
            inside.types.update(body.types)
            body = inside.build((below(inside, tested), *results))
        operands = [self.shaped(builder, self.random.choice(whole), shape) for shape in states]
        if guarded:
            operands.insert(0, below(builder, self.random.choice(whole)))
        operator = Repeat(body, 4, len(states), (), (), conditional, guarded)
        return builder.node_outputs(operator, tuple(operands), "r", "loop")[: len(states)]

    def sliced_graph(
        self,
        states: list[tuple[int, ...]],
        sliced: int,
        rest: list[tuple[int, ...]],
        collected: int,
    ) -> Graph:
        """A body; its slices have four elements."""
        inputs = [*states, *[(4,)] * sliced, *rest]
        shapes = [*states, *(self.random.choice(SHAPES) for _ in range(collected))]
        return self.graph(inputs, shapes)


def below(builder: GraphBuilder, name: str) -> str:
    """The bool that the sum of a tensor is below 1."""
    axes = tuple(range(builder.types[name].rank))
    total = builder.node(Reduce(ReduceFunction.SUM, axes, False), (name,), "sum", "sum")
    one = builder.constant("one", np.ones((), np.float32))
    return builder.node(Binary(BinaryFunction.LT), (total, one), "less", "less")


def drawn(seed: int) -> Graph:
    """A graph with loops; its outputs are all that nothing reads."""
    drawing = Drawing(random.Random(seed), nested=2)
    builder = GraphBuilder()
    tensors = [builder.input(f"x{n}", TensorType((3, 4), "float32")) for n in range(3)]
    while not any(isinstance(node.operator, Repeat) for node in builder.nodes):
        tensors += drawing.loop(builder, tensors)
        tensors += drawing.open_loop(builder, tensors)
        tensors += drawing.step(builder, tensors)
    read = {name for node in builder.nodes for name in node.inputs}
    computed = [name for node in builder.nodes for name in node.outputs]
    return builder.build(tuple(name for name in computed if name not in read))
