"""Normalisations of rows run strip by strip with the layers around them."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.integer.norm import RowNorm
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Add
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta import search
from dovetail.compiler.targets.vta.accelerate import compile_accelerated
from dovetail.compiler.targets.vta.draft import Draft, make_draft
from dovetail.compiler.targets.vta.plan import Plan
from dovetail.compiler.targets.vta.planner import Planner
from dovetail.vta_sim.timing import time_program

from .programs import TINY
from .test_parts import assert_exact
from .test_rows_to_pixels import Rows

LOW = replace(TINY, name="low", act_depth=128, par_depth=64)
"""ACT has no room for what is between the layers."""


def block(channels: int) -> Graph:
    """As in ConvNeXt: windows of rows, a normalisation, two products and a residual sum."""
    b = Rows((1, 8, 5, channels))
    (x,), rng = b.given, b.rng
    weights = b.constant("w", rng.integers(-128, 128, (channels, 3, 3, channels)).astype("int8"))
    bias = b.constant("b", rng.integers(-99, 99, channels).astype("int32"))
    y = b.requantized(b.put(Conv2d((1, 1), (1, 1, 1, 1), 1, 3, -2), x, weights, bias))
    bias = b.constant("b", rng.integers(-90_000, 90_000, channels).astype("int32"))
    scale = b.constant("s", rng.uniform(-1, 2, channels).astype("float32") / 3000)
    y = b.put(RowNorm(4321, 11), y, bias, scale)
    y = b.dense(b.table(b.dense(y, 2 * channels)), channels)
    return b.build((b.put(Add(0.5, 0.25, 3, -7, 1, -128, 127), x, y),))


def test_a_normalisation_is_part_of_a_cascade_and_has_the_operators_bytes() -> None:
    graph, options = block(6), CompileOptions(effort=0)
    plans: list[Plan] = []

    def noted(planner: Planner, plan: Plan, *given: Any, **named: Any) -> Draft:
        plans.append(plan)
        return make_draft(planner, plan, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "make_draft", noted)
        part = compile_accelerated(graph, LOW, options, Trace(options), time_program)
    assert part.layers[1].kind == "RowNorm"
    cascades = [range(n, n + len(x.layers)) for n, x in plans[0].cascades.items()]
    assert any(1 in each and len(each) > 1 for each in cascades)
    assert_exact(graph, part, "sim")
