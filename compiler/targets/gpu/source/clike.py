"""Common code of OpenCL C, Metal and C; tables have the words in which they differ."""

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ....dtypes import DType
from ....loops.expressions import COMPARISONS
from ....loops.expressions import BinaryFunction as B
from ....loops.expressions import UnaryFunction as U
from ..kernels import Kernel, Parameter
from .c_functions import Helpers
from .dialect import NARROW_FLOATS, Dialect, Held

__all__ = ["OF_BOOL", "SIGNS", "CLike"]

SIGNS: Mapping[B, str] = {
    B.ADD: "+",
    B.SUB: "-",
    B.MUL: "*",
    B.DIV: "/",
    B.AND: "&",
    B.OR: "|",
    B.XOR: "^",
    B.LT: "<",
    B.LE: "<=",
    B.EQ: "==",
    B.NE: "!=",
}
OF_BOOL: Mapping[B, str] = {B.ADD: "^", B.SUB: "^", B.MUL: "&", B.MIN: "&", B.MAX: "|"}
"""bool is an integer of one bit."""
FUNCTIONS: Mapping[B, str] = {B.REM: "fmod", B.POW: "pow"}
WRAPPING = (B.ADD, B.SUB, B.MUL)


class CLike(Dialect):
    """See ``Dialect``.

    Loop variables are int64; 16-bit floats are kept as their bits and computed in float32.
    """

    index = DType.INT64
    types: ClassVar[Mapping[DType, str]] = {
        DType.BOOL: "bool",
        DType.INT8: "char",
        DType.INT16: "short",
        DType.INT32: "int",
        DType.INT64: "long",
        DType.UINT8: "uchar",
        DType.UINT16: "ushort",
        DType.UINT32: "uint",
        DType.UINT64: "ulong",
        DType.FLOAT16: "float",
        DType.BFLOAT16: "float",
        DType.FLOAT32: "float",
    }
    """Types of values."""
    stored: ClassVar[Mapping[DType, str]] = {
        DType.BOOL: "uchar",
        DType.FLOAT16: "ushort",
        DType.BFLOAT16: "ushort",
    }
    """Types of elements in memory, where they are not those of values."""
    device: ClassVar[str] = ""
    """Words before types in the device's memory; ..."""
    shared: ClassVar[str] = ""
    """... and in a block's."""
    long: ClassVar[str] = "L"
    """Behind literals of 64 bits."""
    function: ClassVar[str] = "inline"
    """Words before a function that kernels call."""
    words: ClassVar[Mapping[str, str]] = {}
    """The language's words for types and functions that helpers are written with."""

    def __init__(self) -> None:
        super().__init__()
        self.helpers = Helpers(self, self.function, self.words)

    def prepare(self, kernel: Kernel) -> Kernel:
        return kernel

    def place(self, number: int) -> str:
        """Where a kernel's buffer begins."""
        return f"p{number}"

    def parameter(self, number: int, parameter: Parameter, own: str, name: str) -> str:
        kind = f"{self.device}{self._element(parameter.buffer.dtype)}"
        place = f"({kind} *){self.place(number)}"
        if own:
            place = f"{place} + ({own}) * {parameter.buffer.elements}{self.long}"
        return f"{kind} *{name} = {place};"

    def _bits(self, target: str, source: str, text: str) -> str:
        """Bits of one element type as another."""
        return f"as_{target}({text})"

    def _element(self, dtype: DType) -> str:
        return self.stored.get(dtype, self.types[dtype])

    def let(self, dtype: DType, name: str, value: str) -> str:
        return f"const {self.type(dtype)} {name} = {value};"

    def scalar(self, dtype: DType, name: str) -> str:
        return f"{self._element(dtype)} {name};"

    def array(self, dtype: DType, name: str, count: int, shared: bool) -> str:
        return f"{self.shared if shared else ''}{self._element(dtype)} {name}[{count}];"

    def loop(self, name: str, extent: str) -> str:
        return f"for ({self.type(self.index)} {name} = 0; {name} < {extent}; {name}++)"

    def load(self, dtype: DType, held: Held, name: str, place: str) -> str:
        return self._loaded(dtype, name if held is Held.SCALAR else f"{name}[{place}]")

    def _loaded(self, dtype: DType, element: str) -> str:
        """The value of a stored element."""
        if dtype in NARROW_FLOATS:
            return f"{self.helpers.narrow(f'from_{dtype.value}')}({element})"
        return f"({element} != 0)" if dtype is DType.BOOL else element

    def store(self, dtype: DType, held: Held, name: str, place: str, value: str) -> str:
        element = name if held is Held.SCALAR else f"{name}[{place}]"
        return f"{element} = {self._stored(dtype, value)};"

    def _stored(self, dtype: DType, value: str) -> str:
        """The value as memory holds it."""
        if dtype in NARROW_FLOATS:
            return f"{self.helpers.narrow(f'to_{dtype.value}')}({value})"
        return value

    def _rounded(self, dtype: DType, text: str) -> str:
        """A result of float32 as one of ``dtype``, where that is narrower."""
        return self._loaded(dtype, self._stored(dtype, text)) if dtype in NARROW_FLOATS else text

    def constant(self, value: float | bool, dtype: DType) -> str:
        kind = self.type(dtype)
        if dtype is DType.BOOL:
            return "true" if value else "false"
        if dtype.is_float:
            exact = float(np.asarray(value, dtype.numpy))
            if math.isnan(exact):
                return f"(({kind})NAN)"
            if math.isinf(exact):
                return f"(({kind}){'-' if exact < 0 else ''}INFINITY)"
            text = exact.hex() + ("" if dtype is DType.FLOAT64 else "f")
            return f"({text})" if text.startswith("-") else text
        bits = 8 * dtype.bytes
        whole = int(value) & (1 << bits) - 1
        if dtype is DType.INT64 and 0 <= int(value) < 1 << 63:
            return f"{int(value)}{self.long}"
        return f"(({kind}){whole}U{self.long if bits == 64 else ''})"

    def select(self, condition: str, chosen: str, other: str) -> str:
        return f"({condition} ? {chosen} : {other})"

    def unary(self, function: U, dtype: DType, a: str) -> str:
        """As ``Dialect``; of integers, the functions of analysis are computed in float64."""
        if dtype.is_float:
            if function in (U.ISNAN, U.ISINF):
                return f"({function.value}({a}) != 0)"
            if function is U.NEG:
                return f"(-{a})"
            name = "fabs" if function is U.ABS else function.value
            return self._rounded(dtype, f"{name}({a})")
        kind = self.type(dtype)
        match function:
            case U.NOT:
                return f"(!{a})" if dtype is DType.BOOL else f"(({kind})~{a})"
            case U.NEG:
                return self.binary(B.SUB, dtype, self.constant(0, dtype), a)
            case U.ABS if dtype.is_signed:
                return f"({a} < 0 ? {self.binary(B.SUB, dtype, self.constant(0, dtype), a)} : {a})"
            case U.ABS | U.FLOOR | U.CEIL | U.TRUNC | U.RINT:
                return a
            case U.ISNAN | U.ISINF:
                return "false"
            case _:
                wide = f"{function.value}({self.cast(dtype, DType.FLOAT64, a)})"
                return self.cast(DType.FLOAT64, dtype, wide)

    def binary(self, function: B, dtype: DType, a: str, b: str, index: bool = False) -> str:
        if function in COMPARISONS:
            return f"({a} {SIGNS[function]} {b})"
        if dtype is DType.BOOL:
            sign = OF_BOOL.get(function) or SIGNS.get(function)
            if sign is not None and function is not B.DIV:
                return f"((bool)({a} {sign} {b}))"
            byte = self.type(DType.UINT8)
            wide = self.binary(function, DType.UINT8, f"({byte}){a}", f"({byte}){b}")
            return f"(({wide} & 1) != 0)"
        if dtype.is_float:
            if function in SIGNS:
                return self._rounded(dtype, f"({a} {SIGNS[function]} {b})")
            wide_type = DType.FLOAT32 if dtype in NARROW_FLOATS else dtype
            name = FUNCTIONS.get(function) or self.helpers.binary(function.value, wide_type)
            return self._rounded(dtype, f"{name}({a}, {b})")
        kind = self.type(dtype)
        if function in (B.AND, B.OR, B.XOR):
            return f"(({kind})({a} {SIGNS[function]} {b}))"
        if function in WRAPPING and index:
            return f"({a} {SIGNS[function]} {b})"
        if function in WRAPPING:
            unsigned = self.type(DType("u" + dtype.value.removeprefix("u")))
            if dtype.bytes < 4:
                unsigned = self.type(DType.UINT32)
            return f"(({kind})(({unsigned}){a} {SIGNS[function]} ({unsigned}){b}))"
        return f"{self.helpers.binary(function.value, dtype)}({a}, {b})"

    def cast(self, source: DType, target: DType, a: str) -> str:
        if source is target:
            return a
        kind = self.type(target)
        if target is DType.BOOL:
            return f"({a} != 0)"
        if target in NARROW_FLOATS:
            if source is DType.FLOAT64 and target is DType.FLOAT16:
                return self._rounded(target, f"{self.helpers.narrow('to_odd')}({a})")
            return self._rounded(target, f"((float){a})")
        if target.is_float or not source.is_float:
            return f"(({kind}){a})"
        wide = target if target in (DType.INT64, DType.UINT64) else DType.INT32
        if target is DType.UINT32:
            wide = DType.INT64
        real = DType.FLOAT32 if source in NARROW_FLOATS else source
        return f"(({kind}){self.helpers.to_integer(real, wide)}({a}))"

    def bitcast(self, source: DType, target: DType, a: str) -> str:
        bits = self._bits(self._element(target), self._element(source), self._stored(source, a))
        return self._loaded(target, bits)
