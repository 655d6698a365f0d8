"""Loop functions that the tests of the backend share."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import Buffer, Expr, Variable, as_index
from dovetail.compiler.loops.ir import For, Function, LoopKind, Store
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget, host_cpu

__all__ = ["LEVELS", "elementwise", "require", "run_elementwise", "values_of"]

LEVELS = ("x86-64", "avx2", "avx512", "native")


def require(level: str) -> None:
    """Skip the test on a CPU that cannot run code of ``level``."""
    missing = CpuTarget.at_level(level).features - host_cpu().features
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(sorted(missing))}")


def elementwise(
    size: int, dtypes: tuple[DType, ...], compute: Callable[..., Expr], kind: LoopKind
) -> Function:
    """``out[i] = compute(x0[i], x1[i], ...)``."""
    inputs = tuple(Buffer(f"x{n}", (size,), dtype) for n, dtype in enumerate(dtypes))
    i = Variable("i")
    value = compute(*(buffer[i] for buffer in inputs))
    out = Buffer("out", (size,), value.dtype)
    return Function("map", inputs, (out,), For("i", as_index(size), kind, Store(out, (i,), value)))


def run_elementwise(
    arrays: tuple[NDArray[Any], ...],
    compute: Callable[..., Expr],
    kind: LoopKind = LoopKind.VECTOR,
    level: str = "native",
) -> NDArray[Any]:
    """The result of ``compute`` on every element."""
    require(level)
    dtypes = tuple(DType(array.dtype.name) for array in arrays)
    function = elementwise(arrays[0].size, dtypes, compute, kind)
    return compile_functions([function], LlvmOptions(level)).run("map", arrays)[0]


def values_of(dtype: DType, count: int, seed: int = 0) -> NDArray[Any]:
    """Edge cases first, then random bits for integers and many magnitudes for floats."""
    generator = np.random.default_rng(seed)
    kind = dtype.numpy
    if dtype is DType.BOOL:
        return generator.integers(0, 2, count).astype(kind)
    if dtype.is_float:
        edges = [0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-6, 3e38]
        scale = np.exp2(generator.integers(-12, 12, count).astype(np.float64))
        found = generator.standard_normal(count) * scale
        found[: len(edges)] = edges
        with np.errstate(over="ignore"):
            return found.astype(kind)
    limits = np.iinfo(kind)
    array = generator.integers(limits.min, limits.max, count, dtype=kind, endpoint=True)
    edges = [0, 1, 2, 3, limits.max, limits.min, limits.max - 1, limits.min + 1]
    edges += [-1] if dtype.is_signed else [7]
    array[: len(edges)] = edges
    return array
