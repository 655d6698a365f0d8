"""Simpler indices and programs, against evaluation."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.arithmetic import binary, constant
from dovetail.compiler.loops.bounds import Bounds
from dovetail.compiler.loops.canonicalize import canonicalize
from dovetail.compiler.loops.expressions import (
    Binary,
    BinaryFunction,
    Constant,
    Expr,
    Select,
    Variable,
    as_index,
)
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.simplify import simplify
from dovetail.compiler.loops.text import expr_to_text, to_text
from dovetail.compiler.loops.traverse import fold

from .strategies import arrays_for, functions

X, Y, Z = (Variable(name) for name in "xyz")
RANGES = {"x": (0, 7), "y": (0, 3), "z": (-5, 5)}


def evaluate(expr: Expr, values: Mapping[str, int]) -> Any:
    def combine(node: Expr, below: tuple[Any, ...]) -> Any:
        match node:
            case Constant(value=value, dtype=dtype):
                return constant(value, dtype)
            case Variable(name=name):
                return values[name]
            case Binary(function=function, left=left):
                return binary(function, left.dtype)(*below)
            case Select():
                return below[1] if below[0] else below[2]
        raise AssertionError(node)

    return fold(expr, combine)


@st.composite
def indices(draw: st.DrawFn, depth: int = 4) -> Expr:
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from([X, Y, Z]) | st.integers(-9, 9).map(as_index))
    kind = draw(st.sampled_from(["add", "sub", "mul", "div", "mod", "min", "max", "select"]))
    left = draw(indices(depth - 1))
    match kind:
        case "mul":
            return left * draw(st.integers(-8, 8))
        case "div":
            return left // draw(st.sampled_from([1, 2, 3, 4, 6, 8, 16]))
        case "mod":
            return left % draw(st.sampled_from([1, 2, 3, 4, 6, 8, 16]))
        case "select":
            compare = draw(
                st.sampled_from(
                    [BinaryFunction.LT, BinaryFunction.LE, BinaryFunction.EQ, BinaryFunction.NE]
                )
            )
            condition = Binary(compare, left, draw(indices(depth - 2 if depth > 1 else 0)))
            return Select(condition, draw(indices(depth - 1)), draw(indices(depth - 1)))
    return Binary(BinaryFunction(kind), left, draw(indices(depth - 1)))


@settings(max_examples=300, deadline=None)
@given(indices())
def test_the_value_stays(expr: Expr) -> None:
    bounds = Bounds(RANGES)
    simple = simplify(expr, bounds)
    low, high = bounds.of(simple)
    for values in itertools.product(*(range(a, b + 1, 2) for a, b in RANGES.values())):
        named = dict(zip(RANGES, values, strict=True))
        expected = evaluate(expr, named)
        assert evaluate(simple, named) == expected, expr_to_text(expr)
        assert low <= expected <= high


@settings(max_examples=150, deadline=None)
@given(indices(), indices(), indices(3))
def test_the_value_stays_where_a_guard_holds(left: Expr, right: Expr, expr: Expr) -> None:
    guard = left < right
    bounds = Bounds(RANGES).where(simplify(guard, Bounds(RANGES)))
    simple = simplify(expr, bounds)
    for values in itertools.product(*(range(a, b + 1, 2) for a, b in RANGES.values())):
        named = dict(zip(RANGES, values, strict=True))
        if evaluate(guard, named):
            assert evaluate(simple, named) == evaluate(expr, named), expr_to_text(expr)


@settings(max_examples=100, deadline=None)
@given(indices())
def test_simplifying_again_changes_nothing(expr: Expr) -> None:
    bounds = Bounds(RANGES)
    once = simplify(expr, bounds)
    assert simplify(once, bounds) == once


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ((X * 4) // 4, "x"),
        ((X * 8 + Y) // 8, "x"),
        ((X * 8 + Y) % 8, "y"),
        ((X * 8 + Y + 4) // 4, "x * 2 + 1"),
        ((Z // 4) * 4 + Z % 4, "z"),
        ((Z % 8) % 4, "z % 4"),
        ((Z // 4) // 2, "z // 8"),
        ((X // 4) * 4 + X % 4 + Y - X, "y"),
        ((Z * 6 + 3) // 4, "(z * 3 + 1) // 2"),
        ((X * 4 + Y) // 8, "x // 2"),
        ((X * 4 + Y) % 8, "x % 2 * 4 + y"),
        (Binary(BinaryFunction.MIN, X, Y + 7), "x"),
        (Binary(BinaryFunction.MAX, X - Y, Z - 20), "x - y"),
        (X - 1 - (X - 2), "1"),
        (Select(X < 8, Y, Z), "y"),
        (Select(Y * 2 < X - 8, Y, Z), "z"),
    ],
)
def test_indices_become_simple(expr: Expr, text: str) -> None:
    assert expr_to_text(simplify(expr, Bounds(RANGES))) == text


def test_constants_of_all_dtypes_are_folded_as_they_are_computed() -> None:
    third = Binary(BinaryFunction.DIV, Constant(1.0, DType.FLOAT32), Constant(3.0, DType.FLOAT32))
    assert simplify(third) == Constant(float(np.float32(1) / np.float32(3)), DType.FLOAT32)
    wrapped = Binary(BinaryFunction.ADD, Constant(127, DType.INT8), Constant(1, DType.INT8))
    assert simplify(wrapped) == Constant(-128, DType.INT8)
    zero = Binary(BinaryFunction.DIV, Constant(1, DType.INT8), Constant(0, DType.INT8))
    assert simplify(zero) == zero


@settings(max_examples=60, deadline=None)
@given(functions(), st.booleans())
def test_a_simpler_program_does_the_same(function: Function, keep: bool) -> None:
    simple = canonicalize(function, keep_loops=keep)
    arrays = arrays_for(function)
    expected, found = interpret(function, arrays)["y"], interpret(simple, arrays)["y"]
    np.testing.assert_array_equal(found, expected)


def test_a_loop_that_is_guarded_as_a_whole_gets_shorter() -> None:
    text = """
        function "f"
          output y: float32[12]
          for i in 12:
            if i + 4 <= 11:
              if i < 9:
                y[i] = 0.0:float32
        """
    assert to_text(canonicalize(parse(text))).splitlines()[2:] == [
        "  for i in 8:",
        "    y[i] = 0.0:float32",
    ]


def test_branches_that_are_decided_vanish() -> None:
    function = parse(
        """
        function "f"
          input x: float32[12]
          output y: float32[12]
          for o in 3:
            for i in 4:
              if o * 4 + i < 12:
                y[o * 4 + i] = select((0 <= i) & (i < 3), x[(o * 4 + i) // 1], 0.0:float32)
              else:
                y[0] = 1.0:float32
          for n in 0:
            y[n] = 2.0:float32
          for u in 1:
            if u < 1:
              y[u] = x[u]
        """
    )
    assert to_text(canonicalize(function, keep_loops=False)).splitlines()[3:] == [
        "  for o in 3:",
        "    for i in 4:",
        "      y[o * 4 + i] = select(i < 3, x[o * 4 + i], 0.0:float32)",
        "  y[0] = x[0]",
    ]
