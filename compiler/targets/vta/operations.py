"""Scheduled kernels to unit operations, layers that run together included.

The operations are listed in an order in which they could run one after the other: every constant is
loaded just before the first tile that needs it.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from .activation_loads import halo_loads
from .block_cascade import BlockCascade
from .blockwise import GROUP, Blockwise
from .cascade import Cascade, Fetch, Fill, Put, Work
from .layer_operations import LayerBuilder
from .layer_run import LayerRun, iterations
from .layers.definition import LoweredLayer
from .record import Frame
from .rows import RowBuffer
from .schedules import AXES

__all__ = ["Builder"]


class Builder(LayerBuilder):
    """Makes the operations of layers separately, and of groups that run together."""

    def add_blockwise(self, group: Blockwise, layers: Sequence[LoweredLayer]) -> None:
        """Append the operations of a convolution, a pool and a dense layer, block by block.

        layers: all of the program.
        """
        first, parts = group.first, group.parts
        conv, pool, dense = (
            self._layer(number, layers[number]) for number in range(first, first + GROUP)
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
        self.in_order.append(range(begin, len(self.operations)))

    def add_chain(self, numbers: range, layers: Sequence[LoweredLayer]) -> None:
        """Append the operations of layers ``numbers``, each of which follows the one before channel
        by channel: of those that could run a tile, the last one does.

        layers: all of the program.
        """
        members = [self._layer(number, layers[number]) for number in numbers]
        tilings = [self.plan.layers[number].tiling.sizes for number in numbers]
        extents = [layers[number].kernel.extents for number in numbers]
        tiles, made = [0] * len(members), [0] * len(members)
        around = [
            prod(whole[axis] // sizes[axis] for axis in ("y", "x"))
            for whole, sizes in zip(extents, tilings, strict=True)
        ]
        while made[-1] < extents[-1]["c"]:
            place = max(
                n
                for n, sizes in enumerate(tilings)
                if made[n] < extents[n]["c"]
                if made[n] + sizes["c"] <= min(made[:n], default=extents[n]["c"])
            )
            while next(members[place]) is None:
                pass
            tiles[place] += 1
            made[place] = tiles[place] // around[place] * tilings[place]["c"]

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
            number = ring.producers[0] if ring.producers else cascade.first
            if ring.kept:
                self._add_halo(ring.activation, number)
            place = self.plan.places[name if ring.kept else (cascade.first, name)]
            dram, bus = self.dram_places.get(name, 0), self.config.bus_bytes
            buffers[name] = RowBuffer(ring, place, dram, bus)
            if not ring.kept and ring.producers:
                self._add_all(buffers[name].sides(), number)
            if ring.turned:
                (reader,) = ring.readers
                run = runs[reader.layer]
                runs[reader.layer] = run.with_turned_taps(self.config.tap_depth)
        for step in cascade.steps:
            match step:
                case Work(layer=number, strip=strip):
                    self._strip(runs[number], cascade, strip, buffers)
                case Fetch(name=name, first=first, count=count):
                    for load in buffers[name].fetch(first, count):
                        self._add(load, buffers[name].user)
                case Fill(name=name, first=first, count=count):
                    self._add_all(buffers[name].fill(first, count), buffers[name].user)
                case Put(name=name, first=first, count=count):
                    for store in buffers[name].put(first, count):
                        self._add(store, buffers[name].user)

    def add_block_cascade(self, cascade: BlockCascade, layers: Sequence[LoweredLayer]) -> None:
        """Append the operations of two or three layers, some channel blocks at a time.

        layers: all of the program.
        """
        numbers = range(cascade.first, cascade.first + len(cascade.layers))
        runs = [
            self._begin(number, layers[number], planned)
            for number, planned in zip(numbers, cascade.layers, strict=True)
        ]
        starts: dict[str, int] = {}
        for number, (name, ring) in zip(numbers, cascade.rings.items(), strict=False):
            starts[name] = self.plan.places[name if ring.kept else (cascade.first, name)]
            for slot in range(ring.slots):
                start = starts[name] + slot * ring.slot_words
                self._add_all(halo_loads(ring.slot, start), number)
        whole = {f"{axis}.outer": 0 for axis in AXES}
        sums: Iterator[None] = iter(())
        for run in runs[2:]:
            result = run.layer.output
            if result.name in run.bases:
                self._add_halo(result, run.number)
            sums = self._tile(run, whole, Frame(0, result.columns, result.rows * result.columns))
        for part in range(cascade.parts):
            for name, ring in cascade.rings.items():
                base = starts[name] + part % ring.slots * ring.slot_words
                for run in runs:
                    run.bases[name] = base
            for run, ring in zip(runs, cascade.rings.values(), strict=False):
                x = ring.activation
                frame = Frame(0, x.columns, x.rows * x.columns, (part * ring.size, 0, 0))
                for _ in self._tile(run, whole | {"c.outer": part}, frame):
                    pass
            next(sums, None)
        for _ in sums:
            pass

    def _strip(
        self, run: LayerRun, cascade: Cascade, strip: int, buffers: Mapping[str, RowBuffer]
    ) -> None:
        for x in run.layer.inputs:
            if x.name in buffers:
                run.bases[x.name] = buffers[x.name].start(run.number, strip)
                if buffers[x.name].ring.turned:
                    run.turn(buffers[x.name].turn(run.number, strip))
        result = buffers[run.layer.output.name]
        rows = cascade.rows[run.number - cascade.first]
        pieces = result.pieces(strip * rows, rows)
        frame = result.frame(strip * rows)
        outer, *inner = run.loops
        for tile in iterations(inner):
            for _ in self._tile(run, {outer.name: strip} | tile, frame, pieces):
                pass
