"""Groups of nodes: what fuses with what, and that every node is in one group."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.groups import group_nodes
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import contract
from dovetail.compiler.graph.operators.elementwise import (
    Binary,
    BinaryFunction,
    Cast,
    Unary,
    UnaryFunction,
)
from dovetail.compiler.graph.operators.movement import (
    Concatenate,
    Expand,
    PadMode,
    PadTensor,
    Slice,
    Transpose,
)
from dovetail.compiler.graph.operators.reductions import Reduce, ReduceFunction
from dovetail.compiler.graph.operators.sorting import Sort
from dovetail.compiler.graph.types import TensorType

from ..random_graphs import random_graph

TANH, EXP = Unary(UnaryFunction.TANH), Unary(UnaryFunction.EXP)
ADD, MUL = Binary(BinaryFunction.ADD), Binary(BinaryFunction.MUL)
SUM = Reduce(ReduceFunction.SUM, (1,), True)


class Chain:
    """Nodes on one input ``x``, float32[4, 8]."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.x = self.builder.input("x", TensorType((4, 8), "float32"))

    def __call__(self, operator: object, *inputs: str) -> str:
        return self.builder.node(operator, inputs, "t", "n")  # type: ignore[arg-type]

    def groups(self, *outputs: str) -> list[int]:
        """The sizes of the groups."""
        return [len(nodes) for nodes in group_nodes(self.builder.build(outputs))]


def test_a_chain_of_elementwise_nodes_is_one_group() -> None:
    g = Chain()
    assert g.groups(g(TANH, g(EXP, g(TANH, g.x)))) == [3]


def test_a_node_with_two_readers_in_one_group_joins_it() -> None:
    g = Chain()
    y = g(EXP, g.x)
    assert g.groups(g(MUL, y, g(TANH, y))) == [3]


def test_an_output_of_the_graph_stays_outside_of_its_readers_group() -> None:
    g = Chain()
    y = g(EXP, g.x)
    assert g.groups(y, g(TANH, y)) == [1, 1]


def test_a_reduction_takes_what_comes_before_and_after_it() -> None:
    g = Chain()
    assert g.groups(g(TANH, g(SUM, g(EXP, g.x)))) == [3]


def test_two_reductions_are_two_groups() -> None:
    g = Chain()
    assert g.groups(g(SUM, g(SUM, g.x))) == [1, 1]


def test_what_a_reduction_and_its_followers_read_is_computed_once() -> None:
    g = Chain()
    y = g(EXP, g.x)
    total = g(SUM, y)
    assert g.groups(g(MUL, y, g(Expand((4, 8)), total))) == [1, 1, 2]


def test_a_costly_node_is_not_repeated_for_a_broadcast() -> None:
    g = Chain()
    total = g(SUM, g.x)
    assert g.groups(g(ADD, g.x, g(EXP, total))) == [2, 1]


def test_nothing_joins_a_sort() -> None:
    g = Chain()
    values = g(Sort(8), g(TANH, g.x))
    assert g.groups(g(TANH, values)) == [1, 1, 1]


def test_a_node_read_at_two_places_by_movement_is_computed_once() -> None:
    g = Chain()
    y = g(EXP, g.x)
    moved = g(Transpose((1, 0)), g(Transpose((1, 0)), y))
    assert g.groups(g(Concatenate(0), y, moved)) == [1, 3]


@pytest.mark.parametrize("mode", PadMode)
def test_a_contraction_ends_in_a_padding_with_a_constant(mode: PadMode) -> None:
    """The product, a sum, a conversion; the padding."""
    g = Chain()
    w = g.builder.constant("w", np.ones((8, 8), np.float32))
    kinds = (g.builder.types[g.x], g.builder.types[w])
    product = g(contract(kinds, ((0, 1), (1, 2)), (0, 2), DType.FLOAT32), g.x, w)
    moved = g(ADD, product, g.builder.constant("b", np.ones(8, np.float32)))
    fill = g.builder.constant("fill", np.zeros((), np.int8))
    padding = PadTensor((1, 0), (1, 0), mode)
    sizes = [4] if mode is PadMode.CONSTANT else [1, 3]
    assert g.groups(g(padding, g(Cast(DType.INT8), moved), fill)) == sizes


