"""int8 weights that are made of 4 bits: a number from -8 to 7 times a factor of its group.

A group is ``GROUP`` inputs of an output channel (and of a window's element); the factor is a whole
number from 1 to 16, besides the channel's float32 scale.  The file stays one of int8 weights, which
every runtime takes; an accelerator with ``nibble_weights`` finds the form again.
Source of the two levels: Dai et al., "VS-Quant", MLSys 2021.
"""

import numpy as np
from numpy.typing import NDArray

from ....graph.ir import Array
from .scales import BIAS_LIMIT, SMALLEST_SCALE, Weights

__all__ = ["GROUP", "LIMITS", "four_bit_weights"]

Real = NDArray[np.float64]

GROUP = 16
"""Inputs that share a factor."""
MOST = 16
"""Largest factor."""
LIMITS = -8, 7
"""Least and largest number of 4 bits."""
SHARES = np.linspace(0.6, 1.1, 11)
"""Parts, each of them tried, of the scale that reaches a channel's largest weight."""


def four_bit_weights(
    weights: Array, bias: Array | None, x_scale: np.float32, axis: int, group: int = GROUP
) -> Weights:
    """As ``quantize_weights``, of 4 bits: the scale and factors of each channel with the least mean
    square error among those tried.

    weights: float32, output channels along ``axis`` 0 or 1, inputs along the other.  group: inputs
    that share a factor.
    """
    rows = np.moveaxis(weights, (axis, 1 - axis), (0, -1)).astype(np.float64)
    channels, width = len(rows), rows.shape[-1]
    groups = -(-width // group)
    padded = np.zeros((*rows.shape[:-1], groups * group))
    padded[..., :width] = rows
    padded = padded.reshape(channels, -1, group)
    largest = np.abs(padded).max(axis=(1, 2)) / (MOST * LIMITS[1])
    needed = np.zeros(channels)
    if bias is not None:
        needed = np.abs(bias.astype(np.float64)) / float(x_scale) / BIAS_LIMIT
    scales = np.full(channels, np.float32(1))
    integers, least = np.zeros(padded.shape, np.int8), np.full(channels, np.inf)
    factors = np.ones(padded.shape, np.int8)
    for share in SHARES:
        tried = np.maximum(np.maximum(largest * share, needed), SMALLEST_SCALE).astype(np.float32)
        numbers, each, errors = _nearest(padded, tried.astype(np.float64))
        better = errors < least
        scales, least = np.where(better, tried, scales), np.where(better, errors, least)
        integers[better], factors[better] = numbers[better], each[better, :, None]
    scales = np.where((largest == 0) & (needed == 0), np.float32(1), scales)
    placed = [
        np.ascontiguousarray(
            np.moveaxis(each.reshape(*rows.shape[:-1], -1)[..., :width], (0, -1), (axis, 1 - axis))
        )
        for each in (integers, factors)
    ]
    if bias is None:
        return Weights(placed[0], scales, None, placed[1])
    units = scales.astype(np.float64) * float(x_scale)
    steps = np.rint(bias.astype(np.float64) / units).astype(np.int32)
    return Weights(placed[0], scales, steps, placed[1])


def _nearest(groups: Real, scales: Real) -> tuple[NDArray[np.int8], NDArray[np.int8], Real]:
    """int8[channels, groups, group], by the best factor of each group; int8[channels, groups],
    these; and each channel's error.
    """
    best = np.zeros(groups.shape, np.int8)
    chosen = np.ones(groups.shape[:2], np.int8)
    least = np.full(groups.shape[:2], np.inf)
    for factor in range(1, MOST + 1):
        step = (scales * factor)[:, None, None]
        numbers = np.clip(np.rint(groups / step), *LIMITS)
        errors = ((numbers * step - groups) ** 2).sum(axis=2)
        better = errors < least
        best[better] = (numbers[better] * factor).astype(np.int8)
        least, chosen = np.where(better, errors, least), np.where(better, np.int8(factor), chosen)
    return best, chosen, least.sum(axis=1)
