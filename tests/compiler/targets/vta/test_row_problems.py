"""Lanes without a channel of rows that a softmax reads, and rows that are refused."""

import numpy as np
import pytest

from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.assembly import Assemble
from dovetail.compiler.graph.operators.integer.products import RowProducts
from dovetail.compiler.graph.operators.integer.softmax import RowSoftmax
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Requantize
from dovetail.compiler.graph.operators.integer.windows import Upsample2d
from dovetail.compiler.graph.operators.movement import Reshape
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.row_problems import (
    is_softmaxed,
    lane_fill,
    longest_row,
    must_end_low,
    row_problem,
)

SOFTMAX = RowSoftmax(0.1, 1 / 256, -128)
SUM, HIDES = (Add(1.0, scale, 0, 0, 0, -128, 127) for scale in (1.0, 2.0))
"""With -128 as the other operand, the second is -128 whatever the first one is."""

COPY, ALL = Lookup(), Assemble((1, 6), ((0, 0),), (1, 1))
SHAPED, REPEATED = Reshape((1, 1, 6, 6)), Upsample2d((1, 1))
RISING = np.arange(-128, 128).astype(np.int8)


def chain(*operators: TensorOperator, made: bool = False) -> Graph:
    """``x``, given by the host, then ``y0``, ``y1``, ...; sums are with ``other``.

    made: ``other`` is looked up, and not given too.
    """
    builder = GraphBuilder()
    last = builder.input("x", TensorType((1, 1, 6, 6), "int8"))
    other = builder.input("other", TensorType((1, 1, 6, 6), "int8"))
    table = builder.constant("table", RISING)
    if made:
        other = builder.node(COPY, (other, table), "made", "made")
    for number, operator in enumerate(operators):
        more = {Add: (other,), Lookup: (table,)}.get(type(operator), ())
        last = builder.node(operator, (last, *more), f"y{number}", f"n{number}")
    return builder.build((last,))


@pytest.mark.parametrize(
    ("operators", "softmaxed", "low", "fill"),
    [
        ((SOFTMAX,), True, True, 0),
        ((ALL, SOFTMAX), True, True, 0),
        ((ALL,), False, False, 0),
        ((COPY, SOFTMAX), False, False, 0),
        ((SUM, SOFTMAX), True, True, -128),
        ((HIDES, SOFTMAX), True, False, -128),
        ((SUM, ALL, SOFTMAX), True, True, -128),
        ((HIDES, ALL, SOFTMAX), True, False, -128),
        ((HIDES, SUM, SOFTMAX), True, False, -128),
        ((SUM,), False, False, 0),
        ((SUM, COPY, SOFTMAX), False, False, 0),
        ((ALL, SUM, SOFTMAX), True, True, 0),
        ((ALL, HIDES, SOFTMAX), True, False, 0),
        ((SHAPED, SUM, SOFTMAX), False, False, -128),
        ((REPEATED, SUM, SOFTMAX), False, False, -128),
        ((SHAPED, SUM), False, False, 0),
        ((SHAPED, SOFTMAX), False, False, 0),
    ],
)
def test_lanes_without_a_channel_are_the_least_where_a_softmax_looks_at_them(
    operators: tuple[TensorOperator, ...], *, softmaxed: bool, low: bool, fill: int
) -> None:
    graph = chain(*operators)
    found = is_softmaxed(graph, "x"), must_end_low(graph, "x"), lane_fill(graph, "x")
    assert found == (softmaxed, low, fill)


def test_only_what_the_host_gives_hides_what_is_there() -> None:
    assert must_end_low(chain(HIDES, SOFTMAX, made=True), "x")
    assert not must_end_low(chain(HIDES, made=True), "x")


def softmax_of(*operators: TensorOperator, channels: int = 6) -> str | None:
    """Why rows of a product, through ``operators``, have no softmax in blocks of four lanes."""
    builder = GraphBuilder()
    x, y = (builder.input(name, TensorType((1, 1, 6, 4), "int8")) for name in "xy")
    if channels != 6:
        y = builder.node(Upsample2d((1, channels // 6)), (y,), "more", "more")
    total = builder.node(RowProducts(0, 0), (x, y), "total", "scores")
    scale = builder.constant("scale", np.full(channels, 1e-3, np.float32))
    last = builder.node(Requantize(0, -128, 127), (total, scale), "scores", "scores")
    other = builder.input("other", TensorType((1, 1, 6, channels), "int8"))
    tables = {True: RISING, False: RISING[::-1].copy()}
    for number, operator in enumerate(operators):
        more: tuple[str, ...] = (other,) if isinstance(operator, Add) else ()
        if isinstance(operator, Lookup):
            more = (builder.constant(f"table{number}", tables[operator is COPY]),)
        last = builder.node(operator, (last, *more), f"y{number}", f"n{number}")
    graph = builder.build((builder.node(SOFTMAX, (last,), "shares", "softmax"),))
    return row_problem(graph, graph.nodes[-1], 4, 64)


def test_rows_that_end_in_a_block_are_known_where_a_product_makes_them() -> None:
    assert softmax_of() is softmax_of(COPY) is softmax_of(SUM) is softmax_of(ALL) is None
    assert softmax_of(COPY, SUM, ALL) is softmax_of(SHAPED) is None
    unknown = "node 'softmax': rows of 6 elements; required a multiple of 4, or a product"
    for operators in ((Lookup(),), (REPEATED,), (SUM, Lookup())):
        assert (softmax_of(*operators) or "").startswith(unknown)
        assert softmax_of(*operators, channels=12) is None


@pytest.mark.parametrize("known", [(True, True), (True, False), (False, True)])
def test_rows_put_together_are_known_where_all_are(known: tuple[bool, bool]) -> None:
    builder = GraphBuilder()
    x, y = (builder.input(name, TensorType((1, 1, 6, 4), "int8")) for name in "xy")
    scale, rows = builder.constant("scale", np.full(6, 1e-3, np.float32)), []
    for number, ends_low in enumerate(known):
        total = builder.node(RowProducts(0, 0), (x, y), f"total{number}", "scores")
        rows.append(builder.node(Requantize(0, -128, 127), (total, scale), f"r{number}", "scores"))
        if not ends_low:
            rows[-1] = builder.input(f"given{number}", TensorType((1, 1, 6, 6), "int8"))
    whole = builder.node(Assemble((2, 6), ((0, 0), (1, 0)), (1, 1)), tuple(rows), "whole", "whole")
    graph = builder.build((builder.node(SOFTMAX, (whole,), "shares", "softmax"),))
    assert (row_problem(graph, graph.nodes[-1], 4, 64) is None) == all(known)


def test_a_row_of_parameters_has_half_of_par_less_a_word() -> None:
    assert [longest_row(8, words) for words in (2, 4, 64)] == [0, 8, 248]
    graph = chain(SOFTMAX)
    (node,) = graph.nodes
    assert "no row_parameters, which softmax needs" in (row_problem(graph, node, 6, 0) or "")
    assert "4 words required" in (row_problem(graph, node, 6, 3) or "")
    assert row_problem(graph, node, 6, 4) is row_problem(graph, node, 3, 4) is None
    graph = chain(SUM)
    assert row_problem(graph, graph.nodes[0], 4, 0) is None
    shared = GraphBuilder()
    x = shared.input("x", TensorType((1, 1, 6, 8), "int8"))
    both = [shared.node(SOFTMAX, (x,), f"y{number}", f"n{number}") for number in (0, 1)]
    graph = shared.build(tuple(both))
    assert "'x' is read elsewhere too" in (row_problem(graph, graph.nodes[0], 4, 64) or "")
