"""Operators on whole rows: the last dimension, whose elements depend on each other."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..types import TensorType
from .protocol import Array, Fusion, require, require_inputs

__all__ = ["NormalizedRows", "SoftmaxRows"]


@frozen
class SoftmaxRows:
    """``exp(x - max) / sum(exp(x - max))`` of each row, or the logarithm of it.

    float32[..., N] or float64[..., N], N of at least 1.
    """

    logarithm: bool = False

    fusion: ClassVar[Fusion] = Fusion.REDUCTION

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The type of ``x``."""
        (x,) = require_inputs(self, inputs, 1)
        fits = x.dtype.is_float and x.dtype.bytes >= 4 and x.rank >= 1 and x.shape[-1] >= 1
        require(self, fits, x, "rows of float32 or float64")
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By NumPy's functions."""
        (x,) = inputs
        if not x.size:
            return (x.copy(),)
        with np.errstate(all="ignore"):
            shifted = x - x.max(axis=-1, keepdims=True)
            weights = np.exp(shifted)
            total = weights.sum(axis=-1, keepdims=True)
            return (shifted - np.log(total) if self.logarithm else weights / total,)


@frozen
class NormalizedRows:
    """``c / sqrt(mean(c * c) + epsilon)`` of each row, ``c`` the row, less its mean if ``centred``.

    float32[..., N], N of at least 1.
    """

    epsilon: float
    centred: bool

    fusion: ClassVar[Fusion] = Fusion.REDUCTION

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The type of ``x``."""
        (x,) = require_inputs(self, inputs, 1)
        fits = x.dtype is DType.FLOAT32 and x.rank >= 1 and x.shape[-1] >= 1
        require(self, fits, x, "rows of float32")
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By NumPy's functions."""
        (x,) = inputs
        rest = x - x.mean(axis=-1, keepdims=True) if self.centred else x
        squares = (rest * rest).mean(axis=-1, keepdims=True)
        return (rest / np.sqrt(squares + np.float32(self.epsilon)),)
