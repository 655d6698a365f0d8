"""The least of each layer that must be done before another can begin, whatever the plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import prod

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ...loops.affine import Linear
from ...loops.expressions import Variable
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .nest import Ref

__all__ = ["Needs", "follows", "needs"]

Region = tuple[int, int, int]
"""Channel blocks, rows and columns."""

Blocks = range
"""Some channel blocks of a tensor, which a layer reads."""

Read = tuple[str, Blocks, Region]
"""A tensor, the blocks that a layer knows of, and how many blocks, rows and columns it reads."""

NOTHING: Region = (0, 0, 0)

FIRST = {"c": 1, "y": 1, "x": 1, "k": 1}
"""A layer's first products: one pixel of one block, from one block of inputs."""

PIXEL = {"c": 1, "y": 1, "x": 1}
"""One pixel of one block, of all inputs."""

BLOCK = {"c": 1}
"""One block, all pixels of it."""

TILE = {"c": 1, "k": 1, "ky": 1, "kx": 1}
"""All products with one tile of a layer's weights."""

Known = dict[tuple[int, Region], list[Read]]
"""Regions that layers read to compute regions of their results."""


@frozen
class Needs:
    """Sources of some part of each layer's result.

    parts: float64[layers, layers], the part of each layer's result, 0 to 1.
    wholly: bool of that shape; whether all its channels are wanted, and so all its weights.
    """

    parts: NDArray[np.float64]
    wholly: NDArray[np.bool_]


def needs(layers: Sequence[LoweredLayer]) -> tuple[Needs, Needs, Needs]:
    """Needs of the first products of each layer, of all products with one tile of its weights, and
    of all of it.
    """
    known: Known = {}
    makers_of: dict[str, list[int]] = {}
    for number, layer in enumerate(layers):
        makers_of.setdefault(layer.output.name, []).append(number)
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
            for other, every in _trace(layers, makers_of, number, inside, known, found):
                if other in joined:
                    _add(found, number, block if every else pixel, [other])
            # Of a tensor that several layers make, any may come first.
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
    """Let layer ``number`` need what each of some others does."""
    found.parts[number] = np.maximum(found.parts[number], least.parts[others].min(0))
    found.wholly[number] |= least.wholly[others].all(0)


