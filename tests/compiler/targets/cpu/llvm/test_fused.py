"""Multiply and add: one rounding, with the instruction and without, and in the interpreters."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.operators.elementwise import multiply_add
from dovetail.compiler.loops.expressions import Buffer, Constant, MultiplyAdd, Variable
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Function, LoopKind, Store, loops
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions

COUNT = 400
F = DType.FLOAT32
BUFFERS = [Buffer(name, (COUNT,), F) for name in "abcy"]


def program(kind: LoopKind = LoopKind.VECTOR) -> Function:
    a, b, c, y = BUFFERS
    at = (Variable("i"),)
    store = Store(y, at, MultiplyAdd(a[at], b[at], c[at]))
    return Function("fused", (a, b, c), (y,), loops((("i", COUNT),), store, kind))


def rounded(value: Fraction) -> np.float32:
    """The nearest float32; of two, the one whose last bit is 0."""
    near = np.float32(float(value))
    around = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
    return min(around, key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.int32)) & 1))


def numbers() -> list[np.ndarray]:
    """Some sums that cancel, some that lie halfway between two float32 but for a last bit."""
    rng = np.random.default_rng(7)
    a, b, c = (rng.standard_normal(COUNT).astype(np.float32) for _ in range(3))
    c[:100] = -(a[:100] * b[:100])
    a[100:200] = 1 + rng.integers(1, 1 << 12, 100) * np.float32(2**-12)
    b[100:200] = 1 + rng.integers(1, 1 << 12, 100) * np.float32(2**-12)
    c[100:200] = np.ldexp(1, rng.integers(-60, -20, 100)) * rng.choice([-1, 1], 100)
    a[200:300] = rng.integers(-256, 256, 100)
    c[300:] *= np.ldexp(np.float32(1), rng.integers(-40, 40, 100))
    return [a, b, c]


def test_there_is_one_rounding() -> None:
    given_arrays = numbers()
    exact = [
        Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        for a, b, c in zip(*given_arrays, strict=True)
    ]
    expected = np.array([rounded(each) for each in exact])
    np.testing.assert_array_equal(multiply_add(*given_arrays), expected)
    function = program()
    names = dict(zip("abc", given_arrays, strict=True))
    np.testing.assert_array_equal(interpret(function, names)["y"], expected)
    for level in ("native", "x86-64", "avx2"):
        for kind in (LoopKind.VECTOR, LoopKind.SERIAL):
            code = compile_functions([program(kind)], LlvmOptions(level))
            np.testing.assert_array_equal(code.run("fused", names)[0], expected)
    twice = given_arrays[0] * given_arrays[1] + given_arrays[2]
    assert (twice != expected).any()


@given(st.lists(st.floats(width=32), min_size=3, max_size=3))
def test_any_float_is_taken(values: list[float]) -> None:
    arrays = [np.full(COUNT, value, np.float32) for value in values]
    found = compile_functions([program()], LlvmOptions("x86-64")).run("fused", arrays)[0]
    np.testing.assert_array_equal(found, multiply_add(*arrays))


def test_it_is_written_and_read_and_takes_float32_only() -> None:
    text = to_text(program())
    assert "fma(a[i], b[i], c[i])" in text
    assert to_text(parse(text)) == text
    wide = Constant(1.0, DType.FLOAT64)
    with pytest.raises(GraphError, match="fma: operands are float32, float64, float32"):
        MultiplyAdd(Constant(1.0, F), wide, Constant(1.0, F))
