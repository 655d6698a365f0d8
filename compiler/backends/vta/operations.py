"""Scheduled kernels to unit operations: instructions at fixed places, each with its layer.

The operations are listed in an order in which they could run one after the other: every constant is
loaded just before the first tile that needs it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Gemm, Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory

from ...loops.ir import LoopKind
from .blockwise import Blockwise
from .cascade import Cascade, Fetch, Fill, Put, Work
from .constants import DramMap
from .image import image_reads, load_windows
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .layers.lower import ADDEND
from .model import row_cycles
from .nest import Loop, Nest
from .place import Grant, Ring
from .plan import Plan
from .record import Frame, Part
from .rows import Piece, RowBuffer
from .stream import StreamedLayer
from .tensorize import Match, tensorize
from .windows import Slots

__all__ = ["Builder", "UnitOperation", "with_acc_bank"]

INPUT_CHUNKS = 8
"""Pieces in which the input is loaded, so that the first layer starts before all of it has come;
but each is so large that LOAD moves data for at least as long as it waits for the first.
"""

CONSTANTS = {
    "weights": (Memory.WGT, ("c", "k", "ky", "kx")),
    "taps": (Memory.TAP, ("c",)),
    "bias": (Memory.PAR, ("c",)),
    "add_bias": (Memory.PAR, ()),
    "table": (Memory.TAB, ()),
}
"""Memory of each constant, and the loops over the blocks of its first axes."""

SCALES = {"bias": "scale", "add_bias": "add_scale"}
"""Biases to the scales that lie in one word with them."""

MOST_WORDS = 4095
"""Words in a row of one LOAD."""


@dataclass(frozen=True, slots=True)
class UnitOperation:
    """An instruction without tokens, and the number of its layer.

    tile: the tile whose sums it makes or reads, in ACC from word 0: the order of the program
    decides in which bank they lie.
    holds: what it writes of the layer's result, or loads of its constants.
    """

    instruction: Instruction
    layer: int
    tile: int | None = None
    holds: Frame | Part | None = None


def sums_in_acc(instruction: Instruction) -> bool:
    """Whether it touches ACC."""
    match instruction:
        case Vector(source=source, destination=destination):
            return Memory.ACC in (source, destination)
        case _:
            return isinstance(instruction, Gemm)


def with_acc_bank(operation: UnitOperation, bank: int, config: HardwareConfig) -> Instruction:
    """The instruction with its sums in bank ``bank`` of ACC, and its bank masks."""
    first = bank * config.bank_words(Memory.ACC)
    instruction = operation.instruction
    match instruction:
        case _ if operation.tile is None:
            pass
        case Gemm(acc_address=address):
            instruction = replace(instruction, acc_address=address + first)
        case Vector(source_address=source, destination_address=destination):
            if instruction.source is Memory.ACC:
                instruction = replace(instruction, source_address=source + first)
            if instruction.destination is Memory.ACC:
                instruction = replace(instruction, destination_address=destination + first)
    return with_bank_masks(instruction, config)


class Builder:
    """Makes the operations of one layer after the other."""

    def __init__(
        self, config: HardwareConfig, plan: Plan, dram: DramMap, places: Mapping[str, int]
    ) -> None:
        """``places``: DRAM address of every activation that stays in DRAM, by name."""
        self.config, self.plan, self.dram, self.dram_places = config, plan, dram, places
        self.schedules = tuple(layer.schedule() for layer in plan.layers)
        self.operations: list[UnitOperation] = []
        self.in_order = range(0)
        """Operations whose LOAD and GEMM instructions keep their order."""
        self._rings = {
            memory: Ring(config, memory)
            for memory in (Memory.WGT, Memory.PAR, Memory.TAP, Memory.TAB)
        }
        self._tiles = 0

    def load_input(self, source: Activation, address: int) -> None:
        """Load the model's input from DRAM, row after row, with its halo."""
        top, left, bottom, right = source.halo
        size = self.config.block
        row = image_reads(source.image, self.config)[1] if source.image else source.width * size
        cycles, _ = row_cycles(row, self.config)
        fewest = -(-self.config.dram.latency_cycles // int(cycles))
        rows = max(-(-source.height // INPUT_CHUNKS), min(fewest, source.height))
        if source.image:
            self._load_image(source, address, rows)
            return
        for first in range(0, source.height, rows):
            count = min(rows, source.height - first)
            above = top if first == 0 else 0
            below = bottom if first + count == source.height else 0
            load = Load(
                memory=Memory.ACT,
                sram_address=self.plan.places[source.name] + (first + top - above) * source.columns,
                dram_address=address + first * source.width * size,
                count_x=source.width,
                count_y=count,
                count_z=source.blocks,
                dram_stride_y=source.width * size,
                dram_stride_z=source.height * source.width * size,
                sram_stride_y=source.columns,
                sram_stride_z=source.rows * source.columns,
                pad_x_before=left,
                pad_x_after=right,
                pad_y_before=above,
                pad_y_after=below,
                pad_value=source.fill or 0,
            )
            self._add(load, 0)

    def _load_image(self, source: Activation, address: int, rows: int) -> None:
        """Load the windows of an image, some rows at a time."""
        strides = (source.rows * source.columns, source.columns)
        for first in range(0, source.rows, rows):
            part = ((0, source.blocks), (first, min(rows, source.rows - first)))
            word = self.plan.places[source.name] + first * source.columns
            for load in load_windows(
                source, (*part, (0, source.columns)), strides, word, address, self.config.bus_bytes
            ):
                self._add(load, 0, holds=None if load.words else self._halo_frame(source))

    def store_output(self, result: Activation, address: int, layer: int) -> None:
        """Store the model's result to DRAM, without its halo."""
        size = self.config.block
        store = Store(
            dram_address=address,
            sram_address=self.plan.places[result.name]
            + result.halo[0] * result.columns
            + result.halo[1],
            count_x=result.width,
            count_y=result.height,
            count_z=result.blocks,
            dram_stride_y=result.width * size,
            dram_stride_z=result.height * result.width * size,
            sram_stride_y=result.columns,
            sram_stride_z=result.rows * result.columns,
        )
        self._add(store, layer)

    def add_layer(self, number: int, layer: LoweredLayer) -> None:
        """Append the operations of a layer: for each tile, the instructions of each nest."""
        for _ in self._layer(number, layer):
            pass

    def add_blockwise(self, group: Blockwise, layers: Sequence[LoweredLayer]) -> None:
        """Append the operations of a convolution, a pool and a dense layer, block by block.

        layers: all of the program.
        """
        first, parts = group.first, group.parts
        conv, pool, dense = (
            self._layer(number, layers[number]) for number in range(first, first + 3)
        )
        size, begin = self.plan.layers[first].tiling.sizes["c"], len(self.operations)
        made = pooled = added = 0
        for _ in conv:
            made += size
            while pooled < made // group.blocks:
                next(pool)
                pooled += 1
            while added < min(group.ready(made), pooled, parts):
                next(dense)
                added += 1
        for _ in dense:
            pass
        self.in_order = range(begin, len(self.operations))

    def _layer(self, number: int, layer: LoweredLayer) -> Iterator[None]:
        """Append the operations of a layer; stop after each tile, and each part of its sums."""
        planned = self.plan.layers[number]
        run = self._begin(number, layer, planned)
        if layer.output.name in run.bases:
            for load in self._halo(layer.output):
                self._add(load, number, holds=self._halo_frame(layer.output))
        buffers = {
            name: Slots(
                window,
                self.plan.places[number, name],
                self.dram_places[name],
                self.config.bus_bytes,
            )
            for name, window in planned.windows.items()
        }
        output = buffers.pop(layer.output.name, None)
        columns = layer.output.columns
        frame = Frame(0, columns, layer.output.rows * columns)
        for tile in _iterations(run.loops):
            for name, slots in buffers.items():
                run.bases[name], missing = slots.fetch(tile)
                for load in missing:
                    self._add(load, number)
            if output:
                run.bases[layer.output.name] = output.next()
                frame = output.frame(tile)
            yield from self._tile(run, tile, frame)
            for store in output.put(tile) if output else ():
                self._add(store, number)
            yield

    def add_cascade(self, cascade: Cascade, layers: Sequence[LoweredLayer]) -> None:
        """Append the operations of consecutive layers, strip by strip.

        layers: all of the program.
        """
        numbers = range(cascade.first, cascade.first + len(cascade.layers))
        runs = {
            number: self._begin(number, layers[number], planned)
            for number, planned in zip(numbers, cascade.layers, strict=True)
        }
        buffers: dict[str, RowBuffer] = {}
        for name, ring in cascade.rings.items():
            number = cascade.first if ring.producer is None else ring.producer
            if ring.kept:
                for load in self._halo(ring.activation):
                    self._add(load, number, holds=self._halo_frame(ring.activation))
            place = self.plan.places[name if ring.kept else (cascade.first, name)]
            dram, bus = self.dram_places.get(name, 0), self.config.bus_bytes
            buffers[name] = RowBuffer(ring, place, dram, bus)
            if not ring.kept and ring.producer is not None:
                for load, holds in buffers[name].sides():
                    self._add(load, number, holds=holds)
        for step in cascade.steps:
            match step:
                case Work(layer=number, strip=strip):
                    self._strip(runs[number], cascade, strip, buffers)
                case Fetch(name=name, first=first, count=count):
                    for load in buffers[name].fetch(first, count):
                        self._add(load, buffers[name].user)
                case Fill(name=name, first=first, count=count):
                    for load, holds in buffers[name].fill(first, count):
                        self._add(load, buffers[name].user, holds=holds)
                case Put(name=name, first=first, count=count):
                    for store in buffers[name].put(first, count):
                        self._add(store, buffers[name].user)

    def _strip(
        self, run: "_Run", cascade: Cascade, strip: int, buffers: Mapping[str, RowBuffer]
    ) -> None:
        for x in run.layer.inputs:
            if x.name in buffers:
                run.bases[x.name] = buffers[x.name].start(run.number, strip)
        result = buffers[run.layer.output.name]
        rows = cascade.rows[run.number - cascade.first]
        pieces = result.pieces(strip * rows, rows)
        frame = result.frame(strip * rows)
        outer, *inner = run.loops
        for tile in _iterations(inner):
            for _ in self._tile(run, {outer.name: strip} | tile, frame, pieces):
                pass

    def _begin(self, number: int, layer: LoweredLayer, planned: StreamedLayer) -> "_Run":
        """A layer about to run; constants of which it needs all the time all are loaded."""
        kernel = planned.kernel(self.schedules[number])
        bases = {
            x.name: self.plan.places[x.name]
            for x in (*layer.inputs, layer.output)
            if x.name not in planned.windows
        }
        constants = _constants(layer)
        parts = {name for name in constants if name in ("weights", "taps", *planned.tiling.parted)}
        if planned.tiling.parted:
            parts |= constants.keys() & {"add_bias"}
        for name in (name for name in constants if name not in parts):
            memory, whole = CONSTANTS[name][0], Part(name, ())
            bases[name] = self._load(number, layer, memory, constants[name], whole).start
        loops = kernel.tiles
        nests = [_Nest.of(nest, loops, parts, self.config.block) for nest in kernel.nests]
        return _Run(number, layer, loops, tuple(nests), constants, bases, {})

    def _tile(
        self,
        run: "_Run",
        tile: Mapping[str, int],
        frame: Frame,
        pieces: Sequence[Piece] | None = None,
    ) -> Iterator[None]:
        """The instructions of one tile; stops between parts of its sums.

        frame: of the result, but for its word.  pieces: of the rows of the result, where it does
        not lie in one piece.
        """
        bases, output = run.bases, run.layer.output.name
        bases["acc"] = 0
        self._tiles += 1
        number = self._tiles
        for nest in run.nests:
            for place, inner in enumerate(_iterations(nest.serial)):
                if place:
                    yield
                at = {**tile, **inner}
                for name in nest.parts:
                    part = _part(name, run.constants[name], nest.match.nest, at)
                    if part.key not in run.loaded or not self._holds(name, run.loaded[part.key]):
                        memory = CONSTANTS[name][0]
                        run.loaded[part.key] = self._load(
                            run.number, run.layer, memory, part.array, Part(name, part.place)
                        )
                    bases[name] = run.loaded[part.key].start
                for name in SCALES:
                    bases[SCALES[name]] = bases.get(name, 0)
                target = nest.match.nest.name
                holds = replace(frame, addend=target == ADDEND)
                if pieces is None or target not in (output, ADDEND):
                    if pieces is None:
                        bases[ADDEND] = bases[output]
                        holds = replace(holds, word=bases[output])
                    self._add(
                        nest.match.instruction(at, bases),
                        run.number,
                        number,
                        holds if target in (output, ADDEND) else None,
                    )
                    continue
                for piece in pieces:
                    bases[output] = bases[ADDEND] = piece.base
                    match = nest.match.only(piece.start, piece.count)
                    there = replace(holds, word=piece.base)
                    self._add(match.instruction(at, bases), run.number, number, there)

    def _holds(self, name: str, grant: Grant) -> bool:
        """Whether what was loaded there is still there."""
        return self._rings[CONSTANTS[name][0]].holds(grant)

    def _add(
        self,
        instruction: Instruction,
        number: int,
        tile: int | None = None,
        holds: Frame | Part | None = None,
    ) -> None:
        sums = tile if sums_in_acc(instruction) else None
        self.operations.append(UnitOperation(instruction, number, sums, holds))

    def _load(
        self,
        number: int,
        layer: LoweredLayer,
        memory: Memory,
        array: NDArray[np.generic],
        part: Part,
    ) -> Grant:
        """Load a constant into the next place of its ring; return that place."""
        size = self.config.word_bytes(memory)
        words = array.nbytes // size
        grant = self._rings[memory].take(words, layer.name)
        address = self.dram.add(array)
        for start, count in _pieces(words, MOST_WORDS):
            load = Load(
                memory=memory,
                sram_address=(grant.start + start) % self.config.depth(memory),
                dram_address=address + start * size,
                count_x=count,
            )
            self._add(load, number, holds=part)
        return grant

    def _halo_frame(self, output: Activation) -> Frame:
        """Of an activation that is on chip as a whole."""
        word, columns = self.plan.places[output.name], output.columns
        return Frame(word, columns, output.rows * columns, halo_of=output.name)

    def _halo(self, output: Activation) -> Iterator[Load]:
        """Fill the halo: what lies before the first data row, between rows, and after the last.

        Of a tensor whose pixels come from several layers, by the one that makes the first pixel.
        """
        if output.fill is None or (output.grid and any(output.grid.start)):
            return
        height, width = output.full_size
        top, left, bottom, right = output.halo
        base, columns = self.plan.places[output.name], output.columns
        base += output.first_block * output.rows * columns
        runs = (
            (0, top * columns + left, 1),
            (top * columns + left + width, left + right, height - 1),
            (
                (top + height) * columns - right,
                right + bottom * columns,
                1,
            ),
        )
        for start, words, rows in runs:
            for begin, count in _pieces(words, 510) if rows else ():
                yield Load(
                    memory=Memory.ACT,
                    sram_address=base + start + begin,
                    count_x=0,
                    count_y=rows,
                    count_z=output.blocks,
                    sram_stride_y=columns,
                    sram_stride_z=output.rows * columns,
                    pad_x_before=count // 2,
                    pad_x_after=count - count // 2,
                    pad_value=output.fill,
                )


@dataclass(frozen=True, slots=True)
class _Run:
    """A layer while it runs.

    loops: over its tiles.  bases: first word of every buffer, by name.  loaded: parts of constants
    by their key.
    """

    number: int
    layer: LoweredLayer
    loops: tuple[Loop, ...]
    nests: "tuple[_Nest, ...]"
    constants: Mapping[str, NDArray[np.generic]]
    bases: dict[str, int]
    loaded: dict[tuple[object, ...], Grant]


@dataclass(frozen=True, slots=True)
class _Nest:
    """A nest as an intrinsic, its serial loops inside those of the tiles, and what it loads.

    parts: constants of which each iteration loads its part.
    """

    match: Match
    serial: tuple[Loop, ...]
    parts: tuple[str, ...]

    @staticmethod
    def of(nest: Nest, tiles: Sequence[Loop], parts: set[str], lanes: int) -> "_Nest":
        """Match ``nest``, whose first loops are ``tiles``; ``parts`` are those of the layer."""
        inside = nest.loops[len(tiles) :]
        serial = tuple(loop for loop in inside if loop.kind is LoopKind.SERIAL)
        names = {ref.buffer.name for ref in nest.refs}
        return _Nest(tensorize(nest, lanes), serial, tuple(sorted(parts & names)))


@dataclass(frozen=True, slots=True)
class _Part:
    """What one iteration reads of a constant; an equal ``key`` means an equal array."""

    key: tuple[object, ...]
    array: NDArray[np.generic]
    place: tuple[int, ...]


def _constants(layer: LoweredLayer) -> dict[str, NDArray[np.generic]]:
    """What a layer loads: its constants, biases and scales together as words of PAR."""
    found = {name: array for name, array in layer.constants.items() if name not in SCALES.values()}
    for name in SCALES.keys() & found.keys():
        bias = layer.constants[name].astype(np.int32)
        scale = layer.constants[SCALES[name]].astype(np.float32)
        found[name] = np.concatenate([bias.view(np.uint8), scale.view(np.uint8)], axis=1)
    return found


def _iterations(loops: Sequence[Loop]) -> Iterator[dict[str, int]]:
    """Every iteration of ``loops``, the last one varying fastest."""
    names = [loop.name for loop in loops]
    for indices in product(*(range(loop.extent) for loop in loops)):
        yield dict(zip(names, indices, strict=True))


def _part(name: str, array: NDArray[np.generic], nest: Nest, at: Mapping[str, int]) -> _Part:
    """What iteration ``at`` of the serial loops reads of ``array``: a part of each split axis."""
    places: list[int] = []
    for axis, loop in enumerate(CONSTANTS[name][1]):
        place = at.get(f"{loop}.outer", 0)
        array = np.split(array, nest.extents.get(f"{loop}.outer", 1), axis)[place]
        places.append(place)
    return _Part((name, *places), array, tuple(places))


def _pieces(total: int, most: int) -> Iterator[tuple[int, int]]:
    for start in range(0, total, most):
        yield start, min(most, total - start)
