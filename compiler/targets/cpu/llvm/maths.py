"""Elementary functions of float32 and float64, in any number of lanes, without a call of libm."""

from collections.abc import Callable
from dataclasses import replace

from ....dtypes import DType
from ....loops.expressions import UnaryFunction as U
from ...llvm.values import Value, constant
from ..arch.arch import Ability
from . import exponentials, trigonometry
from .emitter import Emitter
from .lanes import Lanes
from .powers import power as lanes_power

__all__ = ["power", "rounded", "unary"]

_OWN = {
    U.EXP: exponentials.exp,
    U.LOG: exponentials.log,
    U.TANH: exponentials.tanh,
    U.ERF: exponentials.erf,
    U.SIN: trigonometry.sin,
    U.COS: trigonometry.cos,
}
"""Functions computed in the operand's dtype."""

_WIDE: dict[U, Callable[[Lanes], Lanes]] = {
    U.TAN: trigonometry.tan,
    U.ASIN: trigonometry.asin,
    U.ACOS: trigonometry.acos,
    U.ATAN: trigonometry.atan,
    U.SINH: exponentials.sinh,
    U.COSH: exponentials.cosh,
    U.ASINH: exponentials.asinh,
    U.ACOSH: exponentials.acosh,
    U.ATANH: exponentials.atanh,
}
"""Functions computed in float64."""


def unary(e: Emitter, function: U, a: Value) -> Value:
    """``function(a)`` of a float32 or float64."""
    x = Lanes(e, a)
    if function in _OWN:
        return _OWN[function](x).value
    return _WIDE[function](x.to(DType.FLOAT64)).to(a.dtype).value


def power(e: Emitter, a: Value, b: Value) -> Value:
    """``a ** b`` of a float32 or float64."""
    if b.constant == 1:
        return a
    if b.constant == 2:
        return e.binary("fmul", a, a)
    return lanes_power(Lanes(e, a), Lanes(e, b)).value


def rounded(e: Emitter, rounding: str, a: Value) -> Value:
    """``floor``, ``ceil``, ``trunc`` or ``rint``.  Not every CPU has instructions."""
    if e.module.target.can(Ability.ROUND):
        result = e.intrinsic(rounding, a)
        return replace(result, rounded=a.ref) if rounding == "rint" else result
    magnitude = e.intrinsic("fabs", a)
    if rounding == "trunc":
        whole = _floor(e, magnitude)
    elif rounding == "rint":
        whole = _rint(e, magnitude)
    else:
        whole = _floor(e, a) if rounding == "floor" else _ceil(e, a)
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
