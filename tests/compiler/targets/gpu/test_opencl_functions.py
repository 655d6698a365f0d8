"""Functions in OpenCL C, compiled as C++, against Python's integers and NumPy's floats."""

import ctypes
import itertools
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.targets.gpu.source.c_functions import (
    INTEGERS,
    SIGNED,
    TO_INTEGER,
)
from dovetail.compiler.targets.gpu.source.opencl import OpenCl

COMPILER = shutil.which("c++") or shutil.which("g++")
INTEGER = [dtype for dtype in DType if not dtype.is_float and dtype is not DType.BOOL]
PRELUDE = """
#include <cmath>
#include <cstdint>
#include <cstring>
using std::isnan; using std::rint; using std::fabs;
typedef uint8_t uchar; typedef uint16_t ushort; typedef uint32_t uint; typedef uint64_t ulong;
static uint as_uint(float a) { uint r; memcpy(&r, &a, 4); return r; }
static int as_int(float a) { int r; memcpy(&r, &a, 4); return r; }
static float as_float(uint a) { float r; memcpy(&r, &a, 4); return r; }
"""
LOOP = """
extern "C" void all_{name}(long n, const {a} *a, const {b} *b, {r} *r) {{
  for (long i = 0; i < n; i++) r[i] = {name}({arguments});
}}
"""
WHAT = (*SIGNED, *INTEGERS)
EDGES = (0, 1, 2, 3, 5, 7, 8, 15, 31, 63, 64, 100)


def meaning(what: str, a: int, b: int, bits: int, signed: bool) -> int:
    """By docs/cpu.md, before the result is wrapped."""
    if what in ("div", "rem", "floordiv", "mod") and b == 0:
        return 0
    match what:
        case "div" | "rem":
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return quotient if what == "div" else a - quotient * b
        case "floordiv":
            return a // b
        case "mod":
            return a % b
        case "shr":
            return a >> b if 0 <= b < bits else -1 if signed and a < 0 else 0
        case "shl":
            return a << b if 0 <= b < bits else 0
        case "pow" if b < 0:
            return {1: 1, -1: -1 if b & 1 else 1}.get(a, 0)
        case "pow":
            return pow(a, b, 1 << bits)
    return min(a, b) if what == "min" else max(a, b)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    dialect = OpenCl()
    helpers, loops = dialect.helpers, []
    for dtype in INTEGER:
        kind = dialect.type(dtype)
        for what in WHAT:
            name = helpers.binary(what, dtype)
            loops.append(LOOP.format(name=name, a=kind, b=kind, r=kind, arguments="a[i], b[i]"))
    for what, (result, operand) in {
        "from_float16": ("float", "ushort"),
        "to_float16": ("ushort", "float"),
        "from_bfloat16": ("float", "ushort"),
        "to_bfloat16": ("ushort", "float"),
        "to_odd": ("float", "double"),
    }.items():
        name = helpers.narrow(what)
        loops.append(LOOP.format(name=name, a=operand, b=operand, r=result, arguments="a[i]"))
    for target in TO_INTEGER:
        name, kind = helpers.to_integer(DType.FLOAT64, target), dialect.type(target)
        loops.append(LOOP.format(name=name, a="double", b="double", r=kind, arguments="a[i]"))
    folder: Path = tmp_path_factory.mktemp("opencl")
    text = PRELUDE + "\n".join((*dialect.functions.values(), *loops))
    (folder / "all.cpp").write_text(text)
    command = [COMPILER, "-O1", "-w", "-fsigned-char", "-fwrapv", "-shared", "-fPIC", "all.cpp"]
    subprocess.run([*command, "-o", "all.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "all.so"))


def called(library: ctypes.CDLL, name: str, result: str, *operands: np.ndarray) -> np.ndarray:
    found = np.empty(operands[0].shape, result)
    places = [each.ctypes.data_as(ctypes.c_void_p) for each in (*operands, found)]
    if len(places) == 2:
        places.insert(1, places[0])
    getattr(library, f"all_{name}")(ctypes.c_long(found.size), *places)
    return found


@pytest.mark.parametrize("dtype", INTEGER)
def test_integers_are_computed_as_on_cpus(library: ctypes.CDLL, dtype: DType) -> None:
    limits, bits = np.iinfo(str(dtype)), 8 * dtype.bytes
    edges = sorted(
        {int(each) for each in (*EDGES, *(-each for each in EDGES), limits.min, limits.max)}
        | {limits.min + 1, limits.max - 1}
    )
    values = [each for each in edges if limits.min <= each <= limits.max]
    pairs = list(itertools.product(values, values))
    a, b = (np.array(each, str(dtype)) for each in zip(*pairs, strict=True))
    for what in WHAT:
        found = called(library, f"dv_{what}_{dtype.value}", str(dtype), a, b)
        wanted = [meaning(what, x, y, bits, dtype.is_signed) & (1 << bits) - 1 for x, y in pairs]
        same = found.view(f"u{dtype.bytes}") == np.array(wanted, f"u{dtype.bytes}")
        assert same.all(), (what, a[~same][0], b[~same][0], found[~same][0])


def test_narrow_floats_are_rounded_as_numpy_rounds(library: ctypes.CDLL) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    wide = called(library, "dv_from_float16", "float32", every)
    assert np.array_equal(wide, every.view(np.float16).astype(np.float32), equal_nan=True)
    wide = called(library, "dv_from_bfloat16", "float32", every)
    assert np.array_equal(wide.view(np.uint32) >> 16, every)
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1 << 32, 1 << 16, np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate(
        [x, rng.normal(0, 1e-6, 4096).astype(np.float32), np.float32([65519, 65520])]
    )
    x = x[~np.isnan(x)]
    with np.errstate(over="ignore"):
        half = x.astype(np.float16)
        short = x.astype(DType.BFLOAT16.numpy)
    assert np.array_equal(called(library, "dv_to_float16", "uint16", x), half.view(np.uint16))
    assert np.array_equal(called(library, "dv_to_bfloat16", "uint16", x), short.view(np.uint16))


def test_a_double_is_rounded_to_odd(library: ctypes.CDLL) -> None:
    """So a second rounding, to half, gives what one gives."""
    rng = np.random.default_rng(2)
    near = rng.integers(0, 0x7C00, 4096, np.uint16).view(np.float16).astype(np.float64)
    ulp = np.spacing(near.astype(np.float16)).astype(np.float64)
    x = near + ulp / 2 + rng.integers(-1, 2, near.size) * 2.0**-60
    x = np.concatenate([x, -x])
    odd = called(library, "dv_to_odd", "float32", x)
    with np.errstate(over="ignore"):
        assert np.array_equal(odd.astype(np.float16), x.astype(np.float16))


def test_floats_beyond_integers_become_the_lowest(library: ctypes.CDLL) -> None:
    x = np.array([0.9, -0.9, 2.0**31, -(2.0**31), 2.0**31 - 1, 2.0**63, -(2.0**63), np.nan, np.inf])
    for bits in (32, 64):
        found = called(library, f"dv_int{bits}_of_double", f"int{bits}", x)
        lowest = -(1 << bits - 1)
        wanted = [
            int(each) if np.isfinite(each) and lowest <= int(each) < -lowest else lowest
            for each in x.tolist()
        ]
        assert found.tolist() == wanted