def test_what_an_epilogue_reads_twice_does_not_keep_its_padding_apart() -> None:
    """The product; ``y * tanh(y)`` of it; the padding.  So without a product."""
    g = Chain()
    w = g.builder.constant("w", np.ones((8, 8), np.float32))
    kinds = (g.builder.types[g.x], g.builder.types[w])
    product = g(contract(kinds, ((0, 1), (1, 2)), (0, 2), DType.FLOAT32), g.x, w)
    fill = g.builder.constant("fill", np.zeros((), np.float32))
    padding = PadTensor((1, 0), (1, 0), PadMode.CONSTANT)
    assert g.groups(g(padding, g(MUL, product, g(TANH, product)), fill)) == [4]
    y = g(EXP, g.x)
    assert g.groups(g(padding, g(MUL, y, g(TANH, y)), fill)) == [4, 4]


def test_a_product_takes_what_its_epilogue_reads() -> None:
    """A function that it reads stays apart; so does what a part of bytes is of."""
    g = Chain()
    w = g.builder.constant("w", np.ones((8, 8), np.float32))
    kinds = (g.builder.types[g.x], g.builder.types[w])
    product = g(contract(kinds, ((0, 1), (1, 2)), (0, 2), DType.FLOAT32), g(TANH, g.x), w)
    assert g.groups(g(ADD, product, g(EXP, g.x))) == [1, 3]
    for parts in (1, 2):
        g = Chain()
        w = g.builder.constant("w", np.ones((8, 8), np.int8))
        x = g(Cast(DType.INT8), g.x)
        for part in range(parts):
            x = g(Slice((1, 0), (1, 1), (3 - part, 8)), x)
        kinds = (g.builder.types[x], g.builder.types[w])
        product = g(contract(kinds, ((0, 1), (1, 2)), (0, 2), DType.INT32), x, w)
        assert g.groups(product) == [1, 1 + parts]


@pytest.mark.parametrize(("dtype", "sizes"), [("int8", [2, 3]), ("float32", [1, 3])])
def test_a_narrow_epilogue_stays_with_a_contraction_that_cannot_join(
    dtype: str, sizes: list[int]
) -> None:
    """Two products, each converted where that is one; their sum."""
    g = Chain()
    found = []
    for name in "ab":
        w = g.builder.constant(name, np.ones((8, 8), np.float32))
        kinds = (g.builder.types[g.x], g.builder.types[w])
        product = g(contract(kinds, ((0, 1), (1, 2)), (0, 2), DType.FLOAT32), g.x, w)
        found.append(g(Cast(DType(dtype)), product) if dtype == "int8" else product)
    total = g(ADD, *found)
    assert g.groups(total if dtype == "int8" else g(TANH, total)) == sizes


@pytest.mark.parametrize("seed", range(40))
def test_every_node_is_in_one_group_and_groups_can_run_in_order(seed: int) -> None:
    graph: Graph = random_graph(seed, nodes=25)
    groups = group_nodes(graph)
    nodes = [node for group in groups for node in group]
    assert sorted(map(id, nodes)) == sorted(map(id, graph.nodes))
    known = {*graph.inputs, *graph.constants}
    for group in groups:
        inner = {name for node in group for name in node.outputs}
        read = {name for node in group for name in node.inputs} - inner
        assert read <= known
        leaving = {
            name
            for name in inner
            if name in graph.outputs
            or any(name in node.inputs for node in graph.nodes if node not in group)
        }
        assert leaving <= set(group[-1].outputs)
        known |= leaving


def test_random_graphs_have_nodes() -> None:
    assert np.mean([len(random_graph(seed).nodes) for seed in range(20)]) > 8


@pytest.mark.parametrize(
    ("operator", "operands", "repeated"),
    [
        (Cast(DType.FLOAT32), 1, True),
        (Unary(UnaryFunction.NEG), 1, True),
        (Unary(UnaryFunction.ABS), 1, True),
        (Unary(UnaryFunction.SQRT), 1, False),
        (ADD, 2, True),
        (MUL, 2, True),
        (Binary(BinaryFunction.DIV), 2, False),
        (Binary(BinaryFunction.POW), 2, False),
        (Transpose((0, 1)), 1, True),
    ],
)
def test_only_what_is_cheap_is_computed_again_for_more_than_two_elements_each(
    operator: object, operands: int, *, repeated: bool
) -> None:
    for times, together in ((2, True), (3, repeated)):
        g = Chain()
        y = g(operator, *[g.x] * operands)
        other = g.builder.input("other", TensorType((times, 4, 8), "float32"))
        found = g.groups(g(ADD, g(Expand((times, 4, 8)), y), other))
        assert found == ([3] if together else [1, 2])
