"""Types, suffixes and constants in LLVM's assembly are those that LLVM itself would write."""

import re

import numpy as np
import pytest
from llvmlite import binding

from dovetail.compiler.dtypes import DType
from dovetail.compiler.targets.llvm.values import (
    intrinsic_suffix,
    literal,
    llvm_type,
    memory_type,
    wrap,
)

INTEGERS = [dtype for dtype in DType if not dtype.is_float and dtype is not DType.BOOL]
LANES = (1, 4, 16)


def called(name: str, dtype: DType, lanes: int) -> str:
    """A module with a call of an intrinsic of two operands, as LLVM spells it.

    LLVM gives intrinsics whose suffix does not suit their type the right one.
    """
    kind, full = llvm_type(dtype, lanes), f"llvm.{name}.{intrinsic_suffix(dtype, lanes)}"
    text = (
        f"declare {kind} @{full}({kind}, {kind})\ndefine {kind} @f({kind} %a, {kind} %b) {{\n"
        f"  %c = call {kind} @{full}({kind} %a, {kind} %b)\n  ret {kind} %c\n}}\n"
    )
    with binding.parse_assembly(text) as module:
        module.verify()
        (found,) = re.findall(r"@(llvm\.[\w.]+)\(", str(module).split("define")[1])
    assert found == full
    return found


@pytest.mark.parametrize("lanes", LANES)
def test_llvm_keeps_the_names_of_intrinsics(lanes: int) -> None:
    names = {called("umin", dtype, lanes) for dtype in INTEGERS}
    names |= {called("minimum", dtype, lanes) for dtype in (DType.FLOAT32, DType.FLOAT64)}
    assert len(names) == 6  # four widths of integers, two of floats
    # Floats of two bytes are their bits.
    assert called("umin", DType.BFLOAT16, lanes) == called("umin", DType.INT16, lanes)


def test_a_bool_is_a_bit_in_registers_and_a_byte_in_memory() -> None:
    assert (llvm_type(DType.BOOL, 4), memory_type(DType.BOOL, 4)) == ("<4 x i1>", "<4 x i8>")
    assert memory_type(DType.INT64) == "i64"
    assert intrinsic_suffix(DType.BOOL) == "i1"


@pytest.mark.parametrize("dtype", INTEGERS)
def test_whole_numbers_wrap_as_numpys_do(dtype: DType) -> None:
    limits = np.iinfo(str(dtype))
    for value in (0, -1, 5, limits.min, limits.max, limits.min - 1, limits.max + 1, -(1 << 64) - 3):
        wanted = int(np.array(value & (1 << 64) - 1, np.uint64).astype(str(dtype)))
        assert wrap(value, dtype) == wanted
        assert int(literal(value, dtype)) == wanted


@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, -3.5, 1e-45, 1e39, np.inf, -np.inf, np.nan])
def test_llvm_reads_back_the_floats_that_are_written(value: float) -> None:
    for dtype, kind in ((DType.FLOAT32, "float"), (DType.FLOAT64, "double")):
        text = f"@x = global {kind} {literal(value, dtype)}\n"
        with np.errstate(over="ignore"):
            wanted = np.array(value, str(dtype)).astype(np.float64)
        with binding.parse_assembly(text) as module:
            (found,) = re.findall(rf"{kind} (\S+)", str(module))
        bits = int(found, 16).to_bytes(8, "little") if found.startswith("0x") else None
        held = np.frombuffer(bits, np.float64)[0] if bits else np.float64(found)
        assert np.array_equal(held, wanted, equal_nan=True)
        assert np.signbit(held) == np.signbit(wanted)
