"""Which convolutions are computed by Winograd's tiles, and their weights.

The estimate counts cycles of one core: products, the two transforms, and the weights: a tile of 4
has four times as many of them as the kernel has.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .operators.contractions import Convolution
from .operators.winograd import KERNEL, TILES, transforms

__all__ = ["choose_tile", "may_tile", "transformed_weights"]

Array = NDArray[Any]

MULTIPLY_ADDS = 27
"""In a cycle, of direct and transformed products alike: 32 lanes, and what loads leave of them."""
INPUT_CYCLES, OUTPUT_CYCLES = {2: 24, 4: 130}, {2: 16, 4: 80}
"""Of the transforms of a tile of 16 channels."""
WEIGHT_BYTES = 12
"""That come in a cycle from memory, where the weights of a large network are."""
GAIN = 1.2
"""Least estimated gain over direct products, for less exact results."""


def may_tile(operator: Convolution, weights: tuple[int, ...]) -> bool:
    """Whether Winograd's tiles can compute a convolution of weights [O, C, 3, 3], fast or not."""
    plain = {1} == {*operator.strides, *operator.dilations, *operator.expansions, operator.groups}
    return weights[2:] == (KERNEL, KERNEL) and plain and min(weights[:2]) >= 16


def choose_tile(operator: Convolution, x: tuple[int, ...], weights: tuple[int, ...]) -> int | None:
    """The tile of least estimated time for a convolution; None when direct products are as good.

    x: [N, C, H, W] and weights: [O, C, 3, 3].
    """
    if not may_tile(operator, weights):
        return None
    rows, columns = (
        size + sum(pads) - KERNEL + 1 for size, pads in zip(x[2:], operator.pads, strict=True)
    )
    channels = prod(weights[:2])
    taps = KERNEL * KERNEL
    least = _products(x[0] * rows * columns, channels, taps) / GAIN
    chosen = None
    for tile in TILES:
        tiles = x[0] * -(-rows // tile) * -(-columns // tile)
        blocks_in, blocks_out = weights[1] / 16, weights[0] / 16
        cycles = _products(tiles, channels, (tile + KERNEL - 1) ** 2)
        cycles += tiles * (blocks_in * INPUT_CYCLES[tile] + blocks_out * OUTPUT_CYCLES[tile])
        if cycles < least:
            least, chosen = cycles, tile
    return chosen


def _products(positions: int, channels: int, places: int) -> float:
    """Cycles of ``places`` products for each position and pair of channels, weights included."""
    return channels * places * (positions / MULTIPLY_ADDS + 4 / WEIGHT_BYTES)


def transformed_weights(packed: Array, tile: int) -> Array:
    """float32[T * T, O / B, C / B, B, B] from blocked weights [O / B, C / B, 3, 3, B in, B out]."""
    kernel = np.array(transforms(tile).kernel, np.float64)
    wide = packed.astype(np.float64)
    u = np.einsum("pi,qj,ocijlk->pqoclk", kernel, kernel, wide, optimize=True)
    return np.ascontiguousarray(u.reshape(-1, *u.shape[2:]), np.float32)
