"""Arithmetic of floats: IEEE 754, each operation rounded to its dtype.

float16 and bfloat16 compute in float32 and round, which equals one rounding for + - * / and sqrt.
"""

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import BinaryFunction as B
from ....loops.expressions import UnaryFunction as U
from ...llvm.values import Value, constant
from . import maths
from .conversions import from_float32, to_float32
from .emitter import Emitter
from .remainders import modulo, remainder

__all__ = ["float_binary", "float_compare", "float_unary"]

_PLAIN = {B.ADD: "fadd", B.SUB: "fsub", B.MUL: "fmul", B.DIV: "fdiv"}
_PREDICATES = {B.LT: "olt", B.LE: "ole", B.EQ: "oeq", B.NE: "une"}
_ROUNDINGS = {U.FLOOR: "floor", U.CEIL: "ceil", U.TRUNC: "trunc", U.RINT: "rint"}


def float_binary(e: Emitter, function: B, a: Value, b: Value) -> Value:
    """``function(a, b)`` of floats.  Raises GraphError for a function of integers."""
    if function is B.FLOORDIV:
        return float_unary(e, U.FLOOR, float_binary(e, B.DIV, a, b))
    if a.dtype in (DType.FLOAT16, DType.BFLOAT16):
        wide = float_binary(e, function, to_float32(e, a), to_float32(e, b))
        return from_float32(e, wide, a.dtype)
    if function in _PLAIN:
        return e.binary(_PLAIN[function], a, b)
    match function:
        case B.MIN | B.MAX:
            return _extreme(e, function, a, b)
        case B.REM:
            return remainder(e, a, b)
        case B.MOD:
            return modulo(e, a, b)
        case B.POW:
            return maths.power(e, a, b)
        case _:
            raise GraphError(f"{function} of {a.dtype}; required integers; cast or bitcast them")


def float_compare(e: Emitter, function: B, a: Value, b: Value) -> Value:
    """A comparison; false with NaN, except for ``ne``."""
    return e.compare(_PREDICATES[function], to_wide(e, a), to_wide(e, b))


def to_wide(e: Emitter, a: Value) -> Value:
    """Itself, or the float32 of a narrow float."""
    return a if a.dtype is DType.FLOAT64 else to_float32(e, a)


def float_unary(e: Emitter, function: U, a: Value) -> Value:
    """``function(a)`` of floats.  Raises GraphError for ``not``."""
    narrow = a.dtype in (DType.FLOAT16, DType.BFLOAT16)
    if function is U.NEG and narrow:
        return _bits(e, "xor", a, 0x8000)
    if function is U.ABS and narrow:
        return _bits(e, "and", a, 0x7FFF)
    if narrow:
        wide = float_unary(e, function, to_float32(e, a))
        return wide if wide.dtype is DType.BOOL else from_float32(e, wide, a.dtype)
    match function:
        case U.NEG:
            return e.op(f"fneg {a.typed}", a.dtype, a.lanes)
        case U.ABS:
            return e.intrinsic("fabs", a)
        case U.SQRT:
            return e.intrinsic("sqrt", a)
        case U.ISNAN:
            return e.compare("uno", a, a)
        case U.ISINF:
            infinite = constant(float("inf"), a.dtype, a.lanes)
            return e.compare("oeq", e.intrinsic("fabs", a), infinite)
        case U.NOT:
            raise GraphError(f"not of {a.dtype}; required integers or bool; cast it")
        case _ if function in _ROUNDINGS:
            return maths.rounded(e, _ROUNDINGS[function], a)
        case _:
            return maths.unary(e, function, a)


def _bits(e: Emitter, opcode: str, a: Value, mask: int) -> Value:
    ref = str(mask) if a.lanes == 1 else f"splat (i16 {mask})"
    return e.binary(opcode, a, Value(ref, a.dtype, a.lanes))


def _extreme(e: Emitter, function: B, a: Value, b: Value) -> Value:
    """The compare and select become x86's min or max, whose second operand wins with NaN."""
    predicate = "olt" if function is B.MIN else "ogt"
    if b.constant is not None and b.constant == b.constant:
        return e.select(e.compare(predicate, b, a), b, a)
    chosen = e.select(e.compare(predicate, a, b), a, b)
    if a.constant is not None and a.constant == a.constant:
        return chosen
    return e.select(e.compare("uno", a, a), a, chosen)
