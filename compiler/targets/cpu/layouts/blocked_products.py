"""Convolutions of blocked activations as contractions, and the order of their weights.

Each function takes the convolution, the batch, the positions of its result, and its weights
[O, C / groups, *kernel] with output channels, and where they are blocked input channels, in blocks
filled up with zeros.  The result is [N, O / B, *positions, B] always.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....graph.operators.contractions import Axis, Contract, Convolution

__all__ = [
    "SUMMED",
    "Product",
    "blocked_array",
    "blocked_weights",
    "dense",
    "dense_bytes",
    "depthwise",
    "depthwise_bytes",
    "first",
    "first_bytes",
    "first_rows",
]

Array = NDArray[Any]
Sizes = tuple[int, ...]
Terms = tuple[tuple[str, int], ...]

SUMMED = 4
"""Products of bytes that are summed at a time."""


@frozen
class Product:
    """contraction: of the activations and ``weights``."""

    contraction: Contract
    weights: Array


def blocked_array(array: Array, axis: int, block: int) -> Array:
    """Dimension ``axis`` in blocks, filled up with zeros; places in a block are the last one."""
    size = array.shape[axis]
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -size % block)
    split = np.pad(array, widths)
    shape = (*array.shape[:axis], -1, block, *array.shape[axis + 1 :])
    return np.ascontiguousarray(np.moveaxis(split.reshape(shape), axis + 1, -1))


def blocked_weights(weights: Array, block: int) -> Array:
    """[O, C, *kernel] as [O / B, C / B, *kernel, B of C, B of O]."""
    return np.swapaxes(blocked_array(blocked_array(weights, 0, block), 1, block), -1, -2)


def dense(operator: Convolution, batch: int, positions: Sizes, packed: Array) -> Product:
    """x: [N, C / B, *padded, B]; packed: as ``blocked_weights`` gives it."""
    places, taps, windows = _spatial(operator)
    outputs, depth, *kernel, inner, lane = packed.shape
    sizes = {"n": batch, "o": outputs, **_sized(places, positions), "lane": lane}
    sizes |= {"c": depth, **_sized(taps, kernel), "inner": inner}
    x = (_one("n"), _one("c"), *windows, _one("inner"))
    return _product(operator, sizes, x, ("o", "c", *taps, "inner", "lane"), places, packed)


def dense_bytes(operator: Convolution, batch: int, positions: Sizes, packed: Array) -> Product:
    """As ``dense``; of the input lanes, groups of 4 are summed at a time."""
    places, taps, windows = _spatial(operator)
    outputs, depth, *kernel, inner, lane = packed.shape
    split = packed.reshape(*packed.shape[:-2], inner // SUMMED, SUMMED, lane)
    sizes = {"n": batch, "o": outputs, **_sized(places, positions), "lane": lane}
    sizes |= {"c": depth, **_sized(taps, kernel), "group": inner // SUMMED, "near": SUMMED}
    x = (_one("n"), _one("c"), *windows, (("group", SUMMED), ("near", 1)))
    w = ("o", "c", *taps, "group", "lane", "near")
    return _product(operator, sizes, x, w, places, np.moveaxis(split, -2, -1))


def first(operator: Convolution, batch: int, positions: Sizes, packed: Array) -> Product:
    """x: [N, C, *padded], of few channels; packed: [O / B, C, *kernel, B]."""
    places, taps, windows = _spatial(operator)
    outputs, channels, *kernel, lane = packed.shape
    sizes = {"n": batch, "o": outputs, **_sized(places, positions), "lane": lane}
    sizes |= {"c": channels, **_sized(taps, kernel)}
    x = (_one("n"), _one("c"), *windows)
    return _product(operator, sizes, x, ("o", "c", *taps, "lane"), places, packed)


def first_bytes(operator: Convolution, batch: int, positions: Sizes, packed: Array) -> Product:
    """x: [N, *padded, 4], pixels filled up to 4 channels; packed: [O / B, C, *kernel, B].

    The products of a pixel are summed at a time.
    """
    places, taps, windows = _spatial(operator)
    outputs, channels, *kernel, lane = packed.shape
    rest = ((0, 0),) * (len(kernel) + 1)
    whole = np.pad(packed, ((0, 0), (0, SUMMED - channels), *rest))
    sizes = {"n": batch, "o": outputs, **_sized(places, positions), "lane": lane}
    sizes |= {**_sized(taps, kernel), "near": SUMMED}
    x = (_one("n"), *windows, _one("near"))
    weights = np.ascontiguousarray(np.moveaxis(whole, 1, -1))
    return _product(operator, sizes, x, ("o", *taps, "lane", "near"), places, weights)


def first_rows(operator: Convolution, batch: int, positions: Sizes, packed: Array) -> Product:
    """x: [N, *rows, W * C], pixels of C channels one after the other; packed as in ``first_bytes``.

    The products of a row of taps are summed 4 at a time, whichever pixels they belong to.
    """
    places, taps, windows = _spatial(operator)
    outputs, channels, *kernel, lane = packed.shape
    length = kernel[-1] * channels
    rows = np.moveaxis(packed, 1, -2).reshape(outputs, *kernel[:-1], length, lane)
    groups = -(-length // SUMMED)
    widths = [(0, 0)] * rows.ndim
    widths[-2] = (0, groups * SUMMED - length)
    split = np.pad(rows, widths).reshape(outputs, *kernel[:-1], groups, SUMMED, lane)
    sizes = {"n": batch, "o": outputs, **_sized(places, positions), "lane": lane}
    sizes |= {**_sized(taps[:-1], kernel[:-1]), "group": groups, "near": SUMMED}
    row = ((places[-1], operator.strides[-1] * channels), ("group", SUMMED), ("near", 1))
    w = ("o", *taps[:-1], "group", "lane", "near")
    weights = np.ascontiguousarray(np.moveaxis(split, -2, -1))
    return _product(operator, sizes, (_one("n"), *windows[:-1], row), w, places, weights)


def depthwise(operator: Convolution, batch: int, positions: Sizes, packed: Array) -> Product:
    """Each channel separately; x: [N, C / B, *padded, B]; packed: [C / B, *kernel, B]."""
    places, taps, windows = _spatial(operator)
    outputs, *kernel, lane = packed.shape
    sizes = {"n": batch, "o": outputs, **_sized(places, positions), "lane": lane}
    sizes |= _sized(taps, kernel)
    x = (_one("n"), _one("o"), *windows, _one("lane"))
    return _product(operator, sizes, x, ("o", *taps, "lane"), places, packed)


def depthwise_bytes(operator: Convolution, batch: int, positions: Sizes, packed: Array) -> Product:
    """As ``depthwise``; of the last dimension, groups of 4 neighbours are summed at a time."""
    places, taps, windows = _spatial(operator)
    outputs, *kernel, columns, lane = packed.shape
    split = packed.reshape(*packed.shape[:-2], columns // SUMMED, SUMMED, lane)
    sizes = {"n": batch, "o": outputs, **_sized(places, positions), "lane": lane}
    sizes |= {**_sized(taps[:-1], kernel), "group": columns // SUMMED, "near": SUMMED}
    row = ((places[-1], operator.strides[-1]), ("group", SUMMED), ("near", 1))
    x = (_one("n"), _one("o"), *windows[:-1], row, _one("lane"))
    weights = np.ascontiguousarray(np.moveaxis(split, -2, -1))
    w = ("o", *taps[:-1], "group", "lane", "near")
    return _product(operator, sizes, x, w, places, weights)


def _product(
    operator: Convolution,
    sizes: Mapping[str, int],
    x: Sequence[Terms],
    w: Sequence[str],
    places: Sequence[str],
    weights: Array,
) -> Product:
    number = {name: place for place, name in enumerate(sizes)}

    def axis(terms: Terms) -> Axis:
        return tuple((number[name], step) for name, step in terms)

    operands = (tuple(map(axis, x)), tuple(axis(_one(name)) for name in w))
    output = tuple(axis(_one(name)) for name in ("n", "o", *places, "lane"))
    contraction = Contract(tuple(sizes.values()), operands, output, operator.dtype)
    return Product(contraction, weights)


def _spatial(operator: Convolution) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Terms, ...]]:
    """Labels of positions and of taps, and the spatial axes of the input."""
    rank = len(operator.strides)
    places = tuple(f"p{axis}" for axis in range(rank))
    taps = tuple(f"k{axis}" for axis in range(rank))
    windows = tuple(
        ((places[axis], operator.strides[axis]), (taps[axis], operator.dilations[axis]))
        for axis in range(rank)
    )
    return places, taps, windows


def _sized(names: Sequence[str], sizes: Sequence[int]) -> dict[str, int]:
    return dict(zip(names, sizes, strict=True))


def _one(name: str) -> Terms:
    return ((name, 1),)
