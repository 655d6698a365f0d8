"""Structural equality of loop programs."""

import pytest
from hypothesis import given, settings

from dovetail.compiler.loops.equal import equal
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.rewrite import map_statement
from dovetail.compiler.loops.text import to_text

from .strategies import functions

TEXT = """
function "f"
  input x: float32[4]
  output y: float32[4]
  alloc t: float32[4] local:
    for i in 4:
      let v: float32 = x[i] * 0.0:float32:
        t[i] = v + v
    for i in 4 parallel:
      y[i] = max(t[i], nan:float32)"""


@settings(max_examples=50, deadline=None)
@given(functions())
def test_a_function_equals_its_copy(function: Function) -> None:
    assert equal(function, parse(to_text(function)))


def test_names_that_a_function_binds_do_not_count() -> None:
    renamed = (
        TEXT.replace("alloc t", "alloc u")
        .replace("t[i]", "u[k]")
        .replace("for i", "for k")
        .replace("x[i]", "x[k]")
        .replace("y[i]", "y[k]")
    )
    assert equal(parse(TEXT), parse(renamed))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("parallel", "vector"),
        ("0.0:float32", "-0.0:float32"),
        ("v + v", "v * v"),
        ("v + v", "v + x[i]"),
        ("max(", "min("),
        ("local", "register"),
        ("y[i]", "y[3 - i]"),
        ("float32[4] local", "float32[5] local"),
    ],
)
def test_what_differs_is_seen(old: str, new: str) -> None:
    assert not equal(parse(TEXT), parse(TEXT.replace(old, new)))


def test_shared_parts_are_compared_once() -> None:
    function = parse('function "f"\n  input x: int64[1]\n  output y: int64[1]\n  y[0] = x[0]')

    def doubled(times: int) -> Function:
        def change(expr):  # type: ignore[no-untyped-def]
            for _ in range(times):
                expr = expr + expr
            return expr

        body = map_statement(function.body, lambda expr: change(expr) if expr.dtype else expr)
        return Function("f", function.inputs, function.outputs, body)

    assert equal(doubled(60), doubled(60))
    assert not equal(doubled(60), doubled(61))
