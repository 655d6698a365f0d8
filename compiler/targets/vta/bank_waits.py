"""Where the units of a layer in tiles wait for each other's banks, and sums in parts to avoid that.

GEMM holds the banks of all channels that an instruction reads, and works on one after the other.
Where results, or what is added to them, are in one of these banks, STORE and VECTOR find no time in
between.  An instruction for a part of the channels leaves the banks of the others free.
"""

from collections.abc import Iterator, Sequence, Set
from itertools import combinations, product

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import replace
from dovetail.isa.memories import Memory, Unit

from .choice import Choice
from .items import Item
from .layers.definition import LoweredLayer
from .model import unit_cycles
from .stream import StreamedLayer
from .tile_estimate import Tile

__all__ = ["PlacedBuffer", "bank_waits", "in_parts"]

PlacedBuffer = tuple[Item, int]
"""A buffer of a layer, and its first word of ACT."""

MOST_PARTS = 4
"""The largest factor for the number of parts: each is an instruction, and a LOAD of its weights."""


def bank_waits(
    layers: Sequence[LoweredLayer],
    choices: Sequence[Choice],
    planned: Sequence[StreamedLayer],
    buffers: Sequence[PlacedBuffer],
    config: HardwareConfig,
) -> dict[int, int]:
    """Cycles in which units wait for banks, for each layer in tiles whose units do.

    Two units whose buffers share a bank work one after the other.
    """
    waits: dict[int, int] = {}
    for number, tile, own in _in_tiles(choices, buffers):
        cycles = _wait(layers[number], planned[number], tile, own, config)
        if cycles:
            waits[number] = cycles
    return waits


def in_parts(
    layers: Sequence[LoweredLayer],
    choices: Sequence[Choice],
    planned: Sequence[StreamedLayer],
    buffers: Sequence[PlacedBuffer],
    config: HardwareConfig,
    besides: Set[int],
) -> list[StreamedLayer]:
    """``planned`` with sums in more parts where units then wait less, except in ``besides``."""
    found = list(planned)
    for number, tile, own in _in_tiles(choices, buffers):
        if number in besides or tile.depth == 1 or tile.held or "k" not in tile.sizes:
            continue
        layer, least = layers[number], _wait(layers[number], planned[number], tile, own, config)
        for parts in range(2, MOST_PARTS + 1):
            if not least or tile.sizes["k"] % parts:
                continue
            tiling = planned[number].tiling
            sizes = {**tiling.sizes, "k": tile.sizes["k"] // parts}
            finer = replace(planned[number], tiling=replace(tiling, sizes=sizes))
            cycles = _wait(layer, finer, tile, own, config)
            if cycles < least:
                found[number], least = finer, cycles
    return found


def _in_tiles(
    choices: Sequence[Choice], buffers: Sequence[PlacedBuffer]
) -> Iterator[tuple[int, Tile, list[PlacedBuffer]]]:
    """Each layer that runs in tiles, and its buffers."""
    own: dict[int, list[PlacedBuffer]] = {}
    for item, start in buffers:
        own.setdefault(item.first, []).append((item, start))
    for choice in choices:
        if isinstance(choice.how, Tile):
            yield choice.first, choice.how, own.get(choice.first, [])


def _wait(
    layer: LoweredLayer,
    planned: StreamedLayer,
    tile: Tile,
    buffers: Sequence[PlacedBuffer],
    config: HardwareConfig,
) -> int:
    busy, total = unit_cycles(layer.kernel, config), 0
    for one, other in combinations(buffers, 2):
        if not _banks(one, config) & _banks(other, config):
            continue
        for mine, its in (
            (one[0].readers, other[0].readers),
            (one[0].writers, other[0].writers),
        ):
            total += max(
                (
                    min(busy.get(a, tile.dram), busy.get(b, tile.dram))
                    for (_, a), (_, b) in product(mine, its)
                    if a is not b
                    and not (a is Unit.GEMM and _leaves_free(planned, one, other, config))
                    and not (b is Unit.GEMM and _leaves_free(planned, other, one, config))
                ),
                default=0,
            )
    return total


def _leaves_free(
    planned: StreamedLayer, read: PlacedBuffer, other: PlacedBuffer, config: HardwareConfig
) -> bool:
    """True if some part of each tile's sums reads no bank of ``read`` that ``other`` is in."""
    item, start = read
    window, kernel = planned.windows.get(item.activation.name), planned.layer.kernel
    part = planned.tiling.sizes.get("k", 0)
    ref = kernel.refs.get(item.activation.name)
    blocks = part * ref.indices[0].coefficient("k") if ref else 0
    if window is None or not blocks or window.of_parts:
        return False
    words = blocks * window.words // window.shape[0]
    banks = _banks(other, config)
    return all(
        any(
            not banks & _banks_of(slot + first, words, config)
            for first in range(0, window.words, words)
        )
        for slot in range(start, start + window.slots * window.words, window.words)
    )


def _banks(buffer: PlacedBuffer, config: HardwareConfig) -> Set[int]:
    item, start = buffer
    return _banks_of(start, item.words, config)


def _banks_of(start: int, words: int, config: HardwareConfig) -> Set[int]:
    size = config.bank_words(Memory.ACT)
    return set(range(start // size, (start + words - 1) // size + 1))