def follows(layers: Sequence[LoweredLayer]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """bool[layers, layers], twice: whether some of the second layer comes after the last block of
    the last pixel of the first; and whether products with all its weights do.

    A layer that skips some of what it could read, as a stride of 2 without a window does, may not
    need the last.  Where several layers read parts of a result, one of them reads its last block;
    what comes after each of them comes after that.
    """
    some, all_weights = (np.zeros((len(layers), len(layers)), bool) for _ in range(2))
    reads = [list(_uses(layers, number)) for number in range(len(layers))]
    for last in reversed(range(len(layers))):
        changed = [0] * len(layers)
        changed[last] = 1
        for number in range(last + 1, len(layers)):
            for use in reads[number]:
                # Parts of the same blocks have other pixels of these.
                parts = dict[Blocks, int]()
                for n, beside in use.makers:
                    view = _blocks(layers[n].output)
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
    """An input of which a layer reads all blocks: how many, and how many a pixel of one comes from.

    view: its blocks in the tensor that it is part of.
    makers: layers that make parts of it of which it reads all pixels, and how many of the blocks of
    each it does not read.
    weighted: it is multiplied with weights.
    """

    blocks: int
    blocks_a_pixel: int
    view: Blocks
    makers: tuple[tuple[int, int], ...]
    weighted: bool


def _uses(layers: Sequence[LoweredLayer], number: int) -> Iterator[_Use]:
    layer = layers[number]
    whole, pixel = ({(n, v): r for n, v, r in _reads(layer, x)} for x in ({}, PIXEL))
    weighted = {
        ref.buffer.name
        for nest in layer.kernel.nests
        if any(ref.buffer.name == "weights" for ref in nest.refs)
        for ref in nest.refs
    }
    for x in layer.inputs:
        key = x.name, _blocks(x)
        if whole.get(key, NOTHING)[0] != x.blocks:
            continue
        spans = [_span(layer, x, axis) for axis in (1, 2)]
        makers = [
            n for n in _makers(layers, number, x) if _is_within(layers[n].output, spans, x.halo)
        ]
        made = [(n, _blocks(layers[n].output)) for n in makers]
        beside = tuple((n, len(blocks) - _common(blocks, key[1])) for n, blocks in made)
        if beside:
            yield _Use(x.blocks, pixel[key][0], key[1], beside, x.name in weighted)


def _span(layer: LoweredLayer, x: Activation, axis: int) -> range:
    """The rows or columns that a layer reads of ``x``, halo included; none if it skips some."""
    found = range(0)
    for nest in layer.kernel.nests:
        for index in (r.indices[axis] for r in nest.refs[1:] if r.buffer.name == x.name):
            low, high = index.limits(nest.extents)
            if _different(index, nest.extents) == high + 1 - low > len(found):
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
    """Layers that read all pixels of parts of a result; none, if some part is read by no such."""
    mine = set(_blocks(layers[number].output))
    found = [
        (reader, use.view)
        for reader, uses in enumerate(reads)
        for use in uses
        if any(maker == number for maker, _ in use.makers)
    ]
    covered = mine & {block for _, view in found for block in view}
    return [reader for reader, _ in found] if covered == mine else []


def _several(layers: Sequence[LoweredLayer], number: int) -> Iterator[tuple[Activation, list[int]]]:
    """The inputs whose parts several layers make, and these layers."""
    stored = layers[number].stored
    for x in (*layers[number].inputs, *([] if stored is None else [stored])):
        makers = _makers(layers, number, x)
        if len(makers) > 1:
            yield x, makers


def _reads_all_pixels(layer: LoweredLayer, inside: Mapping[str, int], x: Activation) -> bool:
    """True if the iterations ``inside`` read all rows and columns of some block of ``x``."""
    size = x.full_size
    return any(name == x.name and region[1:] == size for name, _, region in _reads(layer, inside))


def _makers(layers: Sequence[LoweredLayer], number: int, x: Activation) -> list[int]:
    """The layers before ``number`` that make some of the blocks of its input ``x``."""
    return [
        n
        for n, other in enumerate(layers[:number])
        if other.output.name == x.name and _common(_blocks(x), _blocks(other.output))
    ]


def _trace(
    layers: Sequence[LoweredLayer],
    makers_of: Mapping[str, Sequence[int]],
    start: int,
    inside: Mapping[str, int],
    known: Known,
    found: Needs,
) -> list[tuple[int, bool]]:
    """Follow what the iterations ``inside`` of layer ``start`` read back to the first layer.

    makers_of: the layers that make each activation, or parts of it.
    Returns the layers that make some of it, and whether of each all pixels of a block.
    """
    made = list[tuple[int, bool]]()
    wanted: dict[str, dict[Blocks, Region]] = {}
    ahead: list[int] = []

    def note(reads: Sequence[Read], reader: int) -> None:
        for name in {name for name, _, _ in reads} - wanted.keys():
            for maker in makers_of.get(name, ()):
                if maker < reader:
                    heappush(ahead, -maker)
        _note(wanted, reads)

    note(list(_reads(layers[start], inside)), start)
    while ahead:
        number = -heappop(ahead)
        output = layers[number].output
        views = wanted[output.name]
        region = _made(output, views)
        if not all(region):
            continue
        made.append((number, region[1:] == (output.height, output.width)))
        found.parts[start, number] = prod(region) / _size(output)
        found.wholly[start, number] = region[0] == output.blocks
        if (number, region) not in known:
            extents = dict(zip(("c", "y", "x"), region, strict=True))
            known[number, region] = list(_reads(layers[number], extents))
        note(known[number, region], number)
    return made


def _blocks(x: Activation) -> Blocks:
    """The blocks of its tensor that are a part's."""
    return range(x.first_block, x.first_block + x.blocks)


def _common(one: Blocks, other: Blocks) -> int:
    """Number of blocks that are in both."""
    return max(0, min(one.stop, other.stop) - max(one.start, other.start))


def _size(x: Activation) -> int:
    """Pixels, block by block."""
    return x.blocks * x.height * x.width


def _made(output: Activation, wanted: Mapping[Blocks, Region]) -> Region:
    """The least part that a layer makes of what is wanted of its output's tensor."""
    mine = _blocks(output)
    parts = list[tuple[Blocks, Region]]()
    for view, (blocks, rows, columns) in wanted.items():
        # At worst, those of the view that another layer makes come first.
        blocks = min(blocks, len(view)) - len(view) + _common(view, mine)
        if blocks <= 0:
            continue
        # At worst, all pixels of other parts come first.
        rows -= output.full_size[0] - output.height
        columns -= output.full_size[1] - output.width
        if min(rows, columns) <= 0:
            continue
        region = blocks, min(rows, output.height), min(columns, output.width)
        parts.append((view, region))
    return max(*(region for _, region in parts), _together(parts), key=prod) if parts else NOTHING


def _together(parts: Sequence[tuple[Blocks, Region]]) -> Region:
    """The least that several parts of a tensor have side by side: blocks of each that are in none
    before, and the rows and columns that all have.
    """
    blocks, end = 0, 0
    for view, (count, _, _) in sorted(parts, key=lambda part: (part[0].start, part[0].stop)):
        blocks += max(0, count - max(0, min(end, view.stop) - view.start))
        end = max(end, view.stop)
    rows, columns = (min((part[n] for _, part in parts), default=0) for n in (1, 2))
    return blocks, rows, columns


def _reads(layer: LoweredLayer, inside: Mapping[str, int]) -> Iterator[Read]:
    """The least that the iterations ``inside`` of a layer read; some of it may be halo."""
    inputs = {x.name: x for x in layer.inputs}
    for nest in layer.kernel.nests:
        extents = {
            name: min(count, inside.get(name, count)) for name, count in nest.extents.items()
        }
        for ref in nest.refs[1:]:
            if layer.stored is not None and ref.buffer.name == "weights":
                yield _stored(layer.stored, ref, nest.extents, extents)
            x = inputs.get(ref.buffer.name)
            if x is None or len(ref.indices) != len(x.buffer.shape):
                continue
            blocks, rows, columns = (_different(index, extents) for index in ref.indices[:3])
            view, fewer = _blocks(x), {n for n in extents if extents[n] < nest.extents[n]}
            if not any(ref.indices[0].coefficient(name) for name in fewer):
                low, high = ref.indices[0].limits(extents)
                view = range(low, high + 1) if high + 1 - low == blocks else view
            # At worst, all that the layer reads of the halo is among this.
            rows -= _beyond(ref.indices[1], nest.extents, x.halo[0], x.full_size[0])
            columns -= _beyond(ref.indices[2], nest.extents, x.halo[1], x.full_size[1])
            yield x.name, view, (blocks, max(1, rows), max(1, columns))


def _stored(x: Activation, ref: Ref, all_of: Mapping[str, int], extents: Mapping[str, int]) -> Read:
    """The part of its weights, which are rows, that the iterations ``extents`` of a layer read.

    Of each block, a word has as many pixels as a block has lanes; the last one perhaps fewer.
    """
    words, blocks = (_different(index, extents) for index in ref.indices[:2])
    height, width = x.full_size
    if words == _different(ref.indices[0], all_of):
        return x.name, _blocks(x), (blocks, height, width)
    return x.name, _blocks(x), (blocks, 1, min(width, (words - 1) * x.lanes + 1))


def _different(index: Linear, extents: Mapping[str, int]) -> int:
    """Values of an index; with a stride there are gaps between them."""
    values = {0}
    for atom, factor in index.terms.items():
        assert isinstance(atom, Variable)
        values = {value + factor * n for value in values for n in range(extents[atom.name])}
    return len(values)


def _beyond(index: Linear, extents: Mapping[str, int], halo: int, size: int) -> int:
    """Rows or columns of the halo that all of a layer reads."""
    low, high = index.limits(extents)
    return max(0, halo - low) + max(0, high - (halo + size - 1))


def _note(wanted: dict[str, dict[Blocks, Region]], reads: Iterable[Read]) -> None:
    """Add what is read to what is wanted already."""
    for name, view, region in reads:
        views = wanted.setdefault(name, {})
        # Two readers may read other places: what both read is at least the larger.
        views[view] = max(views.get(view, NOTHING), region, key=prod)
