"""SSA values and the spelling of their types and constants in LLVM's assembly.

float16 and bfloat16 are their bits in SSA, i16; arithmetic extends them to float32.  bool is i1 in
SSA and a byte, 0 or 1, in memory.
"""

import math
import struct
from functools import cache, lru_cache

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...loops.arithmetic import wrap

__all__ = [
    "Linear",
    "Operand",
    "Value",
    "constant",
    "intrinsic_suffix",
    "literal",
    "llvm_type",
    "memory_type",
]

_SCALARS = {
    DType.BOOL: "i1",
    DType.FLOAT16: "i16",
    DType.BFLOAT16: "i16",
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
}
_FLOATS = frozenset(dtype for dtype in DType if dtype.is_float)
_SUFFIXES = {DType.BOOL: "i1", DType.FLOAT32: "f32", DType.FLOAT64: "f64"}


@frozen
class Value:
    """``ref`` names it, or is its literal.

    lanes: 1 for a scalar, else the lanes of a vector.  constant: its value in every lane, if it is
    known.  low, high: bounds of an integer, where known.  multiple: what an integer is a multiple
    of; 0 of 0.  rounded: names the float32 value that this is the nearest whole number of.
    """

    ref: str
    dtype: DType
    lanes: int = 1
    constant: int | float | bool | None = None
    low: int | None = None
    high: int | None = None
    multiple: int = 1
    rounded: str | None = None

    @property
    def type(self) -> str:
        """LLVM's type."""
        return llvm_type(self.dtype, self.lanes)

    @property
    def typed(self) -> str:
        """Type and name, as an operand of an instruction."""
        return f"{self.type} {self.ref}"


@frozen
class Linear:
    """An int64 vector that is ``base + stride * lane``, not yet in a register."""

    base: Value
    stride: int
    lanes: int

    @property
    def dtype(self) -> DType:
        """int64."""
        return DType.INT64


Operand = Value | Linear


@cache
def llvm_type(dtype: DType, lanes: int = 1) -> str:
    """The SSA type."""
    scalar = _SCALARS.get(dtype) or f"i{dtype.bytes * 8}"
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def memory_type(dtype: DType, lanes: int = 1) -> str:
    """The type in memory: bool takes a byte."""
    return llvm_type(DType.UINT8 if dtype is DType.BOOL else dtype, lanes)


def intrinsic_suffix(dtype: DType, lanes: int = 1) -> str:
    """The mangled type in the name of an overloaded intrinsic."""
    scalar = _SUFFIXES.get(dtype) or f"i{dtype.bytes * 8}"
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def literal(value: int | float | bool, dtype: DType) -> str:
    """``value``, rounded or wrapped to ``dtype``, as a scalar literal."""
    match dtype:
        case DType.BOOL:
            return "true" if value else "false"
        case DType.FLOAT32 | DType.FLOAT64:
            with np.errstate(over="ignore"):
                rounded = float(np.float32(value)) if dtype is DType.FLOAT32 else float(value)
            if math.isnan(rounded):
                return "0x7FF8000000000000"
            return f"0x{struct.pack('>d', rounded).hex().upper()}"
        case DType.FLOAT16 | DType.BFLOAT16:
            with np.errstate(over="ignore"):
                return str(int(np.array(value).astype(dtype.numpy).view(np.uint16)))
        case _:
            return str(wrap(int(value), dtype))


def constant(value: int | float | bool, dtype: DType, lanes: int = 1) -> Value:
    """``value`` in every lane."""
    if dtype in _FLOATS or dtype is DType.BOOL:
        return Value(_splat(literal(value, dtype), dtype, lanes), dtype, lanes, value)
    return _integer(int(value), dtype, lanes)


@lru_cache(maxsize=10_000)
def _integer(value: int, dtype: DType, lanes: int) -> Value:
    known = wrap(value, dtype)
    return Value(_splat(str(known), dtype, lanes), dtype, lanes, known, known, known, abs(known))


def _splat(text: str, dtype: DType, lanes: int) -> str:
    return text if lanes == 1 else f"splat ({llvm_type(dtype)} {text})"
