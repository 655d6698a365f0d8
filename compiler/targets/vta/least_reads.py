"""The least that some iterations of a layer read."""

from collections.abc import Iterator, Mapping, Sequence

from ...loops.affine import Linear
from ...loops.expressions import Variable
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .nest import Ref

__all__ = [
    *("NOTHING", "PIXEL", "Blocks", "Read", "Region"),
    *("blocks_of", "common", "different", "least_reads", "makers_of"),
]

Region = tuple[int, int, int]
"""Channel blocks, rows and columns."""

Blocks = range
"""Some channel blocks of a tensor, which a layer reads."""

Read = tuple[str, Blocks, Region]
"""A tensor, the blocks of it that may be read, and how many blocks, rows and columns are read."""

NOTHING: Region = (0, 0, 0)

PIXEL = {"c": 1, "y": 1, "x": 1}
"""One pixel of one block, of all inputs."""


def makers_of(layers: Sequence[LoweredLayer], number: int, x: Activation) -> list[int]:
    """The layers before ``number`` that make some of the blocks of its input ``x``."""
    return [
        n
        for n, other in enumerate(layers[:number])
        if other.output.name == x.name and common(blocks_of(x), blocks_of(other.output))
    ]


def blocks_of(x: Activation) -> Blocks:
    """The blocks of a tensor that its part ``x`` has."""
    return range(x.first_block, x.first_block + x.blocks)


def common(one: Blocks, other: Blocks) -> int:
    """Number of blocks that are in both."""
    return max(0, min(one.stop, other.stop) - max(one.start, other.start))


def least_reads(layer: LoweredLayer, inside: Mapping[str, int]) -> Iterator[Read]:
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
            blocks, rows, columns = (different(index, extents) for index in ref.indices[:3])
            view, fewer = blocks_of(x), {n for n in extents if extents[n] < nest.extents[n]}
            if not any(ref.indices[0].coefficient(name) for name in fewer):
                low, high = ref.indices[0].limits(extents)
                view = range(low, high + 1) if high + 1 - low == blocks else view
            # At worst, these rows and columns have all of the halo that the layer reads.
            rows -= _beyond(ref.indices[1], nest.extents, x.halo[0], x.full_size[0])
            columns -= _beyond(ref.indices[2], nest.extents, x.halo[1], x.full_size[1])
            yield x.name, view, (blocks, max(1, rows), max(1, columns))


def _stored(x: Activation, ref: Ref, all_of: Mapping[str, int], extents: Mapping[str, int]) -> Read:
    """The part of ``x``, whose rows are a layer's weights, that its iterations ``extents`` read.

    A word of WGT has as many pixels of a block as the block has lanes; the last word perhaps fewer.
    """
    words, blocks = (different(index, extents) for index in ref.indices[:2])
    height, width = x.full_size
    if words == different(ref.indices[0], all_of):
        return x.name, blocks_of(x), (blocks, height, width)
    return x.name, blocks_of(x), (blocks, 1, min(width, (words - 1) * x.lanes + 1))


def different(index: Linear, extents: Mapping[str, int]) -> int:
    """Number of values of an index; with a stride there are gaps between them."""
    values = {0}
    for atom, factor in index.terms.items():
        assert isinstance(atom, Variable)
        values = {value + factor * n for value in values for n in range(extents[atom.name])}
    return len(values)


def _beyond(index: Linear, extents: Mapping[str, int], halo: int, size: int) -> int:
    """Rows or columns of the halo that a layer reads in all its iterations."""
    low, high = index.limits(extents)
    return max(0, halo - low) + max(0, high - (halo + size - 1))
