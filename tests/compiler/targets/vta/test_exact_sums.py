"""Sums that no fixed-point form gives for all pairs: their bytes nevertheless."""

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.fixed_point import AddFixed
from dovetail.compiler.graph.operators.integer.values import Add
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import compile_accelerated
from dovetail.compiler.targets.vta.capabilities import node_refusals
from dovetail.compiler.targets.vta.layers.fixed_point_add import find_fixed_point
from dovetail.compiler.targets.vta.passes import exact_sums
from dovetail.compiler.targets.vta.passes.exact_sums import EXACT_SUMS
from dovetail.compiler.translation.validate import validate
from dovetail.isa.configs import find_config
from dovetail.runtime import run
from dovetail.runtime.module import Module
from dovetail.vta_sim.timing import time_program
from tests.kept_costs import check_costs

TINY = find_config("tiny")
HALF = 1 << 30
SUMS = {
    "collinear": AddFixed(-6, HALF, 0, -31, 1921681490, -1, 1087021813, -18, -14, -128, 127),
    "float32": Add(0.434364914894104, 0.5581102967262268, -19, 24, -28, -128, 127, unsigned=True),
    "difference": AddFixed(80, HALF, -7, 38, -HALF, 0, HALF, -16, 105, -100, 127),
}
"""The first: three pairs in a line, whose sums would have to lie on both sides of it."""


def graph_of(operator: Add | AddFixed, shape: tuple[int, ...]) -> Graph:
    builder = GraphBuilder()
    names = tuple(builder.input(name, TensorType(shape, "int8")) for name in "ab")
    return builder.build((builder.node(operator, names, "y", "add"),))


@pytest.mark.parametrize("name", SUMS)
def test_all_pairs_give_the_bytes_of_the_operator(name: str) -> None:
    operator = SUMS[name]
    assert find_fixed_point(operator).inexact_pairs
    a, b = (each.astype(np.int8)[None, :, :, None] for each in np.mgrid[-128:128, -128:128])
    found = EXACT_SUMS.run(graph_of(operator, a.shape))
    assert not any(isinstance(node.operator, Add | AddFixed) for node in found.nodes)
    (wanted,) = operator.evaluate((a, b))
    np.testing.assert_array_equal(interpret(found, {"a": a, "b": b})["y"], wanted)


def test_the_accelerator_gives_them_and_its_program_is_that_function_of_the_pair() -> None:
    operator = SUMS["collinear"]
    graph = graph_of(operator, (1, 3, 2, 5))
    options = CompileOptions()
    part = compile_accelerated(graph, TINY, options, Trace(options), time_program)
    check_costs([part])
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, (1, 3, 2, 5)).astype(np.int8) for _ in range(2))
    # One of the three in a line, which the nearest form gives wrong.
    a[0, ::2], b[0, ::2] = 4, -35
    a[0, 1], b[0, 1] = 4, (-36, -35, -34, 0, 35)
    (found,) = run(Module.of_part(part), {"a": a, "b": b}).outputs.values()
    np.testing.assert_array_equal(found, operator.evaluate((a, b))[0])
    validate(graph, part)
    assert not any(layer.inexact_pairs for layer in part.layers)


def test_a_sum_that_lacks_more_is_left_and_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_sums, "MOST_PAIRS", 0)
    graph = graph_of(SUMS["collinear"], (1, 3, 2, 5))
    assert EXACT_SUMS.run(graph) is graph
    (refusal,) = node_refusals(graph).values()
    assert "no sum of the vector unit is right for 1 of 65,536 pairs" in refusal.reason
