"""Choice of convolutions that are computed by Winograd's tiles, and their weights.

Those of floats become less exact, those of bytes not.

The estimate counts cycles of one core: products, the two transforms, and the weights: a tile of 4
has four times as many of them as the kernel has.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .operators.contractions import Convolution
from .operators.integer_winograd import whole_transforms
from .operators.winograd import KERNEL, TILES, transforms

__all__ = [
    "INPUT_CYCLES",
    "OUTPUT_CYCLES",
    "choose_tile",
    "choose_whole_tile",
    "may_tile",
    "transformed_weights",
    "whole_weights",
]

Array = NDArray[Any]

MULTIPLY_ADDS = 27
"""In a cycle, of direct and transformed products alike: 32 lanes, and what loads leave of them."""
INPUT_CYCLES, OUTPUT_CYCLES = {2: 24, 4: 130}, {2: 16, 4: 80}
"""Cycles of the transforms of a tile of 16 channels."""
WEIGHT_BYTES = 12
"""Bytes that come in a cycle from memory, where the weights of a large network are."""
BYTE_PRODUCTS, WORD_PRODUCTS = 116, 54
"""In a cycle, of bytes directly and of transformed words."""
WHOLE_TILE = 4
WHOLE_INPUT_CYCLES, WHOLE_OUTPUT_CYCLES = 70, 110
GAIN = 1.2
"""Least estimated gain over direct products, for less exact results."""
WHOLE_GAIN = 1.05
"""The same where results are exact."""


def may_tile(operator: Convolution, weights: tuple[int, ...]) -> bool:
    """True if Winograd's tiles can compute a convolution of weights [O, C, 3, 3], fast or not."""
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


def choose_whole_tile(operator: Convolution, x: tuple[int, ...], weights: Array) -> int | None:
    """The tile for a convolution of uint8 by int8, if that is faster and exact.

    x: [N, C, H, W].  weights: int8[O, C, 3, 3].
    """
    if not may_tile(operator, weights.shape) or len(x) != 4:
        return None
    tile = WHOLE_TILE
    signed = weights.astype(np.int64).reshape(len(weights), -1)
    largest = max(np.maximum(signed, 0).sum(axis=1).max(), np.maximum(-signed, 0).sum(axis=1).max())
    if 255 * int(largest) >= whole_transforms(tile).limit:
        return None
    rows, columns = (
        size + sum(pads) - KERNEL + 1 for size, pads in zip(x[2:], operator.pads, strict=True)
    )
    channels, taps = prod(weights.shape[:2]), KERNEL * KERNEL
    direct = channels * taps * x[0] * rows * columns / BYTE_PRODUCTS
    tiles, places = x[0] * -(-rows // tile) * -(-columns // tile), (tile + KERNEL - 1) ** 2
    products = channels * places * tiles / WORD_PRODUCTS
    cycles = products + channels * places * 2 / WEIGHT_BYTES
    blocks_in, blocks_out = weights.shape[1] / 16, weights.shape[0] / 16
    cycles += tiles * (blocks_in * WHOLE_INPUT_CYCLES + blocks_out * WHOLE_OUTPUT_CYCLES)
    return tile if cycles * WHOLE_GAIN < direct else None


def whole_weights(packed: Array, tile: int) -> Array:
    """int16[T * T, O / B, C / B, B / 2, B, 2] from blocked weights, as ``transformed_weights``."""
    kernel = np.array(whole_transforms(tile).matrices.kernel, np.int64)
    wide = packed.astype(np.int64)
    u = np.einsum("pi,qj,ocijlk->pqoclk", kernel, kernel, wide, optimize=True)
    u = u.reshape(-1, *u.shape[2:4], u.shape[4] // 2, 2, u.shape[5])
    return np.ascontiguousarray(np.swapaxes(u, -1, -2), np.int16)


def _products(positions: int, channels: int, places: int) -> float:
    """Cycles of ``places`` products for each position and pair of channels, weights included."""
    return channels * places * (positions / MULTIPLY_ADDS + 4 / WEIGHT_BYTES)


def transformed_weights(packed: Array, tile: int) -> Array:
    """float32[T * T, O / B, C / B, B, B] from blocked weights [O / B, C / B, 3, 3, B in, B out]."""
    kernel = np.array(transforms(tile).kernel, np.float64)
    wide = packed.astype(np.float64)
    u = np.einsum("pi,qj,ocijlk->pqoclk", kernel, kernel, wide, optimize=True)
    return np.ascontiguousarray(u.reshape(-1, *u.shape[2:]), np.float32)
