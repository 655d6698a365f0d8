"""Normalisations of rows run strip by strip with the layers around them."""

from dataclasses import replace

import pytest

from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.integer.norm import RowNorm
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Add
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import compile_accelerated
from dovetail.isa.memories import Unit
from dovetail.vta_sim.timing import time_program

from .programs import TINY
from .test_parts import assert_exact
from .test_rows_to_pixels import Rows

LOW = replace(TINY, name="low", act_depth=256, par_depth=64)
"""ACT has no room for what is between the layers."""


def block(channels: int, about: int | None) -> Graph:
    """As in ConvNeXt: windows of rows, a normalisation, two products and a residual sum."""
    b = Rows((1, 12, 6, channels))
    (x,), rng = b.given, b.rng
    weights = b.constant("w", rng.integers(-128, 128, (channels, 3, 3, channels)).astype("int8"))
    bias = b.constant("b", rng.integers(-99, 99, channels).astype("int32"))
    y = b.requantized(b.put(Conv2d((1, 1), (1, 1, 1, 1), 1, 3, -2), x, weights, bias))
    bias = b.constant("b", rng.integers(-90_000, 90_000, channels).astype("int32"))
    scale = b.constant("s", rng.uniform(-1, 2, channels).astype("float32") / 3000)
    y = b.put(RowNorm(4321, 11, about), y, bias, scale)
    y = b.dense(b.table(b.dense(y, 2 * channels)), channels)
    return b.build((b.put(Add(0.5, 0.25, 3, -7, 1, -128, 127), x, y),))


@pytest.mark.parametrize(("channels", "about"), [(8, None), (6, -7)])
def test_normalised_rows_are_read_before_all_are_made(channels: int, about: int | None) -> None:
    graph, options = block(channels, about), CompileOptions(verify=True)
    part = compile_accelerated(graph, LOW, options, Trace(options), time_program)
    assert_exact(graph, part, "sim")
    assert [layer.kind for layer in part.layers][1] == "RowNorm"
    program = zip(part.program, part.layer_of, strict=True)
    order = [layer for each, layer in program if each.unit in (Unit.GEMM, Unit.VECTOR)]
    last = len(order) - order[::-1].index(1)
    assert order.index(2) < last
