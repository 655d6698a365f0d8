"""Meetings of accesses, compared with all their instances."""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.accesses import accesses
from dovetail.compiler.loops.bounds import Bounds
from dovetail.compiler.loops.dependence import Order, _Constraint, _System, may_meet
from dovetail.compiler.loops.expressions import Buffer, Expr, Load, Variable, as_index
from dovetail.compiler.loops.ir import Store, loops
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import to_text

from .test_simplify import evaluate

Y = Buffer("y", (100, 100), DType.FLOAT32)
I, J = Variable("i"), Variable("j")  # noqa: E741
EXTENTS = (("i", 5), ("j", 4))

SIGNS = {
    Order.SAME: lambda d: d == 0,
    Order.LATER: lambda d: d > 0,
    Order.EARLIER: lambda d: d < 0,
    Order.ANY: lambda d: True,
}


@st.composite
def forms(draw: st.DrawFn) -> Expr:
    base = I * draw(st.integers(-3, 3)) + J * draw(st.integers(-3, 3)) + draw(st.integers(0, 9))
    match draw(st.sampled_from(["plain", "div", "mod"])):
        case "div":
            return base // draw(st.integers(2, 5)) + J * draw(st.integers(0, 1))
        case "mod":
            return base % draw(st.integers(2, 5))
    return base


@settings(max_examples=300, deadline=None)
@given(
    st.tuples(forms(), forms()),
    st.tuples(forms(), forms()),
    st.sampled_from(list(Order)),
    st.sampled_from(list(Order)),
)
def test_a_pair_that_meets_is_never_denied(
    first: tuple[Expr, Expr], second: tuple[Expr, Expr], order_i: Order, order_j: Order
) -> None:
    nest = loops(EXTENTS, Store(Y, first, Load(Y, second)))
    read, write = (each for each in accesses(nest, Bounds()) if each.buffer == Y)
    points = list(itertools.product(range(5), range(4)))
    meets = any(
        SIGNS[order_i](after[0] - before[0])
        and SIGNS[order_j](after[1] - before[1])
        and all(
            evaluate(one, dict(zip("ij", before, strict=True)))
            == evaluate(other, dict(zip("ij", after, strict=True)))
            for one, other in zip(first, second, strict=True)
        )
        for before in points
        for after in points
    )
    assert may_meet(write, read, {"i": order_i, "j": order_j}) or not meets


@pytest.mark.parametrize(
    ("first", "second", "orders", "meets"),
    [
        ((I, J), (I, J), {"i": Order.LATER}, False),
        ((I, J), (I, J), {"j": Order.LATER}, False),
        ((I, J), (I - 1, J), {"i": Order.LATER}, True),
        ((I, J), (I - 1, J), {"i": Order.EARLIER}, False),
        ((I * 4 + J, as_index(0)), (I * 4 + J, as_index(0)), {"i": Order.LATER}, False),
        ((I * 3 + J, as_index(0)), (I * 3 + J, as_index(0)), {"i": Order.LATER}, True),
        ((I * 2, J), (I * 2 + 1, J), {}, False),
        ((I // 2, I % 2), (I // 2, I % 2), {"i": Order.LATER}, False),
        ((I // 2, J), (I // 2, J), {"i": Order.LATER}, True),
        ((I, J), (I + 5, J), {}, False),
        ((I * 6 // 4, J), (I * 6 // 4, J), {"i": Order.LATER}, False),  # 0, 1, 3, 4, 6
        ((I * 3 // 4, J), (I * 3 // 4, J), {"i": Order.LATER}, True),  # 0, 0, 1, 2, 3
        ((I * 6 // 4, J), (I * 6 // 4 + 7, J), {}, False),
        (((I + 2) // 3, J), ((I + J) // 3 + 2, J), {}, True),
        ((I + J, I - J), (I + J, I - J), {"i": Order.LATER}, False),
        ((I + J, as_index(0)), (I + J, as_index(0)), {"i": Order.LATER}, True),
    ],
)
def test_pairs_that_cannot_meet_are_recognised(
    first: tuple[Expr, Expr], second: tuple[Expr, Expr], orders: dict[str, Order], meets: bool
) -> None:
    nest = loops(EXTENTS, Store(Y, first, Load(Y, second)))
    read, write = (each for each in accesses(nest, Bounds()) if each.buffer == Y)
    assert may_meet(write, read, orders) is meets


def test_guards_keep_accesses_apart() -> None:
    function = parse(
        """
        function "f"
          output y: float32[8]
          for i in 8:
            if i < 4:
              y[i] = y[i + 4]
        """
    )
    found = accesses(function.body, Bounds())
    read, write = (each for each in found if each.buffer.name == "y")
    assert not may_meet(read, write, {"i": Order.LATER}), to_text(function)


@pytest.mark.parametrize(
    ("limits", "factors", "expected"),
    [
        # A range that needs no narrowing does not keep the next from it.
        ((0, 3), (1, 1), {"a": (0, 2), "b": (0, 3)}),
        ((-3, 3), (1, -1), {"a": (0, 2), "b": (0, 5)}),
        ((19, 30), (1, 2), {"a": (0, 2), "b": (9, 10)}),
        ((22, 30), (1, 2), {"a": (2, 2), "b": (10, 10)}),
        ((0, 22), (1, 2), {"a": (0, 2), "b": (0, 10)}),
        ((23, 30), (1, 2), None),
        ((-9, -1), (1, 2), None),
    ],
)
def test_ranges_are_narrowed_to_what_a_sum_allows(
    limits: tuple[int, int],
    factors: tuple[int, int],
    expected: dict[str, tuple[int, int]] | None,
) -> None:
    """0 <= a <= 2 and 0 <= b <= 10, by hand."""
    system: Any = SimpleNamespace(ranges={"a": (0, 2), "b": (0, 10)})
    terms: Any = dict(zip("ab", factors, strict=True))
    found = _System.narrow(system, _Constraint(*limits, terms))
    if expected is None:
        assert found is None
    else:
        assert found == (expected != {"a": (0, 2), "b": (0, 10)})
        assert system.ranges == expected
