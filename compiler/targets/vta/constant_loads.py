"""Constants on chip: which memory each is in, what a tile needs of it, and the LOADs of that."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen, replace
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory

from ...errors import DoesNotFitError
from .activation_loads import in_long_rows
from .constants import SCALES, TABLES, DramMap, parameter_words, table_rows
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .layers.tap_row import TAP_GROUP
from .long_moves import MOST
from .nest import Nest
from .record import Part
from .ring import Grant, Ring, rings_apart
from .short_constants import ShortWords, short_rows, short_words

__all__ = [
    "CONSTANTS",
    "PIECE_CYCLES",
    "SCALES",
    "ConstantLoader",
    "ConstantPiece",
    "constant_piece",
    "has_short_parameters",
    "layer_constants",
]

CONSTANTS = {
    "weights": (Memory.WGT, ("c", "k", "ky", "kx")),
    "taps": (Memory.TAP, ("c",)),
    "bias": (Memory.PAR, ("c",)),
    "add_bias": (Memory.PAR, ()),
    "row_bias": (Memory.PAR, ()),
    "table": (Memory.TAB, ()),
    "table_low": (Memory.TAB, ()),
    "table_high": (Memory.TAB, ()),
}
"""Memory of each constant, and the loops over the blocks of its first axes."""

LONG, SHORT, SAME, GIVEN, ROWS = "long", "short", "same", "given", "rows"
PARTS = {LONG: 1, SHORT: 3, SAME: 2, GIVEN: 1, ROWS: 1}
"""Kinds of words of PAR, and how many eighths of it each gets where they are kept apart.  The host
and VECTOR make the last two.
"""


PIECE_CYCLES = 512
"""Most cycles of a LOAD, where long ones are cut."""


@frozen
class _Words:
    """Words of a constant that are loaded: ``words`` of the ``room`` words that it has, from word
    ``first`` on.

    address, size: of the first one in DRAM, and bytes of each.
    short: whether they have a short form.  same: whether that is the form of one bias and one scale
    for all lanes.
    ring: their place on chip.
    """

    memory: Memory
    address: int
    first: int
    size: int
    words: int
    room: int
    short: bool
    same: bool
    ring: Ring

    @property
    def key(self) -> tuple[Memory, int, int, int]:
        """Equal where equal bytes are at equal places of their room."""
        return self.memory, self.address, self.first, self.size


class ConstantLoader:
    """Gives each constant the next place in the ring of its memory, and its bytes one in DRAM."""

    def __init__(
        self, config: HardwareConfig, dram: DramMap, *, apart: bool = False, cut: bool = False
    ) -> None:
        """apart: whether words of PAR are grouped by form, so that neighbours may come by one LOAD.

        cut: whether long LOADs are cut, so that others that become urgent meanwhile need not wait.
        """
        self._config, self._dram, self._cut = config, dram, cut
        self._kept: dict[tuple[Memory, int, int, int], Grant] = {}
        self._rings = {
            memory: Ring(config, memory)
            for memory in (Memory.WGT, Memory.PAR, Memory.TAP, Memory.TAB)
        }
        self._apart: dict[str, Ring] = {}
        if apart:
            self._apart = rings_apart(config, Memory.PAR, PARTS)

    def rooms(self, words: Mapping[str, int], layer: LoweredLayer) -> dict[str, Grant]:
        """As ``room``, for all parameters of rows that a layer makes.

        Raises DoesNotFitError when they do not fit side by side.
        """
        rooms = {name: self.room(count, layer) for name, count in words.items()}
        lost = next((each.ring for each in rooms.values() if not each.ring.holds(each)), None)
        if lost is not None:
            raise DoesNotFitError(
                f"layer {layer.name!r}: par scratchpad: {sum(words.values())} words required for "
                f"parameters of rows, {lost.depth} available; use a configuration with a deeper PAR"
            )
        return rooms

    def room(self, words: int, layer: LoweredLayer) -> Grant:
        """``words`` words of PAR for the parameters of rows.

        Raises DoesNotFitError when PAR has fewer in all.
        """
        return self._apart.get(ROWS, self._rings[Memory.PAR]).take(words, layer.name)

    def _ring(self, memory: Memory, short: ShortWords | None) -> Ring:
        """The ring in which words of a form have their places."""
        if memory is not Memory.PAR or not self._apart:
            return self._rings[memory]
        return self._apart[LONG if short is None else SAME if short.same else SHORT]

    def load(
        self,
        name: str,
        array: NDArray[np.generic],
        layer: LoweredLayer,
        *,
        again: bool = True,
    ) -> tuple[Grant, list[Load]]:
        """The place of ``array``, the layer's constant ``name``, and the LOADs that bring it.

        A table comes without the rows that are never looked up.  again: bring it even if it is
        there already.

        Raises DoesNotFitError when the memory is too small.
        """
        part = self._located(name, array, layer)
        memory = part.memory
        kept = self._kept.get(part.key)
        if kept and not again and kept.ring.holds(kept):
            return kept, []
        # Taps of windows are read in groups.
        step = TAP_GROUP if memory is Memory.TAP and array.shape[1] % TAP_GROUP == 0 else 1
        grant = self._kept[part.key] = part.ring.take(part.room, layer.name, step)
        most = self._most_words(part)
        loads = [
            Load(
                memory=memory,
                sram_address=(grant.start + part.first + start) % self._config.depth(memory),
                dram_address=part.address + start * part.size,
                count_x=min(most, part.words - start),
                nibbles=part.short,
                gap=int(part.same),
            )
            for start in range(0, part.words, most)
        ]
        return grant, loads

    def _most_words(self, part: "_Words") -> int:
        """Words of one LOAD: whole beats, where several words share one."""
        bus = self._config.bus_bytes
        step = max(1, bus // part.size) if part.short else 1
        if not self._cut:
            return MOST // step * step
        beats = -(-part.words // step) * -(-part.size // bus)
        pieces = -(-beats * self._config.dram.beat_interval_cycles // PIECE_CYCLES)
        words = -(-part.words // pieces)
        return min(MOST, words + -words % step) // step * step

    def there(
        self, arrays: Mapping[str, NDArray[np.generic]], layer: LoweredLayer, rows: int
    ) -> dict[str, Grant]:
        """Constants of a layer that are there already, and stay when the others have come.

        Constants that the host gives never count.  rows: words of PAR that the layer takes besides,
        by ``room``.
        """
        hosts = arrays.keys() & {"row_bias"} if layer.given is not None else frozenset[str]()
        rows += sum(len(arrays[name]) for name in hosts)
        parts = {
            name: self._located(name, array, layer)
            for name, array in arrays.items()
            if name not in hosts
        }
        found = {name: self._kept[x.key] for name, x in parts.items() if x.key in self._kept}
        count = -1
        while count != len(found):
            count = len(found)
            given = Counter({Memory.PAR: rows})
            for name, part in parts.items():
                given[part.memory] += 0 if name in found else part.room
            found = {
                name: grant
                for name, grant in found.items()
                if grant.ring.holds(grant, given[parts[name].memory])
            }
        return found

    def _located(self, name: str, array: NDArray[np.generic], layer: LoweredLayer) -> "_Words":
        """The words of a constant, with their bytes in DRAM."""
        memory = CONSTANTS[name][0]
        size = self._config.word_bytes(memory)
        words = room = array.nbytes // size
        first = 0
        if name in TABLES:
            rows = table_rows(layer, name)
            if memory in self._config.short_memories:
                rows = short_rows(rows)
            first, words, array = rows.start, len(rows), array[rows.start : rows.stop]
        short = short_words(memory, array, layer, self._config)
        if short is not None:
            array, size = short.array, short.size
        address = self._dram.add(array)
        same = short is not None and short.same
        ring = self._ring(memory, short)
        return _Words(memory, address, first, size, words, room, short is not None, same, ring)

    def load_words(self, address: int, words: int, layer: LoweredLayer) -> tuple[Grant, list[Load]]:
        """As ``load``, for words of PAR that the host puts at ``address`` in DRAM."""
        config = self._config
        short = Memory.PAR in config.short_memories
        ring = self._apart.get(GIVEN, self._rings[Memory.PAR])
        grant = ring.take(words, layer.name)
        load = Load(
            memory=Memory.PAR, sram_address=grant.start, dram_address=address, count_x=words
        )
        if short:
            # Only scales: they are the second half of each word.
            size = config.word_bytes(Memory.PAR)
            load = replace(
                load,
                dram_address=address + size // 2,
                dram_stride_y=size,
                sram_stride_y=1,
                count_x=1,
                count_y=words,
                nibbles=True,
            )
        return grant, [load]

    def load_rows(
        self, y: Activation, address: int, piece: Part, shape: tuple[int, ...], layer: LoweredLayer
    ) -> tuple[Grant, list[Load]]:
        """As ``load``, for weights that are rows of ``y``, which is at ``address`` in DRAM.

        piece: the part of its blocks of pixels and of channels.  shape: of that part.

        Raises DoesNotFitError when WGT is too small.
        """
        rows, blocks = shape[:2]
        word, size = (self._config.word_bytes(memory) for memory in (Memory.WGT, Memory.ACT))
        grant = self._rings[Memory.WGT].take(rows * blocks, layer.name)
        plane = y.plane * size
        first, block = piece.place[0] * rows, y.first_block + piece.place[1] * blocks
        load = Load(
            memory=Memory.WGT,
            sram_address=grant.start,
            sram_stride_y=blocks,
            sram_stride_z=1,
            dram_address=address + block * plane + first * word,
            dram_stride_y=word,
            dram_stride_z=plane,
            count_x=1,
            count_y=rows,
            count_z=blocks,
        )
        return grant, [in_long_rows(load, self._config)]


@frozen
class ConstantPiece:
    """The part of a constant that one iteration reads; an equal ``key`` means an equal array.

    place: of it along each axis that is cut.
    """

    key: tuple[object, ...]
    array: NDArray[np.generic]
    place: tuple[int, ...]


def constant_piece(
    name: str, array: NDArray[np.generic], nest: Nest, at: Mapping[str, int]
) -> ConstantPiece:
    """The part of ``array`` that iteration ``at`` of the serial loops reads, of each split axis."""
    places: list[int] = []
    extents = nest.extents
    for axis, loop in enumerate(CONSTANTS[name][1]):
        place = at.get(f"{loop}.outer", 0) if array.shape[axis] > 1 else 0
        places.append(place)
        parts = extents.get(f"{loop}.outer", 1)
        if parts > 1 and array.shape[axis] > 1:
            size = array.shape[axis] // parts
            array = array[(slice(None),) * axis + (slice(place * size, (place + 1) * size),)]
    return ConstantPiece((name, *places), array, tuple(places))


def layer_constants(layer: LoweredLayer) -> dict[str, NDArray[np.generic]]:
    """Constants that a layer loads; biases and scales together as words of PAR."""
    found = {name: array for name, array in layer.constants.items() if name not in SCALES.values()}
    for name in SCALES.keys() & found.keys():
        found[name] = parameter_words(layer, name)
    return found


def has_short_parameters(layers: Sequence[LoweredLayer], config: HardwareConfig) -> bool:
    """True if most of the words of PAR that layers load have a short form."""
    words = Counter[bool]()
    for layer in layers:
        for name, array in layer_constants(layer).items():
            if CONSTANTS[name][0] is Memory.PAR and (name != "row_bias" or layer.given is None):
                words[short_words(Memory.PAR, array, layer, config) is not None] += len(array)
    return words[True] > words[False]
