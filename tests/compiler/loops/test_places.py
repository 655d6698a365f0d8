"""Iterations that indices alone keep apart, compared with all iterations."""

import itertools
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import Buffer, Expr, Load, Scope, Variable, as_index
from dovetail.compiler.loops.intrinsic import PREFETCH
from dovetail.compiler.loops.ir import (
    Allocate,
    For,
    Invoke,
    Let,
    LoopKind,
    Region,
    Stmt,
    Store,
    block,
    loops,
)
from dovetail.compiler.loops.places import places

from .test_simplify import evaluate

Y = Buffer("y", (100, 100), DType.INT64)
I, A, B, S, V = map(Variable, ("i", "a", "b", "s", "v"))  # noqa: E741
ITERATIONS = 5
Box = tuple[tuple[int, int], ...]
"""First element and number of elements, in each dimension."""


@st.composite
def forms(draw: st.DrawFn) -> Expr:
    """Sums of i, a, b, s and v, in any order, with quotients and remainders at times."""
    terms = [draw(st.sampled_from([I, A, B, S, V, I, I])) for _ in range(draw(st.integers(1, 3)))]
    result = as_index(draw(st.integers(-4, 4)))
    for term in terms:
        factor = draw(st.integers(-4, 8))
        match draw(st.sampled_from(["sum", "sum", "difference", "inside", "quotient", "rest"])):
            case "sum":
                result = result + term * factor
            case "difference":
                result = result - term * factor
            case "inside":
                result = (result + term) * draw(st.integers(1, 3))
            case "quotient":
                result = result + (term * factor + 1) // draw(st.integers(2, 4))
            case _:
                result = result + (term + factor) % draw(st.integers(2, 4))
    return result


@st.composite
def bodies(draw: st.DrawFn) -> Stmt:
    """The body of a loop over i: stores, loads and regions of y, in loops over a and b."""
    statements: list[Stmt] = []
    for _ in range(draw(st.integers(1, 2))):
        index = (draw(forms()), draw(forms()))
        match draw(st.sampled_from(["store", "load", "region"])):
            case "store":
                statements.append(Store(Y, index, as_index(1)))
            case "load":
                statements.append(Store(Y, index, Load(Y, (draw(forms()), draw(forms())))))
            case _:
                shape = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
                statements.append(Invoke("f", (Region(Y, index, shape),)))
    body: Stmt = Let(V, draw(forms()), block(*statements))
    extents = [("a", draw(st.integers(1, 4))), ("b", draw(st.integers(1, 2)))]
    body = loops(tuple(extents), body)
    if draw(st.booleans()):
        body = block(
            body, loops((("a", draw(st.integers(1, 4))),), For("b", I, LoopKind.SERIAL, bare(body)))
        )
    return body


def bare(stmt: Stmt) -> Stmt:
    """The body inside the loops of ``stmt``."""
    return bare(stmt.body) if isinstance(stmt, For) else stmt


def touched(stmt: Stmt, values: Mapping[str, int]) -> Iterator[Box]:
    """Everything of y that a run of ``stmt`` touches."""

    def box(indices: tuple[Expr, ...], sizes: tuple[int, ...] = (1, 1)) -> Box:
        starts = (evaluate(index, values) for index in indices)
        return tuple(zip(starts, sizes, strict=True))

    match stmt:
        case For(variable=name, extent=extent, body=body):
            for value in range(evaluate(extent, values)):
                yield from touched(body, {**values, name: value})
        case Let(variable=variable, value=value, body=body):
            yield from touched(body, {**values, variable.name: evaluate(value, values)})
        case Store(indices=indices, value=value):
            yield box(indices)
            if isinstance(value, Load):
                yield box(value.indices)
        case Invoke(operands=(region,)):
            yield box(region.start, region.shape)
        case _:
            for each in stmt.statements:  # type: ignore[union-attr]
                yield from touched(each, values)


def elements(boxes: Iterator[Box]) -> set[tuple[int, ...]]:
    return {
        element
        for box in boxes
        for element in itertools.product(*(range(start, start + size) for start, size in box))
    }


@settings(max_examples=200)
@given(bodies(), st.integers(0, 6))
def test_iterations_that_are_apart_share_no_element(body: Stmt, outer: int) -> None:
    if not places(body).apart("y", "i"):
        return
    outside = {"s": outer, "v": 0, "a": 0, "b": 0}
    found = [elements(touched(body, {**outside, "i": i})) for i in range(ITERATIONS)]
    for one, other in itertools.combinations(found, 2):
        assert not one & other


def store(row: Expr, column: Expr, value: Expr | None = None) -> Stmt:
    return Store(Y, (row, column), as_index(1) if value is None else value)


IN_A = (("a", 4),)


@pytest.mark.parametrize(
    ("body", "apart"),
    [
        (store(I, A), True),
        (loops(IN_A, store(I * 4 + A, S)), True),
        (loops(IN_A, store(I * 3 + A, S)), False),
        (loops(IN_A, store(S - I * 4 - A, S)), True),
        (loops(IN_A, store(S - I * 3 + A, S)), False),
        (loops(IN_A, store(I * 4 - A, S)), True),
        (store(I % 4, S), False),
        (store(I // 2, S), False),
        (store(I * 8 + S % 4, S), False),
        (block(store(I * 2 + 2, S), store((I + 1) * 2, S)), True),
        (block(store(I * 2, S), store(I + I + 1, S)), True),
        (block(store(I * 2, S), store(I * 2 + 2, S)), False),
        (block(store(I * 2, S), store(I * -2, S)), False),
        (block(store(I + S, S), store(I, S)), False),
        (block(store(I + S, A), store(S + I, A)), True),
        (store(I, S, Load(Y, (I + 1, S))), False),
        (store(I, S, Load(Y, (I, S + 1))), True),
        (block(store(I, S), store(I + 1, I)), False),
        (Let(V, I // 2, store(I + V, S)), False),
        (For("a", I, LoopKind.SERIAL, store(I * 9 + A, S)), False),
        (block(loops((("a", 2),), store(I * 2 + A, S)), loops(IN_A, store(I * 2 + A, S))), False),
        (Invoke("f", (Region(Y, (I * 3, S), (3, 9)),)), True),
        (Invoke("f", (Region(Y, (I * 3, S), (4, 9)),)), False),
    ],
)
def test_one_dimension_shows_it_or_nothing_does(body: Stmt, apart: bool) -> None:
    assert places(body).apart("y", "i") is apart


def test_buffers_of_the_body_and_what_is_only_brought_near_are_no_places() -> None:
    own = Buffer("t", (4,), DType.INT64, Scope.LOCAL)
    near = Invoke(PREFETCH, (Region(Y, (S, S), (1, 1)),))
    found = places(Allocate(own, block(Store(own, (S,), as_index(0)), near, store(I, S, own[S]))))
    assert set(found.by_buffer) == {"y"}
    assert [each.writes for each in found.by_buffer["y"]] == [True]
    assert places(store(S, S, Load(Y, (I, S)))).by_buffer["y"][1].writes is False
