"""Arithmetic of integers and bool, as on CPUs; a value has no bounds that are known."""

from collections.abc import Iterable
from typing import ClassVar

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ....loops.expressions import COMPARISONS
from ....loops.expressions import BinaryFunction as B
from ...llvm import integers
from ...llvm.instructions import Instructions
from ...llvm.values import Value, llvm_type
from .emitter import Emitter, value_type

__all__ = ["integer_binary"]


def integer_binary(e: Emitter, function: B, dtype: DType, a: str, b: str) -> str:
    """``function(a, b)``; comparisons are functions too."""
    compute = integers.integer_compare if function in COMPARISONS else integers.integer_binary
    return compute(_Typed(e), function, _value(a, dtype), _value(b, dtype)).ref


def _value(ref: str, dtype: DType) -> Value:
    known = int(ref) if ref.removeprefix("-").isdecimal() else None
    return Value(ref, dtype, constant=known)


@frozen
class _Typed(Instructions):
    """``e``, with values that know their types."""

    e: Emitter
    divides_twice: ClassVar[bool] = True

    def op(self, text: str, dtype: DType, lanes: int = 1) -> Value:
        """As ``Instructions``."""
        return Value(self.e.op(text), dtype, lanes)

    def call(
        self, name: str, dtype: DType, lanes: int, operands: Iterable[Value], *more: str
    ) -> Value:
        """As ``Instructions``."""
        given = [(each.type, each.ref) for each in operands]
        return Value(self.e.call(name, llvm_type(dtype, lanes), *given), dtype, lanes)

    def power(self, a: Value, b: Value) -> Value:
        """By squaring, a step for each bit, without a loop."""
        return Value(_power(self.e, a.dtype, a.ref, b.ref), a.dtype)


def _power(e: Emitter, dtype: DType, a: str, b: str) -> str:
    """By squaring, a step for each bit; of a negative exponent the integer part of the power."""
    kind = value_type(dtype)
    result, base, rest = "1", a, b
    for _ in range(8 * dtype.bytes):
        odd = e.op(f"trunc {kind} {rest} to i1")
        result = e.op(
            f"select i1 {odd}, {kind} {e.op(f'mul {kind} {result}, {base}')}, {kind} {result}"
        )
        base, rest = e.op(f"mul {kind} {base}, {base}"), e.op(f"lshr {kind} {rest}, 1")
    if not dtype.is_signed:
        return result
    one, minus = e.op(f"icmp eq {kind} {a}, 1"), e.op(f"icmp eq {kind} {a}, -1")
    sign = e.op(f"select i1 {e.op(f'trunc {kind} {b} to i1')}, {kind} -1, {kind} 1")
    unit = e.op(f"select i1 {minus}, {kind} {sign}, {kind} 0")
    unit = e.op(f"select i1 {one}, {kind} 1, {kind} {unit}")
    below = e.op(f"icmp slt {kind} {b}, 0")
    return e.op(f"select i1 {below}, {kind} {unit}, {kind} {result}")
