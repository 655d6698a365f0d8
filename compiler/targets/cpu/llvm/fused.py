"""Multiply and add with one rounding, on CPUs without such an instruction too."""

from ....dtypes import DType
from ...llvm.values import Value, constant
from ..arch.arch import Ability
from .conversions import convert
from .emitter import Emitter

__all__ = ["exact_multiply_add"]


def exact_multiply_add(e: Emitter, a: Value, b: Value, c: Value) -> Value:
    """``a * b + c`` of float32, rounded once.

    Without the instruction: the product is exact in float64; the sum is rounded to the neighbour
    whose last bit is set, from which float32 rounds as from the exact sum.  Source: S. Boldo and
    G. Melquiond, "Emulation of a FMA and correctly rounded sums", 2008.
    """
    if e.module.target.can(Ability.MULTIPLY_ADD):
        return e.intrinsic("fma", a, b, c)
    x, y, z = (convert(e, each, DType.FLOAT64) for each in (a, b, c))
    product = e.binary("fmul", x, y)
    total = e.binary("fadd", product, z)
    part = e.binary("fsub", total, product)
    rest = e.binary("fsub", product, e.binary("fsub", total, part))
    error = e.binary("fadd", rest, e.binary("fsub", z, part))
    bits = e.bitcast(total, DType.INT64)
    zero = constant(0.0, DType.FLOAT64, total.lanes)
    inexact = e.compare("one", error, zero)
    even = e.compare("eq", e.binary("and", bits, _int(1, total)), _int(0, total))
    grows = e.compare("eq", _sign(e, error), _sign(e, total))
    step = e.select(grows, _int(1, total), _int(-1, total))
    moved = e.select(e.binary("and", inexact, even), e.binary("add", bits, step), bits)
    return convert(e, e.bitcast(moved, DType.FLOAT64), DType.FLOAT32)


def _int(value: int, like: Value) -> Value:
    return constant(value, DType.INT64, like.lanes)


def _sign(e: Emitter, value: Value) -> Value:
    bits = e.bitcast(value, DType.INT64)
    return e.binary("lshr", bits, _int(63, value))
