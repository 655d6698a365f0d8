"""Sums and products of two tensors of raised bytes, scaled by float32 ratios."""

import numpy as np

from ....dtypes import DType
from ...operators.elementwise import BinaryFunction, MultiplyAdd
from ...operators.integer.values import Add, Multiply
from .raised_bytes import F32, RAISE, RaisedBytes

__all__ = ["add", "multiply"]


def add(new: RaisedBytes, a: str, b: str, operator: Add) -> str:
    """Two multiplications that add, each rounded once."""
    ra, rb = F32(operator.a_ratio), F32(operator.b_ratio)
    shift = 128 if operator.unsigned else 0
    product = np.float64(F32(np.float64(rb) * (operator.b_zero_point + shift)))
    start = F32(np.float64(ra) * (operator.a_zero_point + shift) + product)
    rest = F32(operator.zero_point + shift) - start
    bound = 256 * float(ra + rb) + abs(float(rest))
    total = new.constant(np.asarray(rest))
    for x, ratio in ((b, rb), (a, ra)):
        total = new.emit(
            MultiplyAdd(), _shifted(new, x, shift), new.constant(np.asarray(ratio)), total
        )
    return new.saturated(total, -shift, operator.low, operator.high, bound)


def multiply(new: RaisedBytes, a: str, b: str, operator: Multiply) -> str:
    """An exact product, scaled, then moved, each rounded."""
    left = new.centred(a, operator.a_zero_point, DType.FLOAT32)
    right = new.centred(b, operator.b_zero_point, DType.FLOAT32)
    product = new.binary(BinaryFunction.MUL, left, right)
    scaled = new.binary(BinaryFunction.MUL, product, F32(operator.ratio))
    shift = 128 if operator.unsigned else 0
    total = new.moved(scaled, operator.zero_point + shift)
    bound = (1 << 16) * operator.ratio + 256
    return new.saturated(total, -shift, operator.low, operator.high, bound)


def _shifted(new: RaisedBytes, x: str, shift: int) -> str:
    """Values of raised bytes, plus ``shift``, in float32, where that is exact."""
    if new.builder.types[x].dtype != DType.FLOAT32:
        x = new.cast(x, DType.FLOAT32)
    return new.moved(x, shift - RAISE)
