"""Dequantised constants as tensors like those that are computed: where they are joined or added."""

import numpy as np

from .state import State
from .values import Integer, Real, RealConstant, Value, identity_order

__all__ = ["as_tensor"]


def as_tensor(state: State, value: Value, stem: str) -> Value:
    """A constant of bytes with one scale as a tensor of the new graph; any other value itself.

    stem: what the tensor's name begins with.
    """
    if not isinstance(value, RealConstant) or value.scales.size > 1:
        return value
    if value.values.dtype not in (np.int8, np.uint8):
        return value
    unsigned = value.values.dtype == np.uint8
    less = 128 if unsigned else 0
    bytes_ = (value.values.astype(np.int16) - less).astype(np.int8)
    name = state.builder.constant(f"{stem}/bytes", bytes_)
    tensor = Integer(name, identity_order(bytes_.ndim), unsigned)
    return Real(tensor, value.scales[0], int(value.zero_points[0]) - less)
