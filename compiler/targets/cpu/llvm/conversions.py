"""Conversions between element types.

Integers wrap.  Float to integer truncates; NaN and what is out of range give what x86 and NumPy
give: the lowest int32 or int64, and for narrower types the low bits of that int32.
Source: Intel SDM volume 1, table 4-8 (integer indefinite); NumPy's casts on x86-64.
"""

from ....dtypes import DType
from ...llvm.values import Value, constant
from ..arch.arch import Ability, ToInt32
from .emitter import Emitter

__all__ = ["convert", "from_float32", "to_float32"]

_NARROW_FLOATS = (DType.FLOAT16, DType.BFLOAT16)


def convert(e: Emitter, a: Value, dtype: DType) -> Value:
    """``a`` as ``dtype``."""
    source = a.dtype
    if source == dtype:
        return a
    if dtype is DType.BOOL:
        return _to_bool(e, a)
    if source in _NARROW_FLOATS:
        return convert(e, to_float32(e, a), dtype)
    if dtype in _NARROW_FLOATS:
        return _to_narrow(e, a, dtype)
    if source is DType.BOOL:
        if dtype.is_float:
            return e.convert("uitofp", a, dtype)
        return _ranged(e.convert("zext", a, dtype), 0, 1)
    if source.is_float:
        return _from_wide_float(e, a, dtype)
    if dtype.is_float:
        return e.convert("sitofp" if source.is_signed else "uitofp", a, dtype)
    return _between_integers(e, a, dtype)


def to_float32(e: Emitter, a: Value) -> Value:
    """The float32 of a float16 or bfloat16, exactly."""
    if a.dtype is DType.FLOAT32:
        return a
    if a.dtype is DType.BFLOAT16:
        wide = e.convert("zext", a, DType.UINT32)
        shifted = e.binary("shl", wide, constant(16, DType.UINT32, a.lanes))
        return e.bitcast(shifted, DType.FLOAT32)
    if e.module.target.can(Ability.HALF_FLOATS):
        half = "half" if a.lanes == 1 else f"<{a.lanes} x half>"
        bits = e.op(f"bitcast {a.typed} to {half}", a.dtype, a.lanes)
        target = Value("", DType.FLOAT32, a.lanes).type
        return e.op(f"fpext {half} {bits.ref} to {target}", DType.FLOAT32, a.lanes)
    return _half_to_float32(e, a)


def from_float32(e: Emitter, a: Value, dtype: DType) -> Value:
    """``a`` rounded to float16 or bfloat16, to nearest, half to even."""
    if dtype is DType.FLOAT32:
        return a
    if dtype is DType.BFLOAT16:
        return _float32_to_bfloat16(e, a)
    if e.module.target.can(Ability.HALF_FLOATS):
        # LLVM would join this rounding with one from float64, which is a call of a library.
        a = e.intrinsic("arithmetic.fence", a)
        half = "half" if a.lanes == 1 else f"<{a.lanes} x half>"
        rounded = e.op(f"fptrunc {a.typed} to {half}", dtype, a.lanes)
        return e.op(
            f"bitcast {half} {rounded.ref} to {Value('', dtype, a.lanes).type}", dtype, a.lanes
        )
    return _float32_to_half(e, a)


def _to_bool(e: Emitter, a: Value) -> Value:
    if a.dtype in _NARROW_FLOATS:
        magnitude = e.binary("and", a, Value(_splat(0x7FFF, a), a.dtype, a.lanes))
        zero = Value("zeroinitializer" if a.lanes > 1 else "0", a.dtype, a.lanes)
        return e.compare("ne", magnitude, zero)
    return e.compare("une" if a.dtype.is_float else "ne", a, constant(0, a.dtype, a.lanes))


def _splat(bits: int, a: Value) -> str:
    return str(bits) if a.lanes == 1 else f"splat (i16 {bits})"


