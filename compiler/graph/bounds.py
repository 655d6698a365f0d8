"""Proof that no input can make an int32 accumulator overflow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError

__all__ = ["accumulator_bound", "check_accumulator"]

Array = NDArray[Any]
LIMIT = (1 << 31) - 1


def accumulator_bound(weights: Array, bias: Array, zero_point: int) -> int:
    """The largest ``abs(sum((x - zero_point) * w) + bias)`` over all int8 ``x`` and all outputs.

    weights: integer[O, ...], less their zero point; bias: integer[O].  The bound is
    ``sum(abs(w)) * max(abs(x - zero_point)) + abs(bias)``.
    """
    largest = max(127 - zero_point, zero_point + 128)
    sums = np.abs(weights.astype(np.int64)).reshape(len(weights), -1).sum(axis=1)
    return int((sums * largest + np.abs(bias.astype(np.int64))).max())


def check_accumulator(weights: Array, bias: Array, zero_point: int, origin: str) -> None:
    """Raise ModelError, naming node ``origin``, unless every accumulation fits int32."""
    bound = accumulator_bound(weights, bias, zero_point)
    if bound > LIMIT:
        raise ModelError(
            f"node {origin!r}: an accumulator can reach {bound}; int32 holds {LIMIT}; reduce the "
            "bias, or the number of weights of an output"
        )
