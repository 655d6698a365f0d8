"""Parts in which an activation that is all on chip goes to DRAM, each as soon as it is made."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from .image import Span
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .stream import StreamedLayer

__all__ = ["LEAST_PART", "blocks_read", "result_parts"]

LEAST_PART = 128
"""Words of a part, where the tiles of its layer allow that: to read a STORE takes 8 cycles of the
bus.
"""


def blocks_read(layers: Iterable[LoweredLayer]) -> dict[str, frozenset[int]]:
    """The blocks of channels that are weights, by the activation whose rows are."""
    found: dict[str, frozenset[int]] = {}
    for each in (layer.stored for layer in layers):
        if each is not None:
            blocks = range(each.first_block, each.first_block + each.blocks)
            found[each.name] = found.get(each.name, frozenset()).union(blocks)
    return found


def result_parts(
    x: Activation,
    layers: Iterable[StreamedLayer],
    read: frozenset[int] | None = None,
    least: int = LEAST_PART,
) -> Iterator[tuple[Span, Span, Span]]:
    """Blocks, rows and columns, those of the halo counted, of each part of ``x``: some tiles of the
    layer that makes it.

    layers: of the program.  read: the blocks that are stored; None for all.
    least: words of a part.
    """
    makers = [each for each in layers if each.layer.output.name == x.name]
    wanted = frozenset(range(x.blocks)) if read is None else read
    ends = {n for n in range(x.blocks + 1) if (n in wanted) != (n - 1 in wanted)}
    cuts = set[int]()
    for each in makers:
        output, tile = each.layer.output, each.tiling.sizes["c"]
        step = tile * -(-least // (tile * output.height * output.width))
        cuts |= set(range(output.first_block, output.first_block + output.blocks, step))
    kept = [0]
    for cut in sorted(cuts | ends):
        if cut in ends or (cut - kept[-1]) * x.height * x.width >= least:
            kept.append(cut)
    for first, end in pairwise(kept):
        if first in wanted and first < end:
            for rows, columns in _pixels(x, makers, end - first, least):
                yield (first, end - first), rows, columns


def _pixels(
    x: Activation, makers: Sequence[StreamedLayer], blocks: int, least: int
) -> Iterator[tuple[Span, Span]]:
    """Rows and columns of each part of some blocks: some rows, or some pixels of a single one."""
    top, left = x.halo[:2]
    axis, other = ("x", "y") if x.height == 1 else ("y", "x")
    size = {"y": x.height, "x": x.width}
    step = size[axis]
    if makers:
        tile = makers[0].tiling.sizes[axis]
        step = tile * -(-least // (tile * blocks * size[other]))
    for start in range(0, size[axis], step):
        count = min(step, size[axis] - start)
        some = {other: (0, size[other]), axis: (start, count)}
        (row, rows), (column, columns) = some["y"], some["x"]
        yield (top + row, rows), (left + column, columns)
