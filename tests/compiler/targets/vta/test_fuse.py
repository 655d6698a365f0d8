"""Which nodes of a graph are one layer."""

import numpy as np

from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.values import Add, Lookup
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.fuse import fuse

POOL = MaxPool2d((2, 2), (1, 1), (0, 0, 0, 0))
SUM = Add(0.75, 0.5, 3, -4, 1, -128, 127)


def layers(graph: Graph) -> list[str]:
    """The operators of each layer."""
    return [
        " ".join(type(node.operator).__name__ for node in layer.nodes)
        for layer in fuse(graph).layers
    ]


def drawn() -> tuple[GraphBuilder, str, str]:
    """A sum, and what a table makes of it."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 4, 4, 4), "int8"))
    table = builder.constant("table", np.arange(-128, 128)[::-1].astype(np.int8))
    total = builder.node(SUM, (x, x), "total", "total")
    return builder, total, builder.node(Lookup(), (total, table), "y", "y")


def test_a_table_is_in_the_layer_before_it() -> None:
    builder, _, y = drawn()
    assert layers(builder.build((y,))) == ["Add Lookup"]


def test_what_is_read_elsewhere_too_is_a_layers_result() -> None:
    builder, total, y = drawn()
    assert layers(builder.build((y, total))) == ["Add", "Lookup"]
    builder, total, y = drawn()
    graph = builder.build((y, builder.node(POOL, (total,), "z", "z")))
    assert sorted(layers(graph)) == ["Add", "Lookup", "MaxPool2d"]


def test_a_table_of_a_table_is_a_layer_of_its_own() -> None:
    builder, _, y = drawn()
    again = builder.node(Lookup(), (y, "table"), "again", "again")
    assert layers(builder.build((again,))) == ["Add Lookup", "Lookup"]
