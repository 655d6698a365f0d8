"""The meaning of loop programs, against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.expressions import (
    Binary,
    BinaryFunction,
    Bitcast,
    Buffer,
    Cast,
    Expr,
    Unary,
    UnaryFunction,
    Variable,
)
from dovetail.compiler.loops.interpreter import InterpreterError, interpret
from dovetail.compiler.loops.intrinsic import Intrinsic, by_name
from dovetail.compiler.loops.ir import Function, Store, loops
from dovetail.compiler.loops.parse import parse

from .strategies import arrays_for, functions

INTEGERS = (DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.UINT64)
FLOATS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)


def run(text: str, **inputs: Any) -> dict[str, NDArray[Any]]:
    return interpret(parse(text), inputs)


def mapped(dtype: DType, value: Any, *operands: NDArray[Any]) -> NDArray[Any]:
    """``value(x[i], ...)`` of every element of the operands."""
    count = len(operands[0])
    given_ = [np.dtype(each.dtype).name for each in operands]
    buffers = [Buffer(f"x{n}", (count,), DType(name)) for n, name in enumerate(given_)]
    i = Variable("i")
    result: Expr = value(*(buffer[i] for buffer in buffers))
    out = Buffer("y", (count,), dtype)
    function = Function(
        "map", tuple(buffers), (out,), loops((("i", count),), Store(out, (i,), result))
    )
    arrays = {f"x{n}": each for n, each in enumerate(operands)}
    return interpret(function, arrays)["y"]


def sample(dtype: DType) -> NDArray[Any]:
    generator = np.random.default_rng(1)
    if dtype.is_float:
        return (generator.standard_normal(64) * 8).astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    edges = np.array([limits.min, limits.max, 0, 1], dtype=dtype.numpy)
    values = generator.integers(limits.min, limits.max, 60, dtype=dtype.numpy, endpoint=True)
    return np.concatenate([edges, values])


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize(
    ("function", "numpy"),
    [
        (BinaryFunction.ADD, np.add),
        (BinaryFunction.SUB, np.subtract),
        (BinaryFunction.MUL, np.multiply),
        (BinaryFunction.MIN, np.minimum),
        (BinaryFunction.MAX, np.maximum),
    ],
)
def test_arithmetic_is_numpys(dtype: DType, function: BinaryFunction, numpy: Any) -> None:
    a, b = sample(dtype), np.roll(sample(dtype), 7)
    with np.errstate(all="ignore"):
        expected = numpy(a, b)
    found = mapped(dtype, lambda x, y: Binary(function, x, y), a, b)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("function", "numpy"),
    [
        (BinaryFunction.FLOORDIV, np.floor_divide),
        (BinaryFunction.MOD, np.mod),
        (BinaryFunction.REM, np.fmod),
        (BinaryFunction.AND, np.bitwise_and),
        (BinaryFunction.XOR, np.bitwise_xor),
    ],
)
def test_integer_functions_are_numpys(dtype: DType, function: BinaryFunction, numpy: Any) -> None:
    a, b = sample(dtype), np.roll(sample(dtype), 7)
    b = np.where(b == 0, np.ones_like(b), b)
    with np.errstate(all="ignore"):
        expected = numpy(a, b)
    np.testing.assert_array_equal(
        mapped(dtype, lambda x, y: Binary(function, x, y), a, b), expected
    )


def test_integer_division_truncates() -> None:
    a = np.array([7, -7, 7, -7, -(2**31)], np.int32)
    b = np.array([2, 2, -2, -2, -1], np.int32)
    found = mapped(DType.INT32, lambda x, y: Binary(BinaryFunction.DIV, x, y), a, b)
    assert found.tolist() == [3, -3, -3, 3, -(2**31)]


def test_shifts_are_arithmetic_for_signed_and_logical_for_unsigned() -> None:
    a, by = np.array([-128, 127], np.int8), np.array([3, 3], np.int8)
    shr = mapped(DType.INT8, lambda x, y: Binary(BinaryFunction.SHR, x, y), a, by)
    assert shr.tolist() == [-16, 15]
    unsigned = mapped(
        DType.UINT8,
        lambda x, y: Binary(BinaryFunction.SHR, x, y),
        a.view(np.uint8),
        by.view(np.uint8),
    )
    assert unsigned.tolist() == [16, 15]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("function", "numpy"),
    [(UnaryFunction.EXP, np.exp), (UnaryFunction.TANH, np.tanh), (UnaryFunction.RINT, np.rint)],
)
def test_functions_are_rounded_once(dtype: DType, function: UnaryFunction, numpy: Any) -> None:
    x = sample(dtype)
    with np.errstate(all="ignore"):
        expected = numpy(x.astype(np.float64)).astype(dtype.numpy)
    np.testing.assert_array_equal(mapped(dtype, lambda v: Unary(function, v), x), expected)


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("target", [*INTEGERS, *FLOATS])
def test_casts_are_numpys(source: DType, target: DType) -> None:
    x = sample(source)
    if source.is_float and not target.is_float:
        x = np.abs(x)
    with np.errstate(all="ignore"):
        expected = x.astype(target.numpy)
    np.testing.assert_array_equal(mapped(target, lambda v: Cast(target, v), x), expected)


def test_a_bitcast_keeps_the_bits() -> None:
    x = sample(DType.FLOAT32)
    found = mapped(DType.INT32, lambda v: Bitcast(DType.INT32, v), x)
    np.testing.assert_array_equal(found, x.view(np.int32))


def test_a_matrix_product_with_a_fused_end() -> None:
    generator = np.random.default_rng(2)
    a, b = (generator.integers(-128, 128, shape).astype(np.int8) for shape in ((3, 5), (5, 4)))
    found = run(
        """
        function "matmul"
          input a: int8[3, 5]
          input b: int8[5, 4]
          output c: int32[3, 4]
          for i in 3 parallel:
            for j in 4 vector:
              alloc sum: int32[] register:
                sum[] = 0:int32
                for k in 5:
                  sum[] add= cast(int32, a[i, k]) * cast(int32, b[k, j])
                c[i, j] = max(sum[], 0:int32)
        """,
        a=a,
        b=b,
    )
    expected = np.maximum(a.astype(np.int32) @ b.astype(np.int32), 0)
    np.testing.assert_array_equal(found["c"], expected)


def test_a_recurrence_a_while_and_a_branch() -> None:
    found = run(
        """
        function "f"
          output y: int64[8]
          y[0] = 1
          y[1] = 1
          for t in 6:
            y[t + 2] = y[t] + y[t + 1]
          alloc n: int64[] local:
            n[] = 0
            while n[] < 8:
              if y[n[]] % 2 == 0:
                y[n[]] = -1
              n[] add= 1
        """
    )
    assert found["y"].tolist() == [1, 1, -1, 3, 5, -1, 13, 21]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y[0] = x[4]", "index 4 of x, dimension 0, where no loop runs; required 0 to 3"),
        ("for i in 3: y[i - 1] = 0", r"index -1 of y, dimension 0, where i = 0"),
        ("y[0] = y[1]", r"y\[1\] is read where no loop runs, but was never written"),
        ("y[1] = 0", r"1 of 2 elements of output y were never written, the first at \[0\]"),
        ("y[0] = 1 // (x[0] - x[0])", "floordiv of 1 and 0"),
        ("y[0] = shl(1, 64)", "required a shift of 0 to 63"),
        ("invoke dot(x[0 : 4], y[0 : 1])", "no intrinsic 'dot' was given; there are: none"),
    ],
)
def test_what_a_program_must_not_do_is_refused(body: str, message: str) -> None:
    head, _, rest = body.partition(": ")
    lines = [f"  {head}:", f"    {rest}"] if body.startswith("for") else [f"  {body}"]
    text = "\n".join(['function "f"', "  input x: int64[4]", "  output y: int64[2]", *lines])
    with pytest.raises(InterpreterError, match=message):
        run(text, x=np.arange(4))


def test_inputs_of_a_wrong_type_are_refused() -> None:
    text = 'function "f"\n  input x: int64[4]\n  output y: int64[]\n  y[] = x[0]'
    with pytest.raises(InterpreterError, match=r"x is int32\[4\]; required int64\[4\]"):
        run(text, x=np.zeros(4, np.int32))
    with pytest.raises(InterpreterError, match="input x is missing"):
        run(text)


def test_a_program_that_depends_on_the_order_of_a_parallel_loop_is_caught() -> None:
    text = """
        function "f"
          input x: int64[9]
          output y: int64[9]
          y[0] = 0
          for i in 8 KIND:
            y[i + 1] = x[i]
            y[i] = x[i] * 2
        """
    x = np.arange(9) + 5
    serial = parse(text.replace("KIND", "unrolled"))
    racing = parse(text.replace("KIND", "parallel"))
    expected = interpret(serial, {"x": x})["y"]
    assert any((interpret(racing, {"x": x}, seed=seed)["y"] != expected).any() for seed in range(3))
    np.testing.assert_array_equal(interpret(serial, {"x": x}, seed=1)["y"], expected)


DOT = Intrinsic(
    "dot",
    parse(
        """
        function "dot"
          input a: int8[4]
          input b: int8[4]
          output c: int32[]
          for k in 4:
            c[] add= cast(int32, a[k]) * cast(int32, b[k])
        """
    ),
)


def test_an_intrinsic_does_what_it_means() -> None:
    text = """
        function "f"
          input x: int8[3, 8]
          output y: int32[3]
          for i in 3:
            y[i] = 10:int32
            for k in 2:
              invoke dot(x[i : 1, k * 4 : 4], x[0 : 1, 4 : 4], y[i : 1])
        """
    x = np.arange(24, dtype=np.int8).reshape(3, 8)
    found = interpret(parse(text), {"x": x}, intrinsics=by_name(DOT))
    wide = x.astype(np.int32)
    expected = 10 + (wide[:, :4] + wide[:, 4:]) @ wide[0, 4:]
    np.testing.assert_array_equal(found["y"], expected)


def test_an_intrinsic_on_a_wrong_region_is_refused() -> None:
    text = """
        function "f"
          input x: int8[8]
          output y: int32[1]
          y[0] = 0:int32
          invoke dot(x[0 : 4], x[4 : 3], y[0 : 1])
        """
    with pytest.raises(GraphError, match=r"dot: b is int8\[3\] of x; required int8\[4\]"):
        interpret(parse(text), {"x": np.zeros(8, np.int8)}, intrinsics=by_name(DOT))


@settings(max_examples=60, deadline=None)
@given(functions(), st.integers(0, 9))
def test_random_functions_keep_the_rules(function: Function, seed: int) -> None:
    arrays = arrays_for(function, seed)
    interpret(function, arrays)
