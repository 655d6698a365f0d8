"""Transposes between layers as products with unit vectors, which move the same bytes."""

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import RowProducts
from dovetail.compiler.graph.operators.integer.values import Lookup
from dovetail.compiler.graph.operators.movement import Reshape, Slice, Transpose
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.turned_rows import TurnedRows

LANES = 4
LAYER = Lookup()
TURN = Transpose((0, 1, 3, 2))


def chain(shape: tuple[int, ...], *operators: TensorOperator) -> Graph:
    """One operator after the other, from a given tensor on."""
    builder = GraphBuilder()
    table = builder.constant("table", np.random.default_rng(3).permutation(256).astype(np.int8))
    last = builder.input("x", TensorType(shape, "int8"))
    for number, operator in enumerate(operators):
        more = (table,) if operator is LAYER else ()
        last = builder.node(operator, (last, *more), f"t{number}", f"n{number}")
    return builder.build((last,))


def products(graph: Graph) -> int:
    """Products of the graph with turned rows, which has the same values."""
    found = TurnedRows(LANES).run(graph)
    x = {"x": np.random.default_rng(1).integers(-128, 128, graph.types["x"].shape).astype(np.int8)}
    (output,) = graph.outputs
    np.testing.assert_array_equal(interpret(found, x)[output], interpret(graph, x)[output])
    count = sum(isinstance(node.operator, RowProducts) for node in found.nodes)
    assert count or found is graph
    assert not count or not any(isinstance(node.operator, Transpose) for node in found.nodes)
    return count


@pytest.mark.parametrize(
    ("rows", "channels", "parts"),
    [(5, 3, 1), (5, 4, 1), (5, 5, 2), (2, 9, 3), (3, 32, 8), (3, 33, 5), (2, 68, 6)],
)
def test_each_block_of_channels_is_a_product_and_there_are_eight_at_most(
    rows: int, channels: int, parts: int
) -> None:
    assert products(chain((1, 1, rows, channels), LAYER, TURN, LAYER)) == parts


@pytest.mark.parametrize(
    ("shape", "operators", "turned"),
    [
        ((1, 1, 6, 3), (LAYER, TURN, LAYER), True),
        ((1, 1, 6, 3), (TURN, LAYER), False),
        ((1, 1, 6, 3), (LAYER, TURN), False),
        ((1, 1, 6, 3), (LAYER, TURN, Slice((0, 0, 0, 0), (1, 1, 1, 1), (1, 1, 3, 5))), False),
        ((1, 1, 6, 3), (LAYER, Reshape((1, 3, 2, 3)), Transpose((0, 3, 1, 2)), LAYER), True),
        ((1, 1, 6, 3), (LAYER, Reshape((1, 3, 2, 3)), Transpose((0, 2, 3, 1)), LAYER), False),
        ((1, 2, 3, 3), (LAYER, Transpose((0, 2, 1, 3)), LAYER), False),
        ((1, 1, 6, 3), (LAYER, TURN, Reshape((1, 1, 18)), Reshape((1, 18))), False),
    ],
)
def test_only_matrices_between_layers_are_turned(
    shape: tuple[int, ...], operators: tuple[TensorOperator, ...], *, turned: bool
) -> None:
    assert bool(products(chain(shape, *operators))) == turned
