"""Affine indices obey arithmetic; stages refuse indices that leave their buffers."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.errors import GraphError
from dovetail.compiler.tensor.ir import Affine, Buffer, Fold, Loop, Ref, Scope, Stage, var

NAMES = ("a", "b", "c")
NUMBERS = st.integers(-9, 9)
AFFINES = st.builds(Affine.make, NUMBERS, st.dictionaries(st.sampled_from(NAMES), NUMBERS))
PLACES = st.fixed_dictionaries(dict.fromkeys(NAMES, NUMBERS))


def _at(index: Affine, place: dict[str, int]) -> int:
    return index.constant + sum(factor * place[name] for name, factor in index.terms)


@given(AFFINES, AFFINES, NUMBERS, PLACES)
def test_affine_arithmetic_is_that_of_its_values(
    left: Affine, right: Affine, factor: int, place: dict[str, int]
) -> None:
    assert _at(left + right, place) == _at(left, place) + _at(right, place)
    assert _at(left + factor, place) == _at(left, place) + factor
    assert _at(left * factor, place) == _at(left, place) * factor
    moved = {**place, "a": _at(right, place)}
    assert _at(left.substitute("a", right), place) == _at(left, moved)


@given(AFFINES, st.lists(st.integers(1, 4), min_size=3, max_size=3))
def test_limits_are_the_smallest_and_largest_values(index: Affine, sizes: list[int]) -> None:
    extents = dict(zip(NAMES, sizes, strict=True))
    values = [
        _at(index, dict(zip(NAMES, place, strict=True))) for place in product(*map(range, sizes))
    ]
    assert index.limits(extents) == (min(values), max(values))


def test_normal_form_is_unique() -> None:
    assert Affine.make(1, {"b": 2, "a": 0}) == var("b") * 2 + 1
    assert var("a") + var("a") * -1 == Affine()
    assert str(var("y") * 2 + var("x") + 3) == "x + 2*y + 3"
    assert str(Affine()) == "0"


def test_offset_counts_elements() -> None:
    buffer = Buffer("b", (3, 4, 5), "int8", Scope.ACT)
    assert buffer.strides == (20, 5, 1)
    assert (
        Ref(buffer, (var("a"), var("b") + 1, Affine(2))).offset == var("a") * 20 + var("b") * 5 + 7
    )


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ((var("y"), var("x") + 1), r"x \+ 1\] runs from 1 to 3 in dimension 1; required 0 to 2"),
        ((var("y") + -1, var("x")), "runs from -1 to 0 in dimension 0; required 0 to 1"),
        ((var("y"), var("z")), "is indexed by 'z'; required one of its loops: y, x"),
        ((var("y"),), "has 1 indices; its buffer has 2 dimensions"),
    ],
)
def test_stage_refuses_indices_that_leave_the_buffer(
    indices: tuple[Affine, ...], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        _stage((Loop("y", 2), Loop("x", 3)), indices)


def test_stage_refuses_two_loops_of_one_name() -> None:
    with pytest.raises(GraphError, match="stage s: two loops have one name"):
        _stage((Loop("y", 2), Loop("y", 2)), (var("y"), var("y")))


def _stage(loops: tuple[Loop, ...], indices: tuple[Affine, ...]) -> Stage:
    target = Ref(Buffer("t", (2, 3), "int8", Scope.ACT), indices)
    return Stage("s", loops, frozenset(), target, Fold.NONE, target)
