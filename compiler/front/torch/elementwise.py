"""Arithmetic, comparisons and functions of single elements."""

from math import inf, log, pi

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term
from ...graph.operators.elementwise import BinaryFunction as B
from ...graph.operators.elementwise import UnaryFunction as U
from .context import Context, Converter, Number
from .promotion import as_term, common_type, promoted

__all__ = ["ELEMENTWISE"]

Operand = Term | Number
LOGICAL = {B.ADD: B.OR, B.MUL: B.AND, B.MAX: B.OR, B.MIN: B.AND}
"""Logical functions that arithmetic on bool stands for."""


def _binary(function: B) -> Converter:
    """``function(x, other)`` in the common type."""

    def convert(context: Context, x: Operand, other: Operand) -> Term:
        a, b = promoted(context, x, other)
        return a.binary(LOGICAL.get(function, function) if a.dtype == DType.BOOL else function, b)

    return convert


def _swapped(function: B) -> Converter:
    convert = _binary(function)

    def convert_swapped(context: Context, x: Operand, other: Operand) -> Term:
        return convert(context, other, x)  # type: ignore[return-value]

    return convert_swapped


def _sum(function: B) -> Converter:
    """``x + alpha * other``, or the difference."""
    convert = _binary(function)

    def convert_scaled(context: Context, x: Operand, other: Operand, alpha: Number = 1) -> Term:
        dtype = common_type(x, other)
        if alpha != 1:
            other = as_term(context, other, dtype) * alpha
        return convert(context, as_term(context, x, dtype), as_term(context, other, dtype))  # type: ignore[return-value]

    return convert_scaled


def rsub(context: Context, x: Operand, other: Operand, alpha: Number = 1) -> Term:
    """``other - alpha * x``."""
    return _sum(B.SUB)(context, x=other, other=x, alpha=alpha)  # type: ignore[return-value]


def div(context: Context, x: Operand, other: Operand, rounding_mode: str | None = None) -> Term:
    """The quotient: exact, truncated or rounded down."""
    a, b = promoted(context, x, other)
    match rounding_mode:
        case None:
            return a.cast(context.dtype) / b.cast(context.dtype)
        case "floor":
            return a.binary(B.FLOORDIV, b)
        case "trunc":
            return (a / b).unary(U.TRUNC) if a.dtype.is_float else a / b
    raise UnsupportedOperatorError(f"{context.where}: rounding_mode {rounding_mode!r}")


def power(context: Context, x: Operand, exponent: Operand) -> Term:
    """``x ** exponent``; small whole exponents by products."""
    dtype = context.dtype
    if isinstance(x, Term) and not isinstance(exponent, Term):
        base = x.cast(dtype)
        if exponent == 2:
            return base * base
        if exponent == 3:
            return base * base * base
        if dtype.is_float and exponent in (0.5, -0.5, -1):
            root = base.sqrt() if exponent != -1 else base
            return root if exponent == 0.5 else 1.0 / root
    return as_term(context, x, dtype).power(as_term(context, exponent, dtype))


def _float(function: U) -> Converter:
    """A function of floats; integers become the declared type first."""

    def convert(context: Context, x: Term) -> Term:
        return x.cast(context.dtype).unary(function)

    return convert


def _rounding(function: U) -> Converter:
    """A function that leaves integers as they are."""

    def convert(context: Context, x: Term) -> Term:
        return x.unary(function) if x.dtype.is_float else x

    return convert


def _test(function: U) -> Converter:
    """A test that no integer passes."""

    def convert(context: Context, x: Term) -> Term:
        if x.dtype.is_float:
            return x.unary(function)
        return x.constant(False, DType.BOOL).expand(*x.shape)

    return convert


def _logical(function: B) -> Converter:
    def convert(context: Context, x: Term, other: Term) -> Term:
        return x.cast(DType.BOOL).binary(function, other.cast(DType.BOOL))

    return convert


def round_decimals(context: Context, x: Term, decimals: int = 0) -> Term:
    """To ``decimals`` digits, half to even."""
    if not x.dtype.is_float:
        return x
    scale = 10.0 ** abs(decimals)
    if decimals == 0:
        return x.rint()
    return (x * scale).rint() / scale if decimals > 0 else (x / scale).rint() * scale


def absolute(context: Context, x: Term) -> Term:
    """``|x|``."""
    return x if x.dtype == DType.BOOL or not x.dtype.is_signed else x.abs()


def sign(context: Context, x: Term) -> Term:
    """-1, 0 or 1."""
    if x.dtype == DType.BOOL:
        return x
    above = (x > 0).cast(x.dtype)
    return above - (x < 0).cast(x.dtype) if x.dtype.is_signed else above


def signbit(context: Context, x: Term) -> Term:
    """True where it is below 0, or -0."""
    return (x < 0) | x.equal(0) & (1.0 / x < 0) if x.dtype.is_float else x < 0


def expm1(context: Context, x: Term) -> Term:
    """``exp(x) - 1``, exact near 0: ``tanh(x / 2) * (exp(x) + 1)``."""
    x = x.cast(context.dtype)
    e = x.exp()
    return (x.abs() < 0.5).where((x * 0.5).tanh() * (e + 1.0), e - 1.0, x.dtype)


def log1p(context: Context, x: Term) -> Term:
    """``log(1 + x)``, exact near 0.  Source: W. Kahan: ``log(u) * x / (u - 1)``, u = 1 + x."""
    x = x.cast(context.dtype)
    u = x + 1.0
    exact = u.log() * (x / (u - 1.0))  # the product alone would overflow
    return u.equal(1.0).where(x, x.equal(inf).where(x, exact, x.dtype), x.dtype)


