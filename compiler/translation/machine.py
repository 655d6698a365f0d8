"""Instructions, one after the other, on symbols instead of bytes.

Which words an instruction touches is said by ``isa.footprint``, what it computes by the manual.
Units, tokens and time play no part: that the order of a program makes no difference is what the
race checker shows.
"""

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import (
    block_bytes,
    element_words,
    is_window,
    load_cells,
    nest,
    outer_extent,
    results_written,
    window_taps,
)
from dovetail.isa.instructions import (
    Finish,
    Fold,
    Gemm,
    Instruction,
    Load,
    Multiplier,
    Store,
    Vector,
)
from dovetail.isa.memories import Memory
from dovetail.isa.semantics import low_bits, requantize

from ..errors import TranslationError
from .symbols import (
    BYTES,
    NOT_A_BYTE,
    Array,
    Symbols,
    apply_table,
    balanced,
    chosen,
    clip_table,
    constants,
    digest,
    fresh,
    function,
    integers,
    largest,
    multiplied,
    of_pairs,
    requantized,
)

__all__ = ["Machine"]

SYMBOLIC = (Memory.ACT, Memory.WGT, Memory.ACC, Memory.TAP)


class Machine:
    """Scratchpads and DRAM.  Bytes of PAR and TAB are known; those of the others are symbols."""

    def __init__(self, config: HardwareConfig, dram: Array) -> None:
        """dram: uint8, all of it known."""
        self.config, self.bytes = config, dram
        self.dram = constants(dram.view(np.int8))
        self.known = np.ones(len(dram), bool)
        self._words = {memory: self._empty(memory) for memory in SYMBOLIC}
        self._words[Memory.ACC] = integers(self._words[Memory.ACC].values)
        self._parameters = np.zeros((config.par_depth, config.word_bytes(Memory.PAR)), np.uint8)
        self._tables = np.zeros((config.tab_depth, config.block), np.int8)

    def _empty(self, memory: Memory) -> Symbols:
        lanes = self.config.block * (self.config.block if memory is Memory.WGT else 1)
        return constants(np.zeros((self.config.depth(memory), lanes), np.int8))

    def put(self, address: int, x: Symbols) -> None:
        """Symbols of bytes from a DRAM address on; x: one axis."""
        self._write(self.dram, np.arange(address, address + len(x.values)), x)
        self.known[address : address + len(x.values)] = False

    def run(self, instruction: Instruction) -> None:
        """Apply one instruction.

        Raises TranslationError where it takes a parameter or table from what is not constant.
        """
        match instruction:
            case Load():
                self._load(instruction)
            case Gemm():
                self._gemm(instruction)
            case Vector():
                self._vector(instruction)
            case Store():
                self._store(instruction)

    @staticmethod
    def _write(memory: Symbols, places: Array, x: Symbols) -> None:
        memory.values[places] = x.values
        memory.roots[places] = x.roots
        memory.tables[places] = x.tables

    def _load(self, load: Load) -> None:
        config, memory = self.config, load.memory
        size = config.word_bytes(memory)
        cells, data = load_cells(load, config.depth(memory))
        starts = block_bytes(load.dram_address, load, size)
        places = starts[:, None] + np.arange(size)
        outside = np.zeros(places.shape, bool)
        if load.step:
            column = (np.arange(len(places)) % load.count_x * load.step)[:, None] + np.arange(size)
            outside = (column < load.row_first) | (column >= load.row_end)
        places = np.where(outside, 0, places)
        padding = cells[~data]
        if memory in SYMBOLIC and memory is not Memory.ACC:
            fill = constants(np.full((len(padding), size), load.pad_value, np.int8))
            self._write(self._words[memory], padding, fill)
            pad = constants(np.full(places.shape, load.pad_value, np.int8))
            found = chosen(outside, pad, self.dram.moved(lambda x: x[places]))
            self._write(self._words[memory], cells[data], found)
            return
        if not self.known[places].all():
            raise TranslationError(f"a LOAD of {memory.name} reads what is not constant: {load}")
        raw = np.where(outside, np.uint8(load.pad_value & 0xFF), self.bytes[places])
        fill_raw = np.full((len(padding), size), load.pad_value & 0xFF, np.uint8)
        for where, words in ((padding, fill_raw), (cells[data], raw)):
            if memory is Memory.PAR:
                self._parameters[where] = words
            elif memory is Memory.TAB:
                self._tables[where] = words.view(np.int8)
            else:
                self._write(self._words[memory], where, integers(words.view(np.int32)))

    def _store(self, store: Store) -> None:
        config = self.config
        rows = nest(
            store.sram_address,
            (store.count_x, store.count_y, store.count_z),
            (1, store.sram_stride_y, store.sram_stride_z),
            config.act_depth,
        )
        size = config.word_bytes(Memory.ACT)
        places = block_bytes(store.dram_address, store, size)[:, None] + np.arange(size)
        self._write(self.dram, places, self._words[Memory.ACT].moved(lambda x: x[rows]))
        self.known[places] = False

    def _gemm(self, gemm: Gemm) -> None:
        """Tile by tile of weights; then sums of the products of one result."""
        config, extent = self.config, gemm.extent
        act = nest(gemm.act_address, extent, gemm.act_stride, config.act_depth)
        wgt = nest(gemm.wgt_address, extent, gemm.wgt_stride, config.wgt_depth)
        acc = nest(gemm.acc_address, extent, gemm.acc_stride, config.acc_depth)
        lanes = config.block
        products = np.zeros((len(act), lanes), np.int64)
        order = np.argsort(wgt, kind="stable")
        tiles, begins = np.unique(wgt[order], return_index=True)
        values = self._words[Memory.ACT].values
        for tile, group in zip(tiles, np.split(order, begins[1:]), strict=True):
            weights = self._words[Memory.WGT].values[tile].reshape(lanes, lanes).T
            products[group] = multiplied(values[act[group]], weights + gemm.weight_offset)
        first = np.zeros(len(acc), bool)
        if not gemm.accumulate:
            steps = [gemm.reduction >> level & 1 for level in range(len(extent))]
            first = nest(0, extent, steps, 1 << 62) == 0
        held = self._words[Memory.ACC]
        total, places = self._accumulated(held.values, acc, first, products)
        self._write(held, places, integers(total))

    @staticmethod
    def _accumulated(held: Array, acc: Array, first: Array, products: Array) -> tuple[Array, Array]:
        """New words of ACC, and where they lie.  An iteration that is ``first`` discards all
        before it at its address.
        """
        order = np.argsort(acc, kind="stable")
        places, begins, numbers = np.unique(acc[order], return_index=True, return_inverse=True)
        last = np.full(len(places), -1)
        steps = np.where(first[order], np.arange(len(order)), -1)
        np.maximum.at(last, numbers, steps)
        counted = np.arange(len(order)) >= last[numbers]
        kept = np.where(counted[:, None], products[order], 0)
        # Fewer than 2**33 products of 2**30 lie in int64.
        total = np.add.reduceat(kept, begins, axis=0)
        return np.where((last < 0)[:, None], held[places], 0) + total, places

    def _vector(self, vector: Vector) -> None:
        config, outer = self.config, outer_extent(vector)
        results = int(np.prod(outer))
        words = element_words(vector, config)
        found = self._words[vector.source].moved(lambda x: x[words])
        if is_window(vector):
            total = integers(self._windows(found.values, vector))
            result = self._finished(total, vector, outer)
        else:
            shape = (results, -1, config.block)
            elements = found.moved(lambda x: x.reshape(shape))
            result = self._of_bytes(elements, vector, outer)
            if result is None:
                result = self._finished(self._folded(elements, vector), vector, outer)
        if vector.lookup:
            first = vector.tab_address % config.tab_depth
            result = apply_table(result, self._tables[first : first + 256].T)
        places = nest(
            vector.destination_address,
            outer,
            vector.destination_stride,
            config.depth(vector.destination),
        )
        written = results_written(vector)
        self._write(
            self._words[vector.destination], places[written], result.moved(lambda x: x[written])
        )

    def _of_bytes(self, x: Symbols, vector: Vector, outer: tuple[int, ...]) -> Symbols | None:
        """The requantised result of one or two bytes, as a table of all of them; None for others.

        So fixed-point formulas are equal to others that give the same bytes.
        """
        count = x.values.shape[1]
        mac = vector.fold is Fold.MAC
        wanted = vector.multiplier in (Multiplier.IMMEDIATE, Multiplier.PAIR)
        if vector.finish is not Finish.REQUANTIZE or (x.tables == NOT_A_BYTE).any():
            return None
        if not (mac and wanted and count == 2) and not (
            count == 1 and (not mac or vector.multiplier is Multiplier.IMMEDIATE)
        ):
            return None
        bias, scale = self._parameter_words(vector, outer)
        keys, numbers = np.unique(
            np.stack([bias, scale.view(np.int32)], axis=-1).reshape(-1, 2),
            axis=0,
            return_inverse=True,
        )
        numbers = numbers.reshape(bias.shape)
        grid = np.meshgrid(*[BYTES] * count, indexing="ij")
        sums = self._folded(constants(np.stack(grid).reshape(1, count, -1)), vector).values[0]
        found: Symbols | None = None
        for number, (one, bits) in enumerate(keys.astype(np.int32)):
            limits = vector.zero_point, vector.low, vector.high
            table = requantize(sums.astype(np.int32), one, bits.view(np.float32), *limits)
            if count == 1:
                made = apply_table(x.moved(lambda each: each[:, 0]), table)
            else:
                made = of_pairs(table.reshape(256, 256), x.values[:, 0], x.values[:, 1])
            found = made if found is None else chosen(numbers == number, made, found)
        return found

    def _parameter_words(self, vector: Vector, outer: tuple[int, ...]) -> tuple[Array, Array]:
        """Biases int32 and scales float32 of every result: [results, lanes]."""
        places = nest(vector.par_address, outer, vector.par_stride, self.config.par_depth)
        words = self._parameters[places]
        half = words.shape[1] // 2
        return (
            np.ascontiguousarray(words[:, :half]).view(np.int32),
            np.ascontiguousarray(words[:, half:]).view(np.float32),
        )

    def _finished(self, x: Symbols, vector: Vector, outer: tuple[int, ...]) -> Symbols:
        if vector.finish is Finish.REQUANTIZE:
            bias, scale = self._parameter_words(vector, outer)
            return requantized(x.values + bias, scale, vector.zero_point, vector.low, vector.high)
        if vector.finish is Finish.SHIFT:
            x = integers(function(digest("shift", vector.shift), x.values))
        if vector.destination is Memory.ACC:
            return x
        cut = fresh(function(digest("saturate"), x.values))
        return apply_table(
            chosen(x.tables == NOT_A_BYTE, cut, x), clip_table(vector.low, vector.high)
        )

    def _folded(self, x: Symbols, vector: Vector) -> Symbols:
        """Results before their finish; x: [results, elements, lanes]."""
        count = x.values.shape[1]
        match vector.fold:
            case Fold.MAX:
                return largest(x.moved(lambda each: each[:, n]) for n in range(count))
            case Fold.MIN:
                raise TranslationError(f"no rule for the fold MIN: {vector}")
            case Fold.ADD | Fold.SUB if count == 1:
                return x.moved(lambda each: each[:, 0])
            case Fold.ADD:
                return integers(x.values.sum(axis=1))
            case Fold.SUB:
                return integers(x.values[:, 0] - x.values[:, 1:].sum(axis=1))
        m0, m1 = vector.m0, vector.m1
        if vector.multiplier is Multiplier.TAP:
            places = nest(
                vector.tap_address, vector.extent, vector.tap_stride, self.config.tap_depth
            )
            taps = self._words[Memory.TAP].values[places] + low_bits(np.array(m0), 9)
            return integers(balanced(x.values * taps.reshape(x.values.shape)).sum(axis=1))
        index = np.arange(count)[:, None] % vector.extent[0]
        if vector.multiplier is Multiplier.IMMEDIATE:
            return integers(balanced(x.values * np.where(index == 0, m0, m1)).sum(axis=1))
        raised = balanced(x.values + low_bits(np.array((m0, m1)), 9)[index % 2])
        return integers(balanced(raised[:, 1::2] * raised[:, : count - 1 : 2]).sum(axis=1))

    def _windows(self, values: Array, vector: Vector) -> Array:
        """As ``isa.semantics.window_sums``, in the field."""
        extent, levels = vector.extent, vector.reduction_levels
        groups, run = (*extent, 1)[levels], int(np.prod(extent[: levels + 1]))
        lanes = self.config.block
        taps = self._words[Memory.TAP].values[window_taps(vector, self.config)]
        factors = taps + low_bits(np.array(vector.m0), 9)
        products = balanced(values[:, None] * factors)
        columns = products.reshape(-1, run // extent[0], extent[0], 3, lanes).sum(axis=2)
        total = columns[:, :, 2].copy()
        total[:, 1:] += columns[:, :-1, 1]
        total[:, 2:] += columns[:, :-2, 0]
        return total.reshape(len(total), groups, -1, lanes)[:, :, -1].reshape(-1, lanes)
