"""The meaning of kernels, slowly: the oracle of schedules and of tensorize."""

from collections.abc import Callable, Mapping, MutableMapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ir import Affine, Fold, Kernel, Product, Ref, Scaled, Stage, Total, Value
from .tiles import tile_loops

__all__ = ["run_kernel"]

Arrays = MutableMapping[str, NDArray[Any]]
Refill = Callable[[Mapping[str, int], Arrays], None]


def run_kernel(kernel: Kernel, arrays: Arrays, refill: Refill | None = None) -> None:
    """Run ``kernel`` on ``arrays`` (by buffer name), changing targets in place.

    Tile after tile: for each iteration of the loops that all stages share, each stage in turn.
    refill: called before each tile with its indices, to load what the tile reads of buffers that
    a schedule made to hold one tile's part.
    """
    shared = tile_loops(kernel)
    if len(kernel.stages) == 1 and refill is None:
        shared = ()
    for indices in product(*(range(loop.extent) for loop in shared)):
        tile = dict(zip((loop.name for loop in shared), indices, strict=True))
        if refill is not None:
            refill(tile, arrays)
        for stage in kernel.stages:
            _run_stage(stage, arrays, tile)


def _run_stage(stage: Stage, arrays: Arrays, tile: Mapping[str, int]) -> None:
    loops = [loop for loop in stage.loops if loop.name not in tile]
    outer = [loop for loop in loops if loop.name not in stage.reduction]
    inner = [loop for loop in loops if loop.name in stage.reduction]
    shape = [loop.extent for loop in (*outer, *inner)]
    grid = dict(
        zip((loop.name for loop in (*outer, *inner)), np.indices(shape, sparse=True), strict=True)
    )
    fixed = {name: np.asarray(value) for name, value in tile.items()}
    full = np.broadcast_to(_value(stage.value, arrays, grid | fixed), shape)
    axes = tuple(range(len(outer), len(shape)))
    match stage.fold:
        case Fold.NONE:
            result = full
        case Fold.SUM:
            result = full.sum(axis=axes)
        case Fold.MAX:
            result = full.max(axis=axes)
    start: tuple[Any, ...] = (..., *([0] * len(inner)))
    first = {name: g[start] if inner else g for name, g in grid.items()} | fixed
    if stage.finish:
        bias, scale = (_load(ref, arrays, first) for ref in (stage.finish.bias, stage.finish.scale))
        total = (result + bias).astype(np.int64).astype(np.int32).astype(np.float32)
        rounded = np.rint(total * scale.astype(np.float32)).astype(np.float64)
        moved = rounded + stage.finish.zero_point
        result = np.clip(moved, stage.finish.low, stage.finish.high).astype(np.int64)
    if stage.table:
        lanes = stage.target.indices[-1]
        result = arrays[stage.table.name][result + 128, _index(lanes, first)]
    target = arrays[stage.target.buffer.name]
    places = tuple(_index(index, first) for index in stage.target.indices)
    target[places] = result.astype(target.dtype)


def _index(index: Affine, grid: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    total: NDArray[np.int64] = np.asarray(index.constant)
    for name, factor in index.terms:
        total = total + grid[name] * factor
    return total


def _load(ref: Ref, arrays: Arrays, grid: dict[str, NDArray[np.int64]]) -> NDArray[Any]:
    return arrays[ref.buffer.name][tuple(_index(index, grid) for index in ref.indices)]


def _value(value: Value, arrays: Arrays, grid: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    match value:
        case Ref():
            return _load(value, arrays, grid).astype(np.int64)
        case Product(left=left, right=right, offset=offset):
            return _value(left, arrays, grid) * (_value(right, arrays, grid) + offset)
        case Scaled(ref=ref, factor=factor):
            return _value(ref, arrays, grid) * factor
        case Total(left=left, right=right):
            return _value(left, arrays, grid) + _value(right, arrays, grid)