def _log_base(base: float) -> Converter:
    def convert(context: Context, x: Term) -> Term:
        return x.cast(context.dtype).log() * (1.0 / log(base))

    return convert


def exp2(context: Context, x: Term) -> Term:
    """``2 ** x``."""
    x = x.cast(context.dtype)
    return x.constant(2.0, x.dtype).power(x)


def atan2(context: Context, x: Operand, other: Operand) -> Term:
    """The angle of the point (other, x)."""
    y, a = (as_term(context, each, context.dtype) for each in (x, other))
    angle = (y / a).unary(U.ATAN)
    below = signbit(context, y)
    half = below.where(-pi, pi, y.dtype)
    turned = signbit(context, a).where(angle + half, angle, y.dtype)
    still = y.equal(0).where(signbit(context, a).where(half, y, y.dtype), turned, y.dtype)
    nan = y.unary(U.ISNAN) | a.unary(U.ISNAN)
    both = y.unary(U.ISINF) & a.unary(U.ISINF)
    corner = signbit(context, a).where(half * 0.75, half * 0.25, y.dtype)
    return nan.where(y + a, both.where(corner, still, y.dtype), y.dtype)


def clamp(
    context: Context, x: Term, low: Operand | None = None, high: Operand | None = None
) -> Term:
    """``min(max(x, low), high)``; what is None does not limit."""
    dtype = common_type(*(each for each in (x, low, high) if each is not None))
    found = x.cast(dtype)
    if low is not None:
        found = found.maximum(as_term(context, low, dtype))
    return found if high is None else found.minimum(as_term(context, high, dtype))


def where(context: Context, condition: Term, x: Operand, other: Operand) -> Term:
    """``x`` where the condition holds, else ``other``."""
    a, b = promoted(context, x, other)
    return condition.cast(DType.BOOL).where(a, b, a.dtype)


def isfinite(context: Context, x: Term) -> Term:
    """Neither infinite nor NaN."""
    if not x.dtype.is_float:
        return x.constant(True, DType.BOOL).expand(*x.shape)
    return ~(x.unary(U.ISNAN) | x.unary(U.ISINF))


FLOATS = {
    "acos": U.ACOS, "acosh": U.ACOSH, "asin": U.ASIN, "asinh": U.ASINH, "atan": U.ATAN,
    "atanh": U.ATANH, "cos": U.COS, "cosh": U.COSH, "erf": U.ERF, "exp": U.EXP, "log": U.LOG,
    "sin": U.SIN, "sinh": U.SINH, "sqrt": U.SQRT, "tan": U.TAN, "tanh": U.TANH,
}  # fmt: skip
ROUNDING = {"ceil": U.CEIL, "floor": U.FLOOR, "trunc": U.TRUNC, "fix": U.TRUNC}
PAIRS = {
    "fmax": B.MAX, "fmin": B.MIN, "max.other": B.MAX, "min.other": B.MIN, "mul": B.MUL,
    "multiply": B.MUL, "maximum": B.MAX, "minimum": B.MIN, "remainder": B.MOD, "fmod": B.REM,
    "eq": B.EQ, "ne": B.NE, "lt": B.LT, "le": B.LE, "bitwise_and": B.AND, "bitwise_or": B.OR,
    "bitwise_xor": B.XOR, "__and__": B.AND, "__or__": B.OR, "__xor__": B.XOR,
    "bitwise_left_shift": B.SHL, "bitwise_right_shift": B.SHR, "__lshift__": B.SHL,
    "__rshift__": B.SHR,
}  # fmt: skip
OTHERS: dict[str, Converter] = {
    "bitwise_not": lambda context, x: ~x, "logical_not": lambda context, x: ~x.cast(DType.BOOL),
    "neg": lambda context, x: -x, "square": lambda context, x: x * x,
    "reciprocal": lambda context, x: 1.0 / x.cast(context.dtype),
    "rsqrt": lambda context, x: 1.0 / x.cast(context.dtype).sqrt(),
    "floor_divide": lambda context, x, other: div(context, x, other, "floor"),
    "abs": absolute, "add": _sum(B.ADD), "atan2": atan2, "clamp": clamp, "clip": clamp,
    "clamp_min": clamp, "clamp_max": clamp, "div": div, "divide": div, "exp2": exp2,
    "expm1": expm1, "ge": _swapped(B.LE), "greater": _swapped(B.LT),
    "greater_equal": _swapped(B.LE), "gt": _swapped(B.LT), "isfinite": isfinite,
    "isinf": _test(U.ISINF), "isnan": _test(U.ISNAN), "log10": _log_base(10), "log1p": log1p,
    "log2": _log_base(2), "logical_and": _logical(B.AND), "logical_or": _logical(B.OR),
    "logical_xor": _logical(B.XOR), "pow": power, "round": round_decimals, "rsub": rsub,
    "sign": sign, "signbit": signbit, "sub": _sum(B.SUB), "subtract": _sum(B.SUB),
    "true_divide": div, "where": where,
}  # fmt: skip

ELEMENTWISE: dict[str, Converter] = {
    **{f"aten.{name}": _float(function) for name, function in FLOATS.items()},
    **{f"aten.{name}": _rounding(function) for name, function in ROUNDING.items()},
    **{f"aten.{name}": _binary(function) for name, function in PAIRS.items()},
    **{f"aten.{name}": converter for name, converter in OTHERS.items()},
}
