"""Padded tensors that are read elsewhere too are written once, inside their border."""

import numpy as np
import pytest

from dovetail.compiler.graph.groups import group_nodes
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.contractions import Contract
from dovetail.compiler.graph.operators.integer.values import Add
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d
from dovetail.compiler.graph.operators.movement import PadTensor, Slice
from dovetail.compiler.graph.operators.windows import WindowReduce
from dovetail.compiler.pipeline.passes import Pipeline
from dovetail.compiler.targets.cpu.layouts.share_borders import ShareBorders
from dovetail.compiler.targets.cpu.segment import EXACT_PASSES, compile_segment

from ....graph.graphs import assert_same_meaning, convolution, image_builder, kinds, random_input

BEFORE = Pipeline(tuple(each for each in EXACT_PASSES.passes if each.name != "share_borders"))
ADD = Add(0.7, 1.3, 3, -9, 5, -120, 127, True)


def residual(pooled: bool, channels: int = 16) -> Graph:
    """A layer, or a pool, that a layer with a border and a sum read."""
    builder = image_builder((1, 9, 8, channels))
    x = convolution(builder, "x", channels)
    if pooled:
        x = builder.node(MaxPool2d((3, 3), (2, 2), (1, 1, 1, 1)), (x,), "p", "pool")
    y = convolution(builder, x, channels)
    return builder.build((builder.node(ADD, (y, x), "t", "add"),))


@pytest.mark.parametrize("pooled", [False, True])
def test_a_residual_is_read_inside_of_the_border(pooled: bool) -> None:
    graph = residual(pooled)
    before = BEFORE.run(graph)
    after = ShareBorders().run(before)
    assert_same_meaning(before, after)
    assert kinds(after).count("Slice") == kinds(before).count("Slice") + 1
    groups = group_nodes(after)
    anchored = [
        nodes
        for nodes in groups
        if any(isinstance(n.operator, Contract | WindowReduce) for n in nodes)
    ]
    borders = [nodes[-1] for nodes in anchored if isinstance(nodes[-1].operator, PadTensor)]
    assert len(borders) == 1
    assert not any(isinstance(nodes[-1].operator, Slice) for nodes in groups)


@pytest.mark.parametrize("channels", [16, 20])
@pytest.mark.parametrize("pooled", [False, True])
def test_it_keeps_its_bytes(pooled: bool, channels: int) -> None:
    graph = residual(pooled, channels)
    x = random_input(graph)
    found = compile_segment(graph, passes=EXACT_PASSES).run(x)
    np.testing.assert_array_equal(found["t"], run(graph, x)["t"])


def test_what_nothing_pads_stays() -> None:
    builder = image_builder()
    graph = BEFORE.run(builder.build((convolution(builder, "x", 16),)))
    assert ShareBorders().run(graph) is graph


def test_what_no_contraction_makes_stays() -> None:
    """A sum of inputs is padded for one layer, and read by another sum."""
    builder = image_builder((1, 9, 8, 16))
    x = builder.node(ADD, ("x", "x"), "s", "add")
    y = builder.node(ADD, (convolution(builder, x, 16), x), "t", "add")
    graph = BEFORE.run(builder.build((y,)))
    assert "PadTensor" in kinds(graph)
    assert ShareBorders().run(graph) is graph
