"""Changes of order that keep the meaning of a loop, and those that do not."""

import pytest

from dovetail.compiler.loops.bounds import Bounds
from dovetail.compiler.loops.ir import Block, For, LoopKind, Stmt
from dovetail.compiler.loops.legality import (
    band_conflict,
    carried,
    describe,
    fission_conflict,
    join_conflict,
    race,
    reorder_conflict,
)
from dovetail.compiler.loops.parse import parse

HEAD = """
function "f"
  input x: float32[8, 8]
  output y: float32[8, 8]
  output s: float32[8]
"""
APART = "y[i, j] = x[i, j]"
SUM = "s[i] add= x[i, j]"
CHAIN = "y[i, j + 1] = y[i, j]"
DIAGONAL = "y[i + 1, j] = y[i, j + 1]"
BELOW = "y[i + 1, j] = y[i, j]"


def nest(body: str, kind: str = "") -> For:
    """``body`` in a loop of j in one of i, 7 iterations each."""
    text = f"{HEAD}  for i in 7:\n    for j in 7{kind}:\n"
    found = parse(text + "".join(f"      {line}\n" for line in body.splitlines())).body
    assert isinstance(found, For)
    return found


def inner(loop: For) -> For:
    assert isinstance(loop.body, For)
    return loop.body


def parts(loop: For) -> tuple[Stmt, Stmt]:
    assert isinstance(loop.body, Block)
    first, second = loop.body.statements
    return first, second


@pytest.mark.parametrize(
    ("body", "of_i", "of_j"),
    [
        (APART, False, False), (SUM, False, False), (CHAIN, False, True),
        (BELOW, True, False), (DIAGONAL, True, False), ("s[0] = x[i, j]", True, True),
    ],
)  # fmt: skip
def test_a_loop_carries_what_two_iterations_do_to_one_element(
    body: str, of_i: bool, of_j: bool
) -> None:
    loop = nest(body)
    assert (carried(loop, Bounds()) is not None) == of_i
    assert (carried(inner(loop), Bounds()) is not None) == of_j


def test_updates_may_change_their_order_but_not_happen_at_once() -> None:
    loop = inner(nest(SUM))
    assert carried(loop, Bounds()) is None
    assert carried(loop, Bounds(), reductions=True) is not None
    assert carried(nest(SUM), Bounds(), reductions=True) is None


@pytest.mark.parametrize("kind", LoopKind)
def test_kinds_of_loops_keep_an_order_or_not(kind: LoopKind) -> None:
    """Sums may be in lanes, and not on threads; a chain may be on neither."""
    free = kind in ("parallel", "vector", "block", "thread", "virtual")
    for body, wrong in (
        (CHAIN, free),
        (APART, False),
        (SUM, kind in ("parallel", "block", "thread")),
    ):
        loop = inner(nest(body))
        changed = For(loop.variable, loop.extent, kind, loop.body, loop.annotations)
        assert (race(changed, Bounds()) is not None) == wrong, body


@pytest.mark.parametrize(
    ("body", "turned", "kept"),
    [(APART, False, False), (SUM, False, False), (BELOW, False, True), (CHAIN, False, True),
     (DIAGONAL, True, True), ("y[i + 1, j + 1] = y[i, j]", False, True)],
)  # fmt: skip
def test_loops_change_places_where_no_element_is_met_the_other_way(
    body: str, turned: bool, kept: bool
) -> None:
    loop = nest(body)
    band = loop, inner(loop)
    assert (reorder_conflict(band, ("j", "i"), Bounds()) is not None) == turned
    assert reorder_conflict(band, ("i", "j"), Bounds()) is None
    assert (band_conflict(band, Bounds()) is not None) == kept
    assert band_conflict((), Bounds()) is None


@pytest.mark.parametrize(
    ("body", "apart", "together"),
    [
        ("y[i, j] = x[i, j]\ns[j] = y[i, j]", False, False),
        ("y[i, j + 1] = x[i, j]\ns[j] = y[i, j]", False, True),
        ("y[i, j] = x[i, j]\ns[j] = y[i, j + 1]", True, False),
        ("s[i] add= x[i, j]\ns[i] add= y[i, j]", False, False),
        ("s[i] add= x[i, j]\ns[i] = y[i, j]", True, True),
    ],
)
def test_a_loop_is_split_and_joined_where_later_iterations_do_not_matter(
    body: str, apart: bool, together: bool
) -> None:
    loop = inner(nest(body))
    assert (fission_conflict(loop, *parts(loop), Bounds()) is not None) == apart
    second, first = parts(loop)
    assert (join_conflict(loop, first, second, Bounds()) is not None) == together


def test_a_conflict_is_told_by_its_statements() -> None:
    conflict = carried(inner(nest(CHAIN)), Bounds())
    assert conflict is not None
    assert describe(conflict) == "y, by 'y[i, j + 1] = y[i, j]' in two iterations"
    loop = inner(nest("y[i, j] = x[i, j]\ns[j] = y[i, j + 1]"))
    conflict = fission_conflict(loop, *parts(loop), Bounds())
    assert conflict is not None
    assert describe(conflict) == "y, by 's[j] = y[i, j + 1]' and 'y[i, j] = x[i, j]'"
