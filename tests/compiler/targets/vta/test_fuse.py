"""Nodes of a graph that are one layer."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.values import Add, Lookup
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.targets.vta.passes.fuse import fuse
from dovetail.isa.configs import find_config
from dovetail.runtime import run
from tests.end_to_end.models import Network, reference

from ...graph.passes.integer_layers.models import integer_graph

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


@pytest.mark.parametrize("depth", [64, 2048])
@pytest.mark.parametrize("kind", ["sum", "product", "joined"])
def test_both_operands_may_be_parts_of_a_tensor(kind: str, depth: int) -> None:
    """One of them is copied: a layer would look for both where one is loaded."""
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(4, 8, 8), 16, (1, 1))
    a, b = (net.part(x, first, 8) for first in (0, 8))
    if kind == "joined":
        a, b = (net.conv(x, 8, (1, 1)) for _ in range(2))
        y = net.add(net.conv(net.concat(a, b), 8, (1, 1)), net.add(a, b))
    else:
        y = net.add(a, b) if kind == "sum" else net.multiply(a, b)
    small = replace(find_config("tiny"), name="small", act_depth=depth, act_banks=4)
    image = np.random.default_rng(1).integers(-128, 128, (1, 4, 8, 8), np.int8)
    model = net.model(y)
    (found,) = run(compile(model, small, CompileOptions(effort=0)), image).outputs.values()
    np.testing.assert_array_equal(found, reference(model, image))


@pytest.mark.parametrize("part", [False, True])
def test_a_sum_with_part_of_what_its_convolution_reads_is_a_layer_of_its_own(part: bool) -> None:
    """Each item in ACT is of one view of a tensor; where that is loaded, the other is elsewhere."""
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(4, 8, 8), 16, (1, 1))
    other = net.part(x, 8, 8) if part else net.conv(x, 8, (1, 1))
    model = net.model(net.add(other, net.conv(x, 8, (1, 1))))
    assert len(fuse(integer_graph(model)).layers) == 3
    small = replace(find_config("tiny"), name="small", act_depth=128, act_banks=4)
    image = np.random.default_rng(1).integers(-128, 128, (1, 4, 8, 8), np.int8)
    (found,) = run(compile(model, small, CompileOptions(effort=0)), image).outputs.values()
    np.testing.assert_array_equal(found, reference(model, image))
