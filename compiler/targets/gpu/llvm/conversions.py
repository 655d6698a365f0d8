"""Conversions between element types, as on CPUs (docs/cpu.md)."""

from ....dtypes import DType
from .emitter import NARROW_FLOATS, Emitter, literal, value_type

__all__ = ["bits_of", "convert", "from_bits", "rounded"]


def rounded(e: Emitter, dtype: DType, a: str) -> str:
    """A float as the nearest one of ``dtype``, where that is narrower; still a float."""
    if dtype not in NARROW_FLOATS:
        return a
    narrow = e.op(f"fptrunc float {a} to {NARROW_FLOATS[dtype]}")
    return e.op(f"fpext {NARROW_FLOATS[dtype]} {narrow} to float")


def bits_of(e: Emitter, dtype: DType, a: str) -> str:
    """A value as memory holds it."""
    if dtype is DType.BOOL:
        return e.op(f"zext i1 {a} to i8")
    if dtype not in NARROW_FLOATS:
        return a
    narrow = e.op(f"fptrunc float {a} to {NARROW_FLOATS[dtype]}")
    return e.op(f"bitcast {NARROW_FLOATS[dtype]} {narrow} to i16")


def from_bits(e: Emitter, dtype: DType, a: str) -> str:
    """The value of what memory holds."""
    if dtype is DType.BOOL:
        return e.op(f"icmp ne i8 {a}, 0")
    if dtype not in NARROW_FLOATS:
        return a
    narrow = e.op(f"bitcast i16 {a} to {NARROW_FLOATS[dtype]}")
    return e.op(f"fpext {NARROW_FLOATS[dtype]} {narrow} to float")


def convert(e: Emitter, source: DType, target: DType, a: str) -> str:
    """``a`` as ``target``."""
    if source is target:
        return a
    old, new = value_type(source), value_type(target)
    if target is DType.BOOL:
        if source.is_float:
            return e.op(f"fcmp une {old} {a}, {literal(0, DType.FLOAT64)}")
        return e.op(f"icmp ne {old} {a}, 0")
    if target in NARROW_FLOATS:
        if source is DType.FLOAT64:
            if target is DType.BFLOAT16:
                return rounded(e, target, e.op(f"fptrunc double {a} to float"))
            return e.op(f"fpext half {e.op(f'fptrunc double {a} to half')} to float")
        return rounded(e, target, convert(e, source, DType.FLOAT32, a))
    if target.is_float:
        if source.is_float:
            if old == new:
                return a
            return e.op(f"{'fpext' if new == 'double' else 'fptrunc'} {old} {a} to {new}")
        return e.op(f"{'sitofp' if source.is_signed else 'uitofp'} {old} {a} to {new}")
    if source.is_float:
        return _to_integer(e, DType.FLOAT32 if old == "float" else source, target, a)
    size = (1 if source is DType.BOOL else 8 * source.bytes), 8 * target.bytes
    if size[0] == size[1]:
        return a
    if size[0] > size[1]:
        return e.op(f"trunc {old} {a} to {new}")
    return e.op(f"{'sext' if source.is_signed else 'zext'} {old} {a} to {new}")


def _to_integer(e: Emitter, source: DType, target: DType, a: str) -> str:
    """Truncated; what does not fit gives the lowest int32 or int64, or the low bits of that."""
    if target is DType.UINT64:
        return _to_unsigned(e, source, a)
    if target not in (DType.INT32, DType.INT64):
        wide = DType.INT64 if target is DType.UINT32 else DType.INT32
        return convert(e, wide, target, _to_integer(e, source, wide, a))
    bits = 8 * target.bytes
    old, new = value_type(source), value_type(target)
    edge = float(1 << bits - 1)
    low = e.op(f"fcmp oge {old} {a}, {literal(-edge, source)}")
    high = e.op(f"fcmp olt {old} {a}, {literal(edge, source)}")
    inside = e.op(f"and i1 {low}, {high}")
    safe = e.op(f"select i1 {inside}, {old} {a}, {old} {literal(0, source)}")
    whole = e.op(f"fptosi {old} {safe} to {new}")
    return e.op(f"select i1 {inside}, {new} {whole}, {new} {-(1 << bits - 1)}")


def _to_unsigned(e: Emitter, source: DType, a: str) -> str:
    old, edge = value_type(source), float(1 << 63)
    high = e.op(f"fcmp oge {old} {a}, {literal(edge, source)}")
    lower = e.op(f"fsub {old} {a}, {literal(edge, source)}")
    first = _to_integer(e, source, DType.INT64, a)
    second = _to_integer(e, source, DType.INT64, lower)
    fits = e.op(f"fcmp olt {old} {a}, {literal(2 * edge, source)}")
    raised = e.op(f"add i64 {second}, {-(1 << 63)}")
    raised = e.op(f"select i1 {fits}, i64 {raised}, i64 {-(1 << 63)}")
    return e.op(f"select i1 {high}, i64 {raised}, i64 {first}")