def _to_narrow(e: Emitter, a: Value, dtype: DType) -> Value:
    if a.dtype is DType.FLOAT64:
        odd = _float64_to_float32_odd(e, a)
        if dtype is DType.BFLOAT16:
            odd = e.convert("fptrunc", a, DType.FLOAT32)
        return from_float32(e, odd, dtype)
    return from_float32(e, convert(e, a, DType.FLOAT32), dtype)


def _float64_to_float32_odd(e: Emitter, a: Value) -> Value:
    """Rounded to odd: a second rounding, to float16, then gives what one would."""
    near = e.convert("fptrunc", a, DType.FLOAT32)
    back = e.convert("fpext", near, DType.FLOAT64)
    bits = e.bitcast(near, DType.INT32)
    above = e.compare("ogt", e.intrinsic("fabs", back), e.intrinsic("fabs", a))
    lower = e.binary("sub", bits, e.convert("zext", above, DType.INT32))
    inexact = e.convert("zext", e.compare("one", back, a), DType.INT32)
    return e.bitcast(e.binary("or", lower, inexact), DType.FLOAT32)


def _from_wide_float(e: Emitter, a: Value, dtype: DType) -> Value:
    if dtype.is_float:
        return e.convert("fpext" if dtype is DType.FLOAT64 else "fptrunc", a, dtype)
    if dtype is DType.INT64:
        return _truncate(e, a, DType.INT64)
    if dtype is DType.UINT64:
        return _truncate_unsigned(e, a)
    if dtype is DType.UINT32:
        return _between_integers(e, _truncate(e, a, DType.INT64), dtype)
    if a.dtype is DType.FLOAT32:
        for each in e.module.target.arch.to_int32:
            if each.lanes == a.lanes and each.needs <= e.module.target.features:
                return _between_integers(e, _to_int32(e, each, a), dtype)
    return _between_integers(e, _truncate(e, a, DType.INT32), dtype)


def _to_int32(e: Emitter, instruction: ToInt32, a: Value) -> Value:
    """float32 in one vector; what is a nearest whole number is rounded by the instruction.

    It gives the lowest int32 where ``a`` is out of range or NaN.
    """
    name = instruction.truncating if a.rounded is None else instruction.nearest
    operand = a if a.rounded is None else Value(a.rounded, a.dtype, a.lanes)
    if not instruction.masked:
        return e.call(name, DType.INT32, a.lanes, (operand,))
    nought = constant(0, DType.INT32, a.lanes)
    return e.call(name, DType.INT32, a.lanes, (operand, nought), f"i{a.lanes} -1", "i32 4")


def _truncate(e: Emitter, a: Value, dtype: DType) -> Value:
    """To int32 or int64; the lowest of it where it is out of range or NaN."""
    limit = 2.0 ** (dtype.bytes * 8 - 1)
    below = e.compare("olt", a, constant(limit, a.dtype, a.lanes))
    if a.dtype is DType.FLOAT64 and dtype is DType.INT32:
        above = e.compare("ogt", a, constant(-limit - 1, a.dtype, a.lanes))
    else:
        above = e.compare("oge", a, constant(-limit, a.dtype, a.lanes))
    inside = e.binary("and", below, above)
    lowest = constant(-int(limit), dtype, a.lanes)
    return e.select(inside, e.convert("fptosi", a, dtype), lowest)


def _truncate_unsigned(e: Emitter, a: Value) -> Value:
    """To uint64, as compilers do it with the signed conversion alone."""
    half = constant(2.0**63, a.dtype, a.lanes)
    small = _truncate(e, a, DType.INT64)
    large = _truncate(e, e.binary("fsub", a, half), DType.INT64)
    flipped = e.binary("xor", large, constant(-(2**63), DType.INT64, a.lanes))
    chosen = e.select(e.compare("olt", a, half), small, flipped)
    return Value(chosen.ref, DType.UINT64, a.lanes)


