"""Sums of products with bytes added: whole numbers of float32."""

import numpy as np

from dovetail.isa.requantize import WIDE_LIMIT

from ....dtypes import DType
from ...operators.elementwise import BinaryFunction
from ...operators.integer.residual import RequantizeAdd
from ...operators.integer.rules import F32
from .raised_bytes import Array, RaisedBytes

__all__ = ["requantize_add"]


def requantize_add(
    new: RaisedBytes, x: str, scale: Array, other: str, operator: RequantizeAdd
) -> str:
    """``RequantizeAdd`` of int32 and raised bytes in one order, raised."""
    if new.builder.types[x].dtype != DType.FLOAT32:
        x = new.cast(x, DType.FLOAT32)
    scaled = new.binary(BinaryFunction.MUL, x, new.constant(np.asarray(scale, F32)))
    whole = new.rounded(scaled, 0, -WIDE_LIMIT, WIDE_LIMIT)
    moved = new.centred(other, operator.r_zero_point, DType.FLOAT32)
    if operator.factor > 1:
        moved = new.binary(BinaryFunction.MUL, moved, operator.factor)
    total = new.binary(BinaryFunction.ADD, whole, moved)
    steps = new.binary(BinaryFunction.MUL, total, F32(operator.step))
    return new.saturated(steps, operator.zero_point, operator.low, operator.high)
