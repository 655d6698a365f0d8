"""Remainders of floats.

``rem`` has the dividend's sign (C's fmod), ``mod`` the divisor's.  Source: NumPy's npy_divmod.
"""

from ....dtypes import DType
from ...llvm.values import Value, constant
from .emitter import Emitter

__all__ = ["modulo", "remainder"]


def remainder(e: Emitter, a: Value, b: Value) -> Value:
    """``a - trunc(a / b) * b``, exactly; NaN for an infinite dividend or a zero divisor."""
    return e.each_lane(_fmod(e, a.dtype), a, b)


def modulo(e: Emitter, a: Value, b: Value) -> Value:
    """The remainder with the divisor's sign; a zero too."""
    zero = constant(0.0, a.dtype, a.lanes)
    rest = remainder(e, a, b)
    differs = e.binary("xor", e.compare("olt", b, zero), e.compare("olt", rest, zero))
    moved = e.select(differs, e.binary("fadd", rest, b), rest)
    signed_zero = e.intrinsic("copysign", zero, b)
    return e.select(e.compare("oeq", rest, zero), signed_zero, moved)


def _fmod(e: Emitter, dtype: DType) -> str:
    """A function: long division of the mantissas, a bit at a time.

    ``@normal`` gives mantissa and exponent of a positive number, subnormal ones normalised.
    """
    name = f"dovetail.fmod.{dtype.value}"
    kind, i, bits = ("float", "i32", 23) if dtype is DType.FLOAT32 else ("double", "i64", 52)
    width = dtype.bytes * 8
    sign, hidden = 1 << (width - 1), 1 << bits
    infinite = ((1 << (width - 1 - bits)) - 1) << bits
    e.module.declare(f"llvm.ctlz.{i}", i, (i, "i1"))
    e.module.define(
        name,
        f"""define internal {kind} @{name}({kind} %x, {kind} %y) {{
entry:
  %bits.x = bitcast {kind} %x to {i}
  %bits.y = bitcast {kind} %y to {i}
  %sign = and {i} %bits.x, {sign}
  %a = and {i} %bits.x, {sign - 1}
  %b = and {i} %bits.y, {sign - 1}
  %a.bad = icmp uge {i} %a, {infinite}
  %b.bad = icmp ugt {i} %b, {infinite}
  %b.zero = icmp eq {i} %b, 0
  %bad.1 = or i1 %a.bad, %b.bad
  %bad = or i1 %bad.1, %b.zero
  br i1 %bad, label %invalid, label %finite
invalid:
  %product = fmul {kind} %x, %y
  %none = fdiv {kind} %product, %product
  ret {kind} %none
finite:
  %less = icmp ult {i} %a, %b
  br i1 %less, label %same, label %split
same:
  ret {kind} %x
split:
  %zeros.a = call {i} @llvm.ctlz.{i}({i} %a, i1 false)
  %zeros.b = call {i} @llvm.ctlz.{i}({i} %b, i1 false)
  %field.a = lshr {i} %a, {bits}
  %field.b = lshr {i} %b, {bits}
  %sub.a = icmp eq {i} %field.a, 0
  %sub.b = icmp eq {i} %field.b, 0
  %shift.a.1 = sub {i} %zeros.a, {width - 1 - bits}
  %shift.b.1 = sub {i} %zeros.b, {width - 1 - bits}
  %shift.a = select i1 %sub.a, {i} %shift.a.1, {i} 0
  %shift.b = select i1 %sub.b, {i} %shift.b.1, {i} 0
  %low.a = shl {i} %a, %shift.a
  %low.b = shl {i} %b, %shift.b
  %fraction.a = and {i} %low.a, {hidden - 1}
  %fraction.b = and {i} %low.b, {hidden - 1}
  %mantissa.a = or {i} %fraction.a, {hidden}
  %mantissa.b = or {i} %fraction.b, {hidden}
  %tiny.a = sub {i} 1, %shift.a
  %tiny.b = sub {i} 1, %shift.b
  %exponent.a = select i1 %sub.a, {i} %tiny.a, {i} %field.a
  %exponent.b = select i1 %sub.b, {i} %tiny.b, {i} %field.b
  br label %loop
loop:
  %m = phi {i} [ %mantissa.a, %split ], [ %doubled, %next ]
  %exponent = phi {i} [ %exponent.a, %split ], [ %lower, %next ]
  %difference = sub {i} %m, %mantissa.b
  %fits = icmp uge {i} %m, %mantissa.b
  %rest = select i1 %fits, {i} %difference, {i} %m
  %more = icmp sgt {i} %exponent, %exponent.b
  br i1 %more, label %next, label %end
next:
  %doubled = shl {i} %rest, 1
  %lower = sub {i} %exponent, 1
  br label %loop
end:
  %empty = icmp eq {i} %rest, 0
  br i1 %empty, label %zero, label %join
zero:
  %signed.zero = bitcast {i} %sign to {kind}
  ret {kind} %signed.zero
join:
  %zeros = call {i} @llvm.ctlz.{i}({i} %rest, i1 false)
  %up = sub {i} %zeros, {width - 1 - bits}
  %field.new = sub {i} %exponent.b, %up
  %normal = icmp sgt {i} %field.new, 0
  %left = shl {i} %rest, %up
  %bare = and {i} %left, {hidden - 1}
  %field.high = shl {i} %field.new, {bits}
  %joined = or {i} %bare, %field.high
  %right = sub {i} 1, %exponent.b
  %negative = icmp sgt {i} %right, 0
  %amount = select i1 %negative, {i} %right, {i} 0
  %room = sub {i} %exponent.b, 1
  %positive = icmp sgt {i} %room, 0
  %amount.left = select i1 %positive, {i} %room, {i} 0
  %down = lshr {i} %rest, %amount
  %subnormal = shl {i} %down, %amount.left
  %magnitude = select i1 %normal, {i} %joined, {i} %subnormal
  %bits.result = or {i} %magnitude, %sign
  %result = bitcast {i} %bits.result to {kind}
  ret {kind} %result
}}""",
    )
    return name
