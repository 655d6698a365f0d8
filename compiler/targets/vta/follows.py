"""Layers that can begin, or end, only after another layer has ended."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .least_reads import (
    NOTHING,
    PIXEL,
    Blocks,
    blocks_of,
    common,
    different,
    least_reads,
    makers_of,
)

__all__ = ["follows"]


def follows(layers: Sequence[LoweredLayer]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Layers that come after the last results of others: two arrays, bool[layers, layers].

    ``[n, m]`` of the first: some of layer ``m`` comes after the last block of the last pixel of
    layer ``n``.  Of the second: products with all weights of layer ``m`` do.

    A layer that skips some of what it could read, as with a stride of 2 and no window, may not need
    the last pixel.  Where several layers read parts of a result, one of them reads its last block;
    so what comes after every one of them comes after that block.
    """
    some, all_weights = (np.zeros((len(layers), len(layers)), bool) for _ in range(2))
    reads = [list(_uses(layers, number)) for number in range(len(layers))]
    for last in reversed(range(len(layers))):
        changed = [0] * len(layers)
        changed[last] = 1
        for number in range(last + 1, len(layers)):
            for use in reads[number]:
                # Layers that make the same blocks make different pixels of them.
                parts = dict[Blocks, int]()
                for n, beside in use.makers:
                    view = blocks_of(layers[n].output)
                    parts[view] = max(parts.get(view, 0), changed[n] - beside)
                blocks = sum(parts.values())
                if blocks:
                    every = use.blocks_a_pixel > use.blocks - blocks
                    made = layers[number].output.blocks if every else 1
                    changed[number] = max(changed[number], made)
                    all_weights[last, number] |= use.weighted and blocks == use.blocks
            some[last, number] = changed[number] > 0
        readers = _readers(layers, reads, last)
        if len(readers) > 1:
            some[last] |= (some | np.eye(len(layers), dtype=bool))[readers].all(0)
            all_weights[last] |= all_weights[readers].all(0)
    return some, all_weights


@frozen
class _Use:
    """An input of which a layer reads all blocks.

    blocks: how many.
    blocks_a_pixel: how many of them one pixel of a block of the result comes from.
    view: the blocks in the tensor that the input is part of.
    makers: layers that make parts of the input, if all pixels of those are read; each with the
    number of its blocks that are not read.
    weighted: whether the input is multiplied with weights.
    """

    blocks: int
    blocks_a_pixel: int
    view: Blocks
    makers: tuple[tuple[int, int], ...]
    weighted: bool


def _uses(layers: Sequence[LoweredLayer], number: int) -> Iterator[_Use]:
    layer = layers[number]
    whole, pixel = ({(n, v): r for n, v, r in least_reads(layer, x)} for x in ({}, PIXEL))
    weighted = {
        ref.buffer.name
        for nest in layer.kernel.nests
        if any(ref.buffer.name == "weights" for ref in nest.refs)
        for ref in nest.refs
    }
    for x in layer.inputs:
        key = x.name, blocks_of(x)
        if whole.get(key, NOTHING)[0] != x.blocks:
            continue
        spans = [_span(layer, x, axis) for axis in (1, 2)]
        makers = [
            n for n in makers_of(layers, number, x) if _is_within(layers[n].output, spans, x.halo)
        ]
        made = [(n, blocks_of(layers[n].output)) for n in makers]
        beside = tuple((n, len(blocks) - common(blocks, key[1])) for n, blocks in made)
        if beside:
            yield _Use(x.blocks, pixel[key][0], key[1], beside, x.name in weighted)


def _span(layer: LoweredLayer, x: Activation, axis: int) -> range:
    """The rows or columns that a layer reads of ``x``, halo included; none if it skips some."""
    found = range(0)
    for nest in layer.kernel.nests:
        for index in (r.indices[axis] for r in nest.refs[1:] if r.buffer.name == x.name):
            low, high = index.limits(nest.extents)
            if different(index, nest.extents) == high + 1 - low > len(found):
                found = range(low, high + 1)
    return found


def _is_within(made: Activation, spans: Sequence[range], halo: Sequence[int]) -> bool:
    """True if all pixels of a part of a tensor are in rows and columns ``spans``, halo included."""
    starts, steps = (made.grid.start, made.grid.steps) if made.grid else ((0, 0), (1, 1))
    each = zip(spans, halo, starts, steps, (made.height, made.width), strict=False)
    return all(
        edge + start in span and edge + start + step * (count - 1) in span
        for span, edge, start, step, count in each
    )


def _readers(
    layers: Sequence[LoweredLayer], reads: Sequence[Sequence[_Use]], number: int
) -> list[int]:
    """Layers that read all pixels of parts of a result; none, if these parts do not cover it."""
    mine = set(blocks_of(layers[number].output))
    found = [
        (reader, use.view)
        for reader, uses in enumerate(reads)
        for use in uses
        if any(maker == number for maker, _ in use.makers)
    ]
    covered = mine & {block for _, view in found for block in view}
    return [reader for reader, _ in found] if covered == mine else []
