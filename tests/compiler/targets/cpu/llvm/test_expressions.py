"""Every function of expressions on every dtype, against the interpreter, in lanes and scalar."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.arithmetic import binary, cast, constant
from dovetail.compiler.loops.expressions import (
    Binary,
    BinaryFunction,
    Cast,
    Constant,
    Expr,
    Unary,
    UnaryFunction,
)
from dovetail.compiler.loops.ir import LoopKind

from .kernels import LEVELS, run_elementwise, values_of

INTEGER_ONLY = {
    BinaryFunction.AND,
    BinaryFunction.OR,
    BinaryFunction.XOR,
    BinaryFunction.SHL,
    BinaryFunction.SHR,
}
EXACT = [f for f in BinaryFunction if f is not BinaryFunction.POW]
COUNT = 83


def same(found: np.ndarray, expected: np.ndarray) -> None:
    """Bit for bit, all NaN alike."""
    assert found.dtype == expected.dtype
    if found.dtype == DType.BFLOAT16.numpy:
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    if found.dtype.kind == "f":
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[number], np.signbit(expected)[number])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", list(DType))
def test_binary_functions_equal_the_interpreter(dtype: DType, level: str) -> None:
    functions = [f for f in EXACT if not (dtype.is_float and f in INTEGER_ONLY)]
    a, b = values_of(dtype, COUNT), values_of(dtype, COUNT, 1)[::-1].copy()
    expected: dict[BinaryFunction, list] = {f: [] for f in functions}
    b_of = {}
    for function in functions:
        divisor = b.copy()
        if not dtype.is_float and function.value in ("div", "floordiv", "mod", "rem"):
            divisor[divisor == 0] = 1
        if function in (BinaryFunction.SHL, BinaryFunction.SHR):
            bits = 1 if dtype is DType.BOOL else dtype.bytes * 8
            divisor = (np.abs(b.astype(np.int64)) % bits).astype(b.dtype)
        b_of[function] = divisor
        compute = binary(function, dtype)
        with np.errstate(all="ignore"):
            for x, y in zip(a, divisor, strict=True):
                held = (constant(v if dtype.is_float else int(v), dtype) for v in (x, y))
                expected[function].append(compute(*held))
    kind = LoopKind.VECTOR
    for function in functions:

        def apply(x: Expr, y: Expr, function: BinaryFunction = function) -> Expr:
            return Binary(function, x, y)

        found = run_elementwise((a, b_of[function]), apply, kind, level)
        same(found, np.array(expected[function], dtype=found.dtype))
        kind = LoopKind.SERIAL if kind is LoopKind.VECTOR else LoopKind.VECTOR


@pytest.mark.parametrize("function", ["div", "mod", "rem", "floordiv"])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT32, DType.INT64, DType.UINT16])
def test_integer_division_by_zero_gives_zero(dtype: DType, function: str) -> None:
    a = values_of(dtype, 40)
    found = run_elementwise(
        (a, np.zeros_like(a)), lambda x, y: Binary(BinaryFunction(function), x, y)
    )
    np.testing.assert_array_equal(found, np.zeros_like(a))


@pytest.mark.parametrize("kind", [LoopKind.VECTOR, LoopKind.SERIAL])
@pytest.mark.parametrize("dtype", [d for d in DType if not d.is_float])
def test_integer_powers_equal_the_interpreter(dtype: DType, kind: LoopKind) -> None:
    a = values_of(dtype, COUNT)
    a[a == 0] = 1
    b = (values_of(dtype, COUNT, 1).astype(np.int64) % 70 - 3 * dtype.is_signed).astype(a.dtype)
    found = run_elementwise((a, b), lambda x, y: Binary(BinaryFunction.POW, x, y), kind)
    compute = binary(BinaryFunction.POW, dtype)
    expected = [compute(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected, dtype=a.dtype))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("source", list(DType))
def test_casts_equal_the_interpreter(source: DType, level: str) -> None:
    a = values_of(source, COUNT)
    if source.is_float:
        edges = [2.0**p + d for p in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, 0, 0.5)]
        with np.errstate(over="ignore"):
            a = np.concatenate([a, np.array([*edges, *(-x for x in edges)]).astype(a.dtype)])
    for target in DType:
        if source.is_float and target in (DType.UINT32, DType.UINT64):
            a = np.where(a.astype(np.float64) > -(2.0**63), a, np.zeros_like(a))
        found = run_elementwise((a,), lambda x, t=target: Cast(t, x), LoopKind.VECTOR, level)
        compute = cast(source, target)
        with np.errstate(all="ignore"):
            held = [constant(v if source.is_float else int(v), source) for v in a]
            expected = np.array([compute(v) for v in held], dtype=target.numpy)
        same(found, expected)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", list(DType))
def test_exact_unary_functions_equal_numpy(dtype: DType, level: str) -> None:
    a = values_of(dtype, COUNT)
    tests = {"isnan": np.isnan, "isinf": np.isinf}
    exact = {"neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "floor": np.floor}
    exact |= {"ceil": np.ceil, "trunc": np.trunc, "rint": np.rint}
    for name, reference in {**exact, **tests}.items():
        if dtype is DType.BOOL and name == "neg":
            continue
        function = UnaryFunction(name)
        found = run_elementwise((a,), lambda x, f=function: Unary(f, x), LoopKind.VECTOR, level)
        with np.errstate(all="ignore"):
            if not dtype.is_float and name == "sqrt":
                a = np.maximum(a, 0).astype(a.dtype)
                found = run_elementwise((a,), lambda x: Unary(UnaryFunction.SQRT, x))
                expected = np.sqrt(a.astype(np.float64)).astype(a.dtype)
            elif not dtype.is_float and name in ("floor", "ceil", "trunc", "rint"):
                expected = a
            else:
                expected = reference(a).astype(np.bool_ if name in tests else a.dtype)
        same(found, expected)


@pytest.mark.parametrize("function", [BinaryFunction.MIN, BinaryFunction.MAX])
def test_the_least_and_the_largest_of_a_constant_may_be_nan(function: BinaryFunction) -> None:
    a = values_of(DType.FLOAT32, 16)
    reference = np.minimum if function is BinaryFunction.MIN else np.maximum
    for value in (0.75, np.nan):
        known = Constant(value, DType.FLOAT32)
        wanted = reference(a, np.float32(value))
        same(run_elementwise((a,), lambda x, c=known: Binary(function, x, c)), wanted)
        same(run_elementwise((a,), lambda x, c=known: Binary(function, c, x)), wanted)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
@pytest.mark.parametrize("level", LEVELS)
def test_every_value_of_a_narrow_float_goes_to_float32_and_back(dtype: DType, level: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    wide = run_elementwise((every,), lambda x: Cast(DType.FLOAT32, x), LoopKind.VECTOR, level)
    back = run_elementwise((wide,), lambda x: Cast(dtype, x), LoopKind.VECTOR, level)
    with np.errstate(invalid="ignore"):
        same(wide, every.astype(np.float32))
        same(back.astype(np.float32), wide)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("wide", [np.float32, np.float64])
def test_narrow_floats_are_rounded_half_to_even(dtype: DType, level: str, wide: type) -> None:
    with np.errstate(invalid="ignore"):
        every = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy).astype(wide)
    every = every[np.isfinite(every)]
    following = np.roll(every, -1)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = (every + following) / 2
        ties = np.concatenate([middle, np.nextafter(middle, 0), np.nextafter(middle, 9e30)])
        ties = ties.astype(wide)
        found = run_elementwise((ties,), lambda x: Cast(dtype, x), LoopKind.VECTOR, level)
        same(found.astype(np.float32), ties.astype(dtype.numpy).astype(np.float32))
