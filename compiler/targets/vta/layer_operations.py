"""Layers one by one as unit operations: instructions at fixed places, each with its layer.

The operations are listed in an order in which they could run one after the other: every constant is
loaded just before the first tile that needs it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import replace
from dovetail.isa.instructions import Instruction, Load, Store
from dovetail.isa.memories import Memory

from ...errors import DoesNotFitError
from .activation_loads import halo_loads, in_long_rows, input_loads
from .constant_loads import SCALES, ConstantLoader, constant_piece, layer_constants
from .constants import DramMap
from .dram_parts import store_part
from .layer_run import LayerRun, TileNest, iterations
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .layers.lower import ADDEND
from .layers.row_norm import KEPT, WIDE
from .layers.tensor_norm import DIGITS
from .long_moves import moves
from .plan import Plan
from .read_nests import BYTE, HIGH, LOW
from .record import Frame, Part
from .result_parts import LEAST_PART, result_parts
from .ring import Grant
from .rows import Piece
from .schedules import Schedules
from .stream import StreamedLayer
from .unit_operation import UnitOperation, sums_in_acc
from .windows import Slots

__all__ = ["LayerBuilder"]


class LayerBuilder:
    """Makes the operations of one layer after the other."""

    def __init__(
        self,
        config: HardwareConfig,
        plan: Plan,
        dram: DramMap,
        places: Mapping[str, int],
        schedules: Schedules,
        *,
        apart: bool = False,
        cut: bool = False,
        least: int = LEAST_PART,
    ) -> None:
        """``places``: DRAM address of every activation that stays in DRAM, by name.

        apart, cut: as of ``ConstantLoader``.  least: as of ``result_parts``.
        """
        self.config, self.plan, self.dram, self.dram_places = config, plan, dram, places
        self.scheduled = tuple(
            schedules.of(each.layer.function, each.tiling) for each in plan.layers
        )
        self.operations: list[UnitOperation] = []
        self.in_order: list[range] = []
        """Groups of operations whose LOAD and GEMM instructions keep their order."""
        self._loader = ConstantLoader(config, dram, apart=apart, cut=cut)
        self._least, self._tiles = least, 0

    def load_input(self, source: Activation, layer: int) -> None:
        """Append what loads an input, which ``layer`` is the first to read."""
        place, address = self.plan.places[source.name], self.dram_places[source.name]
        self._add_all(input_loads(source, place, address, self.config), layer)

    def store_output(
        self, result: Activation, layer: int, blocks: frozenset[int] | None = None
    ) -> None:
        """Append what stores a result, which ``layer`` is the last to write.

        blocks: those of its channels that are read; None if all are.
        """
        place, address = self.plan.places[result.name], self.dram_places[result.name]
        shape = result.blocks, result.rows, result.columns
        for part in result_parts(result, self.plan.layers, blocks, self._least):
            word = place + (part[0][0] * shape[1] + part[1][0]) * shape[2] + part[2][0]
            store = store_part(result, part, shape, word, address)
            self._add(in_long_rows(store, self.config), layer)

    def add_layer(self, number: int, layer: LoweredLayer) -> None:
        """Append the operations of a layer: for each tile, the instructions of each nest."""
        for _ in self._layer(number, layer, alone=True):
            pass

    def _layer(
        self, number: int, layer: LoweredLayer, *, alone: bool = False
    ) -> Iterator[Mapping[str, int] | None]:
        """Append the operations of a layer; stop after each tile, which it gives, and each part of
        its sums but the last.

        alone: nothing else is appended before it ends.
        """
        planned = self.plan.layers[number]
        run = self._begin(number, layer, planned, alone=alone)
        if layer.output.name in run.bases:
            self._add_halo(layer.output, number)
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
        for name in [name for name in buffers if planned.windows[name].of_parts]:
            run.windows[name] = buffers.pop(name)
        columns = layer.output.columns
        frame = Frame(0, columns, layer.output.rows * columns)
        for tile in iterations(run.loops):
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
            yield tile

    def _begin(
        self, number: int, layer: LoweredLayer, planned: StreamedLayer, *, alone: bool = False
    ) -> LayerRun:
        """A layer about to run, with the constants loaded that it needs as a whole all the time.

        alone: as of ``_layer``.
        """
        kernel = planned.kernel(self.scheduled[number])
        bases = {
            x.name: self.plan.places[x.name]
            for x in (*layer.inputs, layer.output)
            if x.name not in planned.windows
        }
        constants = layer_constants(layer)
        parts = {name for name in constants if name in ("weights", "taps", *planned.tiling.parted)}
        if planned.tiling.parted:
            parts |= constants.keys() & {"add_bias"}
        whole = [name for name in constants if name not in parts]
        rows = {n.name: prod(n.target.buffer.shape[:-1]) for n in kernel.nests if n.makes_row}
        there: Mapping[str, Grant] = {}
        if alone and not planned.tiling.parted:
            known = {name: constants[name] for name in whole}
            there = self._loader.there(known, layer, sum(rows.values()))
        held: dict[str, Grant] = {}
        for name in whole:
            part = Part(name, ())
            held[name] = there.get(name) or self._load(number, layer, constants[name], part)
        rooms = self._loader.rooms(rows, layer)
        loops = kernel.tiles
        nests = tuple(
            TileNest.of(nest, loops, parts, held.keys(), self.config.block) for nest in kernel.nests
        )
        return LayerRun(number, layer, loops, nests, constants, bases, {}, {}, held, rooms)

    def _tile(
        self,
        run: LayerRun,
        tile: Mapping[str, int],
        frame: Frame,
        pieces: Sequence[Piece] | None = None,
    ) -> Iterator[None]:
        """The instructions of one tile; stops between parts of its sums.

        frame: of the result, except for its word.  pieces: of the rows of the result, where it does
        not are in one piece.
        """
        bases, output = run.bases, run.layer.output.name
        bases["acc"] = bases[KEPT] = bases[WIDE] = bases[DIGITS] = 0
        if run.layer.given is not None:
            bases[WIDE] = self._behind_sums(run.layer)
        self._tiles += 1
        number = self._tiles
        for nest in run.nests:
            for place, inner in enumerate(iterations(nest.serial)):
                if place:
                    yield
                at = {**tile, **inner}
                for name in nest.parts:
                    bases[name] = self._need(run, name, nest, at) + run.offsets.get(name, 0)
                for name in nest.whole:
                    bases[name] = self._kept(run, name)
                for name in run.rooms.keys() & nest.reads:
                    bases[name] = self._room(run, name, nest)
                for name, slots in run.windows.items():
                    if name in nest.reads:
                        bases[name], missing = slots.fetch(at)
                        self._add_all(((load, None) for load in missing), run.number)
                for name in SCALES.keys() & bases.keys():
                    bases[SCALES[name]] = bases[name]
                target = nest.match.nest.name
                if pieces is None:
                    bases[ADDEND] = bases[LOW] = bases[BYTE] = bases[output]
                    bases[HIGH] = bases[run.layer.inputs[0].name]
                if target not in (output, ADDEND):
                    self._add(nest.match.instruction(at, bases), run.number, number)
                    continue
                addend = target == ADDEND
                if pieces is None:
                    holds = replace(frame, addend=addend, word=bases[output])
                    self._add(nest.match.instruction(at, bases), run.number, number, holds)
                for piece in pieces or ():
                    bases[output] = bases[ADDEND] = piece.base
                    match = nest.match.only(piece.start, piece.count)
                    holds = replace(frame, addend=addend, word=piece.base)
                    self._add(match.instruction(at, bases), run.number, number, holds)

    def _behind_sums(self, layer: LoweredLayer) -> int:
        """First word of the scaled terms of a tile, in the bank of its sums.

        Raises DoesNotFitError where a bank is too small for both.
        """
        pixels, terms = layer.output.height * layer.output.width, len(layer.constants["row_bias"])
        sums = len(layer.constants["weights"]) * pixels
        available = self.config.bank_words(Memory.ACC)
        if sums + terms > available:
            raise DoesNotFitError(
                f"layer {layer.name!r}: acc scratchpad: {sums + terms} words required for sums and "
                f"scaled terms, {available} available; use a configuration with a deeper ACC"
            )
        return sums

    def _need(self, run: LayerRun, name: str, nest: TileNest, at: Mapping[str, int]) -> int:
        """First word of what an iteration reads of a constant, loaded unless it is still there."""
        piece = constant_piece(name, run.constants[name], nest.match.nest, at)
        loaded = run.loaded.get(piece.key)
        if loaded is None or not loaded.ring.holds(loaded):
            part = Part(name, piece.place)
            loaded = self._load(run.number, run.layer, piece.array, part, again=False)
            run.loaded[piece.key] = loaded
        return loaded.start

    def _kept(self, run: LayerRun, name: str) -> int:
        """First word of a constant that was loaded whole, and again if others took its place."""
        if not run.whole[name].ring.holds(run.whole[name]):
            part = Part(name, ())
            run.whole[name] = self._load(run.number, run.layer, run.constants[name], part)
        return run.whole[name].start

    def _room(self, run: LayerRun, name: str, nest: TileNest) -> int:
        """First word of the parameters of rows ``name``, which ``nest`` makes or reads."""
        made = nest.match.nest
        if not run.rooms[name].ring.holds(run.rooms[name]):
            if made.name != name:
                raise DoesNotFitError(
                    f"layer {run.layer.name!r}: par scratchpad: parameters of rows have gone "
                    "before they are read; use a configuration with a deeper PAR"
                )
            run.rooms[name] = self._loader.room(prod(made.target.buffer.shape[:-1]), run.layer)
        return run.rooms[name].start

    def _load(
        self,
        number: int,
        layer: LoweredLayer,
        array: NDArray[np.generic],
        part: Part,
        *,
        again: bool = True,
    ) -> Grant:
        if part.constant == "weights" and layer.stored is not None:
            address = self.dram_places[layer.stored.name]
            grant, loads = self._loader.load_rows(layer.stored, address, part, array.shape, layer)
        elif part.constant == "row_bias" and layer.given is not None:
            address = self.dram_places[layer.given.name]
            grant, loads = self._loader.load_words(address, len(array), layer)
        else:
            grant, loads = self._loader.load(part.constant, array, layer, again=again)
        for load in loads:
            self._add(load, number, holds=part)
        return grant

    def _add_halo(self, output: Activation, number: int) -> None:
        self._add_all(halo_loads(output, self.plan.places[output.name]), number)

    def _add_all(self, loads: Iterable[tuple[Load, Frame | None]], number: int) -> None:
        for load, holds in loads:
            self._add(load, number, holds=holds)

    def _add(
        self,
        instruction: Instruction,
        number: int,
        tile: int | None = None,
        holds: Frame | Part | None = None,
    ) -> None:
        sums = tile if sums_in_acc(instruction) else None
        pieces: Iterable[Instruction] = (instruction,)
        if isinstance(instruction, Load | Store):
            pieces = moves(instruction, self.config)
        for each in pieces:
            self.operations.append(UnitOperation(each, number, sums, holds))
