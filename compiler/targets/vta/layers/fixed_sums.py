"""Parameters of a requantisation in PAR, and whether TensorFlow Lite's fits the fixed point there.

The vector unit keeps 24 bits of a sum's magnitude and 27 of its bias.  Nothing is lost when no sum
is larger, or when every larger one is clipped in any case.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.requantize import FIXED_BIAS_BITS, FIXED_MOST_LEFT, fixed_parameters

from ....graph.ir import Array
from ....graph.operators.integer.products import Conv2d, Dense

__all__ = [
    "ANYTHING",
    "folded_bias",
    "parameters_of",
    "shift_problem",
    "sum_limits",
    "sums_problem",
]

MOST_RIGHT = 24
LARGEST_SUM = (1 << 24) - 1
ANYTHING = np.array([[-128], [127]])
BEYOND = 256
"""With any zero point this is beyond int8."""


def shift_problem(largest: int) -> str | None:
    """Why no result can be multiplied by ``2^largest``."""
    fits = largest <= FIXED_MOST_LEFT
    return None if fits else f"a shift of {largest}; required at most {FIXED_MOST_LEFT}"


def parameters_of(bias: Array, given: Sequence[Array]) -> tuple[Array, Array]:
    """The halves of words of PAR for each channel: int32, and float32 or, in fixed point, int32.

    given: what a Requantize reads besides sums, a scale, or a RequantizeFixed: multiplier, shift.
    """
    if len(given) == 1:
        return bias.astype(np.int32), given[0].astype(np.float32)
    multiplier, shift = (each.astype(np.int64) for each in given)
    # Shifted further, nothing is left of 24 bits.
    kept = np.where(shift < -MOST_RIGHT, 0, multiplier)
    word, bits = fixed_parameters(bias.astype(np.int64), kept, np.maximum(shift, -MOST_RIGHT))
    return word, bits.view(np.int32)


def folded_bias(weights: Array, bias: Array, operator: Conv2d) -> NDArray[np.int32]:
    """``bias - zero_point * sum(weights)``, one an output channel; wraps as int32 does.

    The weights count less their zero point.
    """
    factors = weights.astype(np.int64) - operator.weight_zero_point
    sums = factors.reshape(len(weights), -1).sum(axis=1)
    return (bias.astype(np.int64) - operator.zero_point * sums).astype(np.int32)


def sums_problem(
    operator: Conv2d, weights: Array, bias: Array, multiplier: Array, shift: Array
) -> str | None:
    """Why a convolution's sums cannot be requantised in the vector unit's fixed point."""
    shift = shift.astype(np.int64)
    if problem := shift_problem(int(shift.max())):
        return problem
    limit = 1 << (FIXED_BIAS_BITS - 1)
    largest = int(np.abs(folded_bias(weights, bias, operator).astype(np.int64)).max())
    if largest >= limit:
        return f"a bias of {largest}; required less than {limit}"
    most = np.maximum(*(np.abs(each) for each in sum_limits(operator, weights, bias)))
    doubled = most << np.maximum(shift, 0)
    product = (LARGEST_SUM * multiplier.astype(np.int64) + (1 << 30) - 1) >> 31
    clipped = product >> np.maximum(-1 * shift, 0) >= BEYOND
    lost = (doubled > LARGEST_SUM) & ~(clipped & (doubled < 1 << 31))
    if lost.any():
        channel = int(np.argmax(lost))
        return (
            f"sums of channel {channel} up to {most[channel]}; required less than 2^24, or that "
            "larger ones are clipped"
        )
    return None


def sum_limits(
    operator: Conv2d | Dense,
    weights: Array,
    bias: Array,
    read: NDArray[np.int64] = ANYTHING,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The smallest and the largest sum that the weights of each channel allow.

    read: int64[2, C] or [2, 1], the least and the most that the channels of the input hold, of a
    depthwise convolution those of the result.
    """
    factors = weights.astype(np.int64) - operator.weight_zero_point
    if factors.shape[-1] == 1 and read.shape[1] == len(weights):
        read = read.reshape(2, -1, *[1] * (factors.ndim - 1))
    ends = [((each - operator.zero_point) * factors).reshape(len(weights), -1) for each in read]
    offset = bias.astype(np.int64)
    low, high = (each(*ends).sum(axis=1) + offset for each in (np.minimum, np.maximum))
    return low, high
