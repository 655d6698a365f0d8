"""The least of each layer that must be done before another can begin, whatever the plan.

``_trace`` begins with some iterations of a layer, and follows what they read back to the first
layer.  It counts with regions: so many blocks, rows and columns of a tensor, wherever they are.
Where other layers may have made a part of what is read, it counts as if they had made all they can,
so the figures hold for every plan.
"""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import prod

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .least_reads import (
    NOTHING,
    PIXEL,
    Blocks,
    Read,
    Region,
    blocks_of,
    common,
    least_reads,
    makers_of,
)

__all__ = ["Needs", "needs"]

FIRST = {"c": 1, "y": 1, "x": 1, "k": 1}
"""A layer's first products: one pixel of one block, from one block of inputs."""

BLOCK = {"c": 1}
"""One block, all pixels of it."""

TILE = {"c": 1, "k": 1, "ky": 1, "kx": 1}
"""All products with one tile of a layer's weights."""

Wanted = tuple[tuple[Blocks, Region], ...]
"""Parts of a tensor that are read, and how many blocks, rows and columns of each."""


@frozen
class Needs:
    """The share of every layer's result that some part of each layer is computed from.

    parts: float64[layers, layers], 0 to 1; ``parts[n, m]`` is the share of layer ``m``'s result
    that layer ``n`` needs.
    wholly: bool of that shape; whether layer ``n`` needs all channels of it, and so all weights of
    layer ``m``.
    """

    parts: NDArray[np.float64]
    wholly: NDArray[np.bool_]


def needs(layers: Sequence[LoweredLayer]) -> tuple[Needs, Needs, Needs]:
    """Needs of three parts of each layer: its first products, all products with one tile of its
    weights, and all of it.
    """
    steps = _Steps(layers)
    made_by: dict[str, list[int]] = {}
    for number, layer in enumerate(layers):
        made_by.setdefault(layer.output.name, []).append(number)
    shape = len(layers), len(layers)
    first, pixel, block, tile, whole = (
        Needs(np.zeros(shape), np.zeros(shape, bool)) for _ in range(5)
    )
    insides: tuple[dict[str, int], ...] = FIRST, PIXEL, BLOCK, TILE, {}
    each = list(zip((first, pixel, block, tile, whole), insides, strict=True))
    joined = set[int]()
    for number in range(len(layers)):
        several = list(_several(layers, number))
        for found, inside in each:
            for other, every in _trace(steps, made_by, number, inside, found):
                if other in joined:
                    _add(found, number, block if every else pixel, [other])
            # Any of the layers that make a tensor may come first.
            for x, makers in several:
                every = _reads_all_pixels(layers[number], inside, x)
                _add(found, number, block if every else pixel, makers)
        if several:
            joined.add(number)
        output = layers[number].output
        pixel.parts[number, number] = 1 / _size(output)
        block.parts[number, number] = 1 / output.blocks
        pixel.wholly[number, number] = block.wholly[number, number] = output.blocks == 1
        whole.parts[number, number], whole.wholly[number, number] = 1, True
    return first, tile, whole


def _add(found: Needs, number: int, least: Needs, others: list[int]) -> None:
    """Let layer ``number`` need at least what all ``others`` need."""
    found.parts[number] = np.maximum(found.parts[number], least.parts[others].min(0))
    found.wholly[number] |= least.wholly[others].all(0)


def _several(layers: Sequence[LoweredLayer], number: int) -> Iterator[tuple[Activation, list[int]]]:
    """The inputs whose parts several layers make, and these layers."""
    stored = layers[number].stored
    for x in (*layers[number].inputs, *([] if stored is None else [stored])):
        makers = makers_of(layers, number, x)
        if len(makers) > 1:
            yield x, makers


def _reads_all_pixels(layer: LoweredLayer, inside: Mapping[str, int], x: Activation) -> bool:
    """True if the iterations ``inside`` read all rows and columns of some block of ``x``."""
    size = x.full_size
    return any(
        name == x.name and region[1:] == size for name, _, region in least_reads(layer, inside)
    )


@frozen
class _Step:
    """The least of its result that a layer makes for others.

    part: its share of the result, 0 to 1.  wholly: whether it has all channels.  is_plane: whether
    it has all pixels of a block.
    reads: what the layer reads for it.
    """

    part: float
    wholly: bool
    is_plane: bool
    reads: tuple[Read, ...]


