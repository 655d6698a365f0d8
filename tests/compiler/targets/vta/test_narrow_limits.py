"""Tables: rows that hold the same at the ends are neither looked up nor loaded."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Lookup, Requantize
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.narrow_limits import NarrowLimits
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory
from tests.compiler.targets.vta.test_parts import assert_exact, compiled

X = np.arange(-128, 128)
HARD_SWISH = np.rint(X * np.clip(X + 48, 0, 96) / 96).astype(np.int8)
"""0 up to -47, ``x`` from 48 on."""


def graph_of(table: NDArray[np.int8], *, shared: bool = False) -> Graph:
    """Sums of 4 channels to bytes, and a table of them; ``shared``: the bytes are a result too."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 64, 16, 4), DType.INT32))
    scale = builder.constant("scale", np.ones(4, np.float32))
    y = builder.node(Requantize(0, -128, 127), (x, scale), "y", "y")
    z = builder.node(Lookup(), (y, builder.constant("table", table)), "z", "z")
    return builder.build((y, z) if shared else (z,))


@pytest.mark.parametrize(
    ("table", "limits"),
    [
        (HARD_SWISH, (-47, 127)),
        (-HARD_SWISH[::-1], (-128, 46)),
        (np.stack([HARD_SWISH, np.clip(X, -60, 50)] * 2), (-60, 127)),
        (np.full(256, 3), (-128, -128)),
        (X, (-128, 127)),
    ],
)
def test_limits_leave_what_differs(table: NDArray[np.int8], limits: tuple[int, int]) -> None:
    graph = graph_of(table.astype(np.int8))
    found = NarrowLimits().run(graph)
    operator = found.nodes[0].operator
    assert isinstance(operator, Requantize)
    assert (operator.low, operator.high) == limits
    x = {"x": np.arange(-2048, 2048, dtype=np.int32).reshape(1, 64, 16, 4)}
    np.testing.assert_array_equal(interpret(found, x)["z"], interpret(graph, x)["z"])
    assert NarrowLimits().run(found) is found


def test_limits_of_what_is_read_elsewhere_stay() -> None:
    graph = graph_of(HARD_SWISH, shared=True)
    assert NarrowLimits().run(graph) is graph


def test_rows_outside_the_limits_are_not_loaded() -> None:
    rng = np.random.default_rng(7)
    builder = GraphBuilder()
    name = builder.input("x", TensorType((1, 3, 3, 4), DType.INT8))
    for number, table in enumerate((HARD_SWISH, HARD_SWISH[::-1])):
        weights = rng.integers(-9, 10, (4, 1, 1, 4)).astype(np.int8)
        given = (builder.constant("w", weights), builder.constant("b", np.zeros(4, np.int32)))
        total = builder.node(Conv2d((1, 1), (0,) * 4, 1, 0), (name, *given), f"s{number}", "n")
        scale = builder.constant("scale", np.full(4, 0.2, np.float32))
        node = builder.node(Requantize(0, -128, 127), (total, scale), f"y{number}", f"n{number}")
        name = builder.node(Lookup(), (node, builder.constant("t", table)), f"z{number}", "n")
    graph = builder.build((name,))
    part = compiled(graph, "tiny")
    assert_exact(graph, part, "sim")
    loads = [each for each in part.program if isinstance(each, Load)]
    rows = {each.sram_address: each.count_x for each in loads if each.memory is Memory.TAB}
    # Four words come in a beat: rows begin and end at multiples of four.
    assert rows == {80: 176, 256: 176}
