"""Functions made of plain arithmetic are near those of ``longdouble``."""

from math import erf

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.operators.functions import UNARY, evaluate_binary, evaluate_unary
from dovetail.compiler.loops.expressions import (
    Binary,
    BinaryFunction,
    Bitcast,
    Cast,
    Constant,
    Expr,
    MultiplyAdd,
    Select,
    Unary,
    UnaryFunction,
    Variable,
)
from dovetail.compiler.loops.traverse import expressions, fold
from dovetail.compiler.targets.gpu.maths import FUNCTIONS, expanded

PERIODIC = (UnaryFunction.SIN, UnaryFunction.COS, UnaryFunction.TAN)
PLAIN = (UnaryFunction.NEG, UnaryFunction.ABS, UnaryFunction.RINT, UnaryFunction.ISNAN)
ORDERED = (BinaryFunction.MIN, BinaryFunction.MAX, BinaryFunction.LT, BinaryFunction.EQ)
BINARIES = (
    BinaryFunction.ADD,
    BinaryFunction.SUB,
    BinaryFunction.MUL,
    BinaryFunction.DIV,
    *ORDERED,
)
RNG = np.random.default_rng(0)


def evaluate(expr: Expr, **given: NDArray[np.generic]) -> NDArray[np.generic]:
    """By NumPy, every operation rounded."""

    def combine(node: Expr, below: tuple[NDArray[np.generic], ...]) -> NDArray[np.generic]:
        match node:
            case Constant(value=value, dtype=dtype):
                return np.asarray(value, dtype.numpy)
            case Variable(name=name):
                return given[name]
            case Unary(function=function):
                return evaluate_unary(function, below[0])
            case Binary(function=function):
                return evaluate_binary(function, *np.broadcast_arrays(*below))
            case MultiplyAdd():
                a, b, c = (each.astype(np.longdouble) for each in below)
                return (a * b + c).astype(np.float32)
            case Select():
                return np.where(*below)  # type: ignore[call-overload]
            case Cast(dtype=dtype):
                return below[0].astype(dtype.numpy)
            case Bitcast(dtype=dtype):
                return np.ascontiguousarray(below[0]).view(dtype.numpy)
        raise AssertionError(node)

    with np.errstate(all="ignore"):
        return fold(expr, combine)


def distance(found: NDArray[np.generic], exact: NDArray[np.longdouble]) -> float:
    """The largest, in units in the last place; infinite where only one is a number."""
    with np.errstate(over="ignore"):
        rounded = exact.astype(found.dtype)
    numbers = np.isfinite(rounded)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    if not same[~numbers].all() or not np.isfinite(found[numbers]).all():
        return np.inf
    unit = np.spacing(np.abs(rounded[numbers]))
    return float((np.abs(found[numbers] - exact[numbers]) / unit).max())


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64])
def test_functions_are_a_few_units_from_the_exact_ones(
    function: UnaryFunction, dtype: DType
) -> None:
    sizes = np.concatenate([np.exp(RNG.uniform(-80, 80, 3000)), RNG.uniform(0, 30, 3000)])
    sizes = np.concatenate([sizes, RNG.uniform(0, 2, 3000), [1, 0.5, np.inf]])
    x = np.concatenate([sizes, -sizes, [0, np.nan]]).astype(dtype.numpy)
    if function in PERIODIC:
        x = x[(np.abs(x) < 2**20) | ~np.isfinite(x)]
    wide = x.astype(np.longdouble)
    with np.errstate(all="ignore"):
        exact = (
            np.array([erf(each) for each in x.astype(float)], np.longdouble)
            if function is UnaryFunction.ERF
            else UNARY[function](wide)
        )
    found = evaluate(expanded(Unary(function, Variable("x", dtype))), x=x)
    assert distance(found, exact) < (20 if function is UnaryFunction.ERF else 5)


SPECIAL = np.array([0, 1, -1, 2, -2, 0.5, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (BinaryFunction.POW, np.power),
        (BinaryFunction.REM, np.fmod),
        (BinaryFunction.MOD, np.mod),
    ],
)
def test_functions_of_two_operands_are_within_half_a_unit(
    function: BinaryFunction, exact: np.ufunc
) -> None:
    a, b = RNG.uniform(-5, 5, (2, 5000))
    b[::3] = np.rint(b[::3])
    pairs = np.meshgrid(SPECIAL, SPECIAL)
    x, y = (
        np.concatenate([each, more.ravel()]).astype(np.float32)
        for each, more in zip((a, b), pairs, strict=True)
    )
    with np.errstate(all="ignore"):
        want = exact(x.astype(np.longdouble), y.astype(np.longdouble))
    kinds = Variable("x", DType.FLOAT32), Variable("y", DType.FLOAT32)
    found = evaluate(expanded(Binary(function, *kinds)), x=x, y=y)
    assert distance(found, want) <= 0.501


@pytest.mark.parametrize(
    "divisor", [2**0.5, 0.0235294122248888, -768.0, 1.0 + 2.0**-23, 2.0 - 2.0**-22, 1e-9]
)
def test_a_quotient_by_a_constant_is_rounded_as_one(divisor: float) -> None:
    x = Variable("x", DType.FLOAT32)
    expr = expanded(Binary(BinaryFunction.DIV, x, Constant(divisor, DType.FLOAT32)))
    assert not any(
        isinstance(each, Binary) and each.function is BinaryFunction.DIV
        for each in expressions(expr)
    )
    values = RNG.standard_normal(100_000).astype(np.float32)
    values *= np.float32(2.0) ** RNG.integers(-60, 60, values.size).astype(np.float32)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, 1.0, -1.0], np.float32)
    given = np.concatenate((values, edges))
    with np.errstate(all="ignore"):
        want = given / np.float32(divisor)
    found = evaluate(expr, x=given)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.signbit(found[:-4]), np.signbit(want[:-4]))


@pytest.mark.parametrize("divisor", [0.0, np.inf, 2.0 - 2.0**-23, 2.0**-100])
def test_other_quotients_stay(divisor: float) -> None:
    x = Variable("x", DType.FLOAT32)
    expr = Binary(BinaryFunction.DIV, x, Constant(divisor, DType.FLOAT32))
    assert expanded(expr) == expr


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_floats_of_16_bits_are_computed_in_float32_and_rounded(dtype: DType) -> None:
    x = np.concatenate([RNG.uniform(-3, 3, 50), [0, -1.5, 2.5, np.inf, np.nan]]).astype(dtype.numpy)
    y = RNG.permutation(x)
    a, b = Variable("a", dtype), Variable("b", dtype)
    exprs: list[tuple[Expr, NDArray[np.generic]]] = []
    for unary in (*FUNCTIONS, *PLAIN):
        wide = expanded(Unary(unary, Cast(DType.FLOAT32, a)))
        exprs.append((Unary(unary, a), evaluate(wide, a=x)))
    for binary in BINARIES:
        exprs.append((Binary(binary, a, b), evaluate_binary(binary, *np.float32([x, y]))))
    for expr, wanted in exprs:
        found = evaluate(expanded(expr), a=x, b=y)
        assert expanded(expr).dtype is expr.dtype
        rounded = wanted.astype(expr.dtype.numpy).astype(np.float32)
        np.testing.assert_array_equal(found.astype(np.float32), rounded)
