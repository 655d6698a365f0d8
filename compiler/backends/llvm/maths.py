"""Elementary functions."""

from ...dtypes import DType
from ...loops.expressions import UnaryFunction
from .emitter import Emitter
from .values import Value, constant

__all__ = ["power", "rounded", "unary"]


def unary(e: Emitter, function: UnaryFunction, a: Value) -> Value:
    suffix = "f" if a.dtype is DType.FLOAT32 else ""
    return e.each_lane(f"{function.value}{suffix}", a)


def power(e: Emitter, a: Value, b: Value) -> Value:
    return e.each_lane("powf" if a.dtype is DType.FLOAT32 else "pow", a, b)


def rounded(e: Emitter, rounding: str, a: Value) -> Value:
    """``floor``, ``ceil``, ``trunc`` or ``rint``; instructions from SSE4.1 on."""
    if "sse4.1" in e.module.target.features:
        return e.intrinsic(rounding, a)
    magnitude = e.intrinsic("fabs", a)
    if rounding == "trunc":
        whole = _floor(e, magnitude)
    elif rounding == "rint":
        whole = _rint(e, magnitude)
    else:
        result = _floor(e, a) if rounding == "floor" else _ceil(e, a)
        return e.intrinsic("copysign", result, a)
    return e.intrinsic("copysign", whole, a)


def _rint(e: Emitter, a: Value) -> Value:
    """By adding what leaves no bits for fractions; numbers above it are whole already."""
    limit = constant(2.0**23 if a.dtype is DType.FLOAT32 else 2.0**52, a.dtype, a.lanes)
    step = e.intrinsic("copysign", limit, a)
    near = e.binary("fsub", e.binary("fadd", a, step), step)
    return e.select(e.compare("olt", e.intrinsic("fabs", a), limit), near, a)


def _floor(e: Emitter, a: Value) -> Value:
    near = _rint(e, a)
    lower = e.binary("fsub", near, constant(1.0, a.dtype, a.lanes))
    return e.select(e.compare("ogt", near, a), lower, near)


def _ceil(e: Emitter, a: Value) -> Value:
    near = _rint(e, a)
    higher = e.binary("fadd", near, constant(1.0, a.dtype, a.lanes))
    return e.select(e.compare("olt", near, a), higher, near)