def _between_integers(e: Emitter, a: Value, dtype: DType) -> Value:
    if a.constant is not None:
        return constant(a.constant, dtype, a.lanes)
    if a.dtype.bytes == dtype.bytes:
        result = Value(a.ref, dtype, a.lanes)
    elif dtype.bytes < a.dtype.bytes:
        result = e.convert("trunc", a, dtype)
    else:
        result = e.convert("sext" if a.dtype.is_signed else "zext", a, dtype)
    bits = dtype.bytes * 8
    least, most = (
        (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.is_signed else (0, (1 << bits) - 1)
    )
    low, high = a.low, a.high
    if low is None or high is None:
        if a.dtype.bytes >= 8:
            return result
        source = a.dtype.bytes * 8
        low = -(1 << source - 1) if a.dtype.is_signed else 0
        high = (1 << source - a.dtype.is_signed) - 1
    if least <= low and high <= most:
        return _ranged(result, low, high)
    return result


def _ranged(a: Value, low: int, high: int) -> Value:
    return Value(a.ref, a.dtype, a.lanes, None, low, high)


def _float32_to_bfloat16(e: Emitter, a: Value) -> Value:
    kind = DType.UINT32
    bits = e.bitcast(a, kind)
    sixteen = constant(16, kind, a.lanes)
    even = e.binary("and", e.binary("lshr", bits, sixteen), constant(1, kind, a.lanes))
    rounded = e.binary("add", e.binary("add", bits, constant(0x7FFF, kind, a.lanes)), even)
    quiet = e.binary("or", bits, constant(0x400000, kind, a.lanes))
    chosen = e.select(e.compare("uno", a, a), quiet, rounded)
    return e.convert("trunc", e.binary("lshr", chosen, sixteen), DType.BFLOAT16)


def _half_to_float32(e: Emitter, a: Value) -> Value:
    """By a multiplication with 2**112, which is exact and makes subnormals normal."""
    kind = DType.UINT32

    def bits(value: int) -> Value:
        return constant(value, kind, a.lanes)

    wide = e.convert("zext", a, kind)
    sign = e.binary("shl", e.binary("and", wide, bits(0x8000)), bits(16))
    magnitude = e.binary("and", wide, bits(0x7FFF))
    moved = e.bitcast(e.binary("shl", magnitude, bits(13)), DType.FLOAT32)
    scaled = e.binary("fmul", moved, constant(2.0**112, DType.FLOAT32, a.lanes))
    special = e.compare("uge", magnitude, bits(0x7C00))
    infinite = e.binary("or", e.bitcast(moved, kind), bits(0x7F800000))
    chosen = e.select(special, infinite, e.bitcast(scaled, kind))
    return e.bitcast(e.binary("or", chosen, sign), DType.FLOAT32)


def _float32_to_half(e: Emitter, a: Value) -> Value:
    """Normal results by rounding bits, subnormal ones by the rounding of an addition."""
    kind = DType.UINT32

    def bits(value: int) -> Value:
        return constant(value, kind, a.lanes)

    raw = e.bitcast(a, kind)
    sign = e.binary("lshr", e.binary("and", raw, bits(0x80000000)), bits(16))
    magnitude = e.binary("and", raw, bits(0x7FFFFFFF))
    odd = e.binary("and", e.binary("lshr", magnitude, bits(13)), bits(1))
    rounded = e.binary("add", e.binary("add", magnitude, bits(0xFFF)), odd)
    normal = e.binary("lshr", e.binary("sub", rounded, bits(112 << 23)), bits(13))
    absolute = e.bitcast(magnitude, DType.FLOAT32)
    shifted = e.binary("fadd", absolute, constant(0.5, DType.FLOAT32, a.lanes))
    small = e.binary("sub", e.bitcast(shifted, kind), bits(0x3F000000))
    result = e.select(e.compare("ult", magnitude, bits(113 << 23)), small, normal)
    overflow = e.compare("uge", rounded, bits(143 << 23))
    result = e.select(overflow, bits(0x7C00), result)
    payload = e.binary("or", e.binary("lshr", magnitude, bits(13)), bits(0x200))
    quiet = e.binary("or", e.binary("and", payload, bits(0x3FF)), bits(0x7C00))
    result = e.select(e.compare("ugt", magnitude, bits(0x7F800000)), quiet, result)
    return e.convert("trunc", e.binary("or", result, sign), DType.FLOAT16)
