"""Errors of the elementary functions, in units in the last place, against wider arithmetic."""

import math
import re

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import Binary, BinaryFunction, Unary, UnaryFunction
from dovetail.compiler.loops.ir import LoopKind
from dovetail.compiler.targets.cpu.llvm.coefficients import TWO_OVER_PI
from dovetail.compiler.targets.cpu.llvm.emitter import ModuleText
from dovetail.compiler.targets.cpu.llvm.functions import write_function
from dovetail.compiler.targets.cpu.llvm.optimize import Effort, to_assembly
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget

from .kernels import LEVELS, elementwise, run_elementwise

BOUNDS_32 = {"exp": 1.1, "log": 1.0, "tanh": 2.5, "erf": 2.1, "sin": 1.6, "cos": 1.6}
"""Bounds of float32; the other functions compute in float64 and round: 0.51."""

BOUNDS_64 = {
    "exp": 1.2,
    "log": 1.0,
    "tanh": 2.8,
    "erf": 2.6,
    "sin": 2.6,
    "cos": 2.6,
    "tan": 4.0,
    "asin": 2.0,
    "acos": 2.0,
    "atan": 2.0,
    "sinh": 2.0,
    "cosh": 2.0,
    "asinh": 2.5,
    "acosh": 3.0,
    "atanh": 2.5,
}
REFERENCES = {
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
}
SPECIAL = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -0.5, 2, 1e-45, 88.8, -103.9, 711, -746]


def arguments(kind: type, count: int = 4000) -> np.ndarray:
    """All magnitudes, ranges where results are ordinary, around 1, near multiples of pi/2."""
    generator = np.random.default_rng(5)
    exponents = generator.uniform(*((-148, 127) if kind is np.float32 else (-1070, 1020)), count)
    parts = [SPECIAL, np.exp2(exponents) * generator.choice([-1, 1], count)]
    parts += [generator.uniform(-size, size, count) for size in (1, 10, 110, 720)]
    parts += [1 + generator.uniform(-1, 1, count) * np.exp2(generator.uniform(-30, 0, count))]
    parts += [np.arange(-400, 400) * (np.pi / 2)]
    with np.errstate(over="ignore"):
        return np.concatenate(parts).astype(kind)


def worst(found: np.ndarray, exact: np.ndarray) -> float:
    """The greatest error in units in the last place; infinities, NaN and zeros must be equal."""
    kind = found.dtype.type
    with np.errstate(all="ignore"):
        rounded = exact.astype(kind)
        ordinary = np.isfinite(rounded) & np.isfinite(found)
        np.testing.assert_array_equal(found[~ordinary], rounded[~ordinary])
        zero = ordinary & (rounded == 0)
        np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(rounded[zero]))
        units = np.spacing(np.abs(rounded[ordinary])).astype(np.longdouble)
        return float((np.abs(found[ordinary] - exact[ordinary]) / units).max())


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_the_error_is_within_its_bound(name: str, kind: type, level: str) -> None:
    x = arguments(kind)
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(np.longdouble))
    found = run_elementwise((x,), lambda v: Unary(UnaryFunction(name), v), LoopKind.VECTOR, level)
    bound = BOUNDS_64[name] if kind is np.float64 else BOUNDS_32.get(name, 0.51)
    assert worst(found, exact) < bound


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_error_of_powers_is_within_its_bound(kind: type, level: str) -> None:
    generator = np.random.default_rng(6)
    special = np.array(SPECIAL, kind)
    x = arguments(kind)
    y = np.concatenate([generator.uniform(-3, 3, x.size // 2), generator.integers(-40, 41, x.size)])
    y = y[: x.size].astype(kind)
    x = np.concatenate([np.repeat(special, special.size), x])
    y = np.concatenate([np.tile(special, special.size), y])
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    found = run_elementwise(
        (x, y), lambda a, b: Binary(BinaryFunction.POW, a, b), LoopKind.VECTOR, level
    )
    assert worst(found, exact) < (0.51 if kind is np.float32 else 1.5)


@pytest.mark.parametrize("name", sorted(REFERENCES))
@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.VECTOR])
def test_integers_and_narrow_floats_are_computed_wider(name: str, kind: LoopKind) -> None:
    function = UnaryFunction(name)
    for dtype in (DType.INT32, DType.FLOAT16, DType.BFLOAT16):
        x = np.arange(-6, 7).astype(dtype.numpy)
        if name in ("acosh", "atanh", "log", "asin", "acos") and dtype is DType.INT32:
            x = np.ones_like(x) if name != "atanh" else np.zeros_like(x)
        found = run_elementwise((x,), lambda v: Unary(function, v), kind)
        with np.errstate(all="ignore"):
            wide = REFERENCES[name](x.astype(np.float64))
            expected = wide.astype(dtype.numpy)
        np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("level", LEVELS)
def test_no_function_of_a_library_is_called(level: str) -> None:
    target = CpuTarget.at_level(level)
    names = [*REFERENCES, "sqrt", "floor", "ceil", "trunc", "rint"]
    cases = [(DType.FLOAT32, LoopKind.VECTOR), (DType.FLOAT64, LoopKind.SERIAL)]
    cases += [(DType.FLOAT16, LoopKind.VECTOR), (DType.BFLOAT16, LoopKind.SERIAL)]
    for dtype, kind in cases:
        module = ModuleText(target)
        for name in names if dtype.bytes > 2 else ("exp", "rint"):
            function = elementwise(16, (dtype,), lambda v, f=name: Unary(UnaryFunction(f), v), kind)
            write_function(module, function, name)
        for name in ("pow", "mod", "rem", "floordiv", "min"):
            function = elementwise(
                16, (dtype, dtype), lambda a, b, f=name: Binary(BinaryFunction(f), a, b), kind
            )
            write_function(module, function, name)
        text = to_assembly(module.text(), target, Effort.LIGHT)
        called = set(re.findall(r"(?:call|jmp)q?\s+([^.*\s][^\s@]*)", text))
        assert all(name.strip('"').startswith("dovetail.") for name in called), called


def test_the_table_of_two_over_pi_has_its_first_1280_bits() -> None:
    """Pi by Machin's formula, ``16 atan(1/5) - 4 atan(1/239)``, in integers."""
    bits = 64 * len(TWO_OVER_PI)
    spare = 100

    def arc(n: int) -> int:
        total, power, odd = 0, (1 << bits + spare) // n, 1
        while power:
            total += power // odd if odd % 4 == 1 else -(power // odd)
            power, odd = power // n**2, odd + 2
        return total

    pi = 16 * arc(5) - 4 * arc(239)
    assert bits == 1280
    found = int("".join(f"{word:016x}" for word in TWO_OVER_PI), 16)
    assert found == (2 << 2 * bits + spare) // pi