class _Steps:
    """Steps from layers to what they read.  Most are taken again and again, so they are kept."""

    def __init__(self, layers: Sequence[LoweredLayer]) -> None:
        self.layers = layers
        self._reads: dict[tuple[int, Region], tuple[Read, ...]] = {}
        self._known: dict[tuple[int, Wanted], _Step | None] = {}

    def of(self, number: int, wanted: Wanted) -> _Step | None:
        """The step of a layer whose result is read so; None if others may make all that is read."""
        key = number, wanted
        if key not in self._known:
            self._known[key] = self._step(number, wanted)
        return self._known[key]

    def _step(self, number: int, wanted: Wanted) -> _Step | None:
        output = self.layers[number].output
        region = _made(output, wanted)
        if not all(region):
            return None
        if (number, region) not in self._reads:
            extents = dict(zip(("c", "y", "x"), region, strict=True))
            self._reads[number, region] = tuple(least_reads(self.layers[number], extents))
        return _Step(
            prod(region) / _size(output),
            region[0] == output.blocks,
            region[1:] == (output.height, output.width),
            self._reads[number, region],
        )


def _trace(
    steps: _Steps,
    made_by: Mapping[str, Sequence[int]],
    start: int,
    inside: Mapping[str, int],
    found: Needs,
) -> list[tuple[int, bool]]:
    """Follow what the iterations ``inside`` of layer ``start`` read, back to the first layer.

    made_by: for each tensor, the layers that make it or parts of it.  found: gets what layer
    ``start`` needs.

    Returns the layers that make some of what is read, and for each whether all pixels of a block
    are.
    """
    made = list[tuple[int, bool]]()
    wanted: dict[str, dict[Blocks, Region]] = {}
    ahead: list[int] = []

    def note(reads: Sequence[Read], reader: int) -> None:
        for name, view, region in reads:
            views = wanted.get(name)
            if views is None:
                views = wanted[name] = {}
                for maker in made_by.get(name, ()):
                    if maker < reader:
                        heappush(ahead, -maker)
            # Two readers may read different places, and read at least the larger region together.
            views[view] = max(views.get(view, NOTHING), region, key=prod)

    note(list(least_reads(steps.layers[start], inside)), start)
    while ahead:
        number = -heappop(ahead)
        views = wanted[steps.layers[number].output.name]
        step = steps.of(number, tuple(views.items()))
        if step is not None:
            made.append((number, step.is_plane))
            found.parts[start, number], found.wholly[start, number] = step.part, step.wholly
            note(step.reads, number)
    return made


def _size(x: Activation) -> int:
    """Pixels of all blocks."""
    return x.blocks * x.height * x.width


def _made(output: Activation, wanted: Wanted) -> Region:
    """The least region that a layer must make where ``wanted`` is read of its output's tensor."""
    mine = blocks_of(output)
    parts = list[tuple[Blocks, Region]]()
    for view, (blocks, rows, columns) in wanted:
        # At worst, blocks of the view that other layers make are the ones that are read.
        blocks = min(blocks, len(view)) - len(view) + common(view, mine)
        if blocks <= 0:
            continue
        # At worst, pixels that other layers make are the ones that are read.
        rows -= output.full_size[0] - output.height
        columns -= output.full_size[1] - output.width
        if min(rows, columns) <= 0:
            continue
        region = blocks, min(rows, output.height), min(columns, output.width)
        parts.append((view, region))
    return max(*(region for _, region in parts), _together(parts), key=prod) if parts else NOTHING


def _together(parts: Sequence[tuple[Blocks, Region]]) -> Region:
    """The least that several parts of a tensor are together: blocks of each that none before it
    has, and rows and columns that all of them have.
    """
    blocks, end = 0, 0
    for view, (count, _, _) in sorted(parts, key=lambda part: (part[0].start, part[0].stop)):
        blocks += max(0, count - max(0, min(end, view.stop) - view.start))
        end = max(end, view.stop)
    rows, columns = (min((part[n] for _, part in parts), default=0) for n in (1, 2))
    return blocks, rows, columns
