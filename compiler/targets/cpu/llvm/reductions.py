"""Combining: of a buffer's element with a value, and of the lanes of a vector with each other."""

from ....dtypes import DType
from ....loops.expressions import BinaryFunction as B
from ...llvm.values import Value, constant
from .context import Context, Place
from .expressions import binary
from .memory import load, store

__all__ = ["accumulate", "add_product", "reduce_lanes", "update_scattered"]

_WIDE = (DType.FLOAT32, DType.FLOAT64)


def accumulate(context: Context, function: B, old: Value, value: Value) -> Value:
    """``function(old, value)``; float sums and products may be reassociated."""
    if old.dtype in _WIDE and function in (B.ADD, B.MUL):
        return context.e.binary(f"f{function.value} reassoc", old, value)
    result = binary(context, function, old, value)
    assert isinstance(result, Value)
    return result


def add_product(context: Context, old: Value, a: Value, b: Value) -> Value:
    """``old + a * b`` of floats, rounded once where the CPU has such an instruction."""
    e = context.e
    return e.binary("fadd reassoc contract", e.binary("fmul contract", a, b), old)


def reduce_lanes(context: Context, function: B, value: Value) -> Value:
    """All active lanes combined, as a scalar: halves with halves."""
    e = context.e
    neutral = constant(_neutral(function, value.dtype), value.dtype, value.lanes)
    if context.mask is not None:
        value = e.select(context.mask, value, neutral)
    wide = 1 << (value.lanes - 1).bit_length()
    if wide > value.lanes:
        picks = ", ".join(f"i32 {min(lane, value.lanes)}" for lane in range(wide))
        text = f"shufflevector {value.typed}, {neutral.typed}, <{wide} x i32> <{picks}>"
        value = e.op(text, value.dtype, wide)
    while value.lanes > 1:
        half = value.lanes // 2
        parts = []
        for first in (0, half):
            picks = ", ".join(f"i32 {first + lane}" for lane in range(half))
            text = f"shufflevector {value.typed}, {value.type} poison, <{half} x i32> <{picks}>"
            parts.append(e.op(text, value.dtype, half) if half > 1 else e.extract(value, first))
        value = accumulate(context, function, *parts)
    return value


def _neutral(function: B, dtype: DType) -> int | float | bool:
    """The neutral element of a combination."""
    bits = dtype.bytes * 8
    low: int | float = -float("inf")
    high: int | float = float("inf")
    if not dtype.is_float:
        low = -(1 << bits - 1) if dtype.is_signed else 0
        high = (1 << bits - dtype.is_signed) - 1
    if dtype is DType.BOOL:
        low, high = 0, 1
    match function:
        case B.MUL:
            return 1
        case B.MIN:
            return high
        case B.MAX:
            return low
        case B.AND:
            return True if dtype is DType.BOOL else -1
        case _:
            return -0.0 if dtype.is_float else 0


def update_scattered(
    context: Context, place: Place, offset: Value, function: B, value: Value
) -> None:
    """Lane by lane, since two lanes may combine into one element."""
    e = context.e
    mask, lanes = context.mask, context.lanes
    context.lanes = 1
    for lane in range(lanes):
        end = e.label("next")
        if mask is not None:
            active = e.label("active")
            e.branch(e.extract(mask, lane), active, end)
            e.start(active)
        with context.masked(None, True):
            where = e.extract(offset, lane)
            old = load(context, place, where)
            new = accumulate(context, function, old, e.extract(value, lane))
            store(context, place, where, new)
        if mask is not None:
            e.jump(end)
            e.start(end)
    context.lanes = lanes
