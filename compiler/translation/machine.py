"""Instructions, one after the other, on symbols instead of bytes.

Which words an instruction touches is said by ``isa.footprint``, what it computes by the manual.
Units, tokens and time play no part: that every run leaves what this order leaves is what the race
checker shows.
"""

from dataclasses import dataclass
from operator import itemgetter

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
from dovetail.isa.requantize import low_bits

from ..errors import TranslationError
from .symbols import (
    BYTES,
    NOT_A_BYTE,
    Array,
    Parameters,
    Symbols,
    apply_table,
    balanced,
    chosen,
    constants,
    digest,
    function,
    integers,
    is_constant,
    joined,
    largest,
    linear,
    multiplied,
    of_pairs,
    requantized,
    saturated,
)

__all__ = ["Machine"]

SYMBOLIC = (Memory.ACT, Memory.WGT, Memory.ACC, Memory.TAP)


@dataclass(frozen=True, slots=True)
class _Sums:
    """How iterations add up: those that are ``first`` discard all before them at their address.

    places: addresses, each once.  whole: whether what was there before is discarded.
    """

    places: Array
    whole: Array
    _order: Array
    _begins: Array
    _counted: Array

    @classmethod
    def of(cls, addresses: Array, first: Array) -> "_Sums":
        order = np.argsort(addresses, kind="stable")
        places, begins, numbers = np.unique(
            addresses[order], return_index=True, return_inverse=True
        )
        steps = np.arange(len(order))
        last = np.full(len(places), -1)
        np.maximum.at(last, numbers, np.where(first[order], steps, -1))
        return cls(places, last >= 0, order, begins, (steps >= last[numbers])[:, None])

    def total(self, x: Array) -> Array:
        """Sums of the rows of ``x`` by address; fewer than 2**33 elements of the field each."""
        return np.add.reduceat(np.where(self._counted, x[self._order], 0), self._begins, axis=0)


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
        order = np.argsort(wgt, kind="stable")
        tiles, begins = np.unique(wgt[order], return_index=True)
        groups = np.split(order, begins[1:])
        weights = self._words[Memory.WGT].moved(lambda x: x[tiles].reshape(-1, lanes, lanes))
        first = np.zeros(len(acc), bool)
        if not gemm.accumulate:
            steps = [gemm.reduction >> level & 1 for level in range(len(extent))]
            first = nest(0, extent, steps, 1 << 62) == 0
        sums = _Sums.of(acc, first)
        held = self._words[Memory.ACC]
        kept = ~sums.whole[:, None]
        inputs = self._words[Memory.ACT]

        def rule(x: Array, factors: Array) -> Array:
            """x: all words of ACT, and below them those of ACC that sums go on from."""
            products = np.zeros((len(act), lanes), np.int64)
            for tile, group in enumerate(groups):
                products[group] = multiplied(x[act[group]], factors[tile].T)
            return sums.total(products) + np.where(kept, x[config.act_depth :], 0)

        words = inputs.moved(lambda x: x[np.unique(act)])
        if is_constant(words).all() and not kept.any():
            # Products of known inputs, such as unit vectors, and weights that may not be known.
            below = np.zeros((len(sums.places), lanes), np.int64)
            known = np.concatenate([inputs.values - gemm.act_zero_point, below])
            added = gemm.weight_offset * rule(known, np.ones_like(weights.values))
            total = linear(weights, known, lambda x, by: rule(by, x), added)
        else:
            before = held.moved(lambda x: x[sums.places])
            factors = weights.values + gemm.weight_offset
            both = joined(inputs, before)
            ones = np.zeros_like(both.values)
            ones[: config.act_depth] = 1
            zero = gemm.act_zero_point
            added = -zero * rule(ones, factors) if zero else np.zeros(1, np.int64)
            if is_constant(weights).all():
                total = linear(both, factors, rule, added)
            else:
                total = integers(rule(both.values, factors) + added)
        self._write(held, sums.places, total)

    def _vector(self, vector: Vector) -> None:
        config, outer = self.config, outer_extent(vector)
        results = int(np.prod(outer))
        words = element_words(vector, config)
        found = self._words[vector.source].moved(lambda x: x[words])
        if is_window(vector):
            result = self._finished(self._windows(found, vector), vector, outer)
        else:
            shape = (results, -1, config.block)
            elements = found.moved(lambda x: x.reshape(shape))
            result = self._of_pairs(elements, vector, outer) or self._finished(
                self._folded(elements, vector), vector, outer
            )
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

    def _of_pairs(self, x: Symbols, vector: Vector, outer: tuple[int, ...]) -> Symbols | None:
        """The requantised result of two bytes, as a table of all pairs; None for others.

        So fixed-point formulas are equal to others that give the same bytes.
        """
        wanted = vector.multiplier in (Multiplier.IMMEDIATE, Multiplier.PAIR)
        if x.values.shape[1] != 2 or vector.fold is not Fold.MAC or not wanted:
            return None
        if vector.finish is not Finish.REQUANTIZE or (x.tables == NOT_A_BYTE).any():
            return None
        parameters = self._parameters_of(vector, outer)
        bias, bits = parameters.bias, parameters.scale.view(np.int32)
        keys = np.stack([bias.reshape(-1), bits.reshape(-1)])
        cases, numbers = np.unique(keys, axis=1, return_inverse=True)
        numbers = numbers.reshape(bias.shape)
        a, b = BYTES[:, None], BYTES
        m0, m1 = vector.m0, vector.m1
        if vector.multiplier is Multiplier.PAIR:
            first, second = low_bits(np.array((m0, m1)), 9)
            sums = (a + first) * (b + second)
        else:
            sums = a * m0 + b * m1
        limits = vector.zero_point, vector.low, vector.high
        found: Symbols | None = None
        for number, case in enumerate(cases.T):
            words = case[:1], case[1:].view(np.float32)
            table = parameters.meaning(sums.astype(np.int32), *words, *limits)
            made = of_pairs(table, x.values[:, 0], x.values[:, 1])
            found = made if found is None else chosen(numbers == number, made, found)
        return found

    def _parameters_of(self, vector: Vector, outer: tuple[int, ...]) -> Parameters:
        """The words of every result: [results, lanes]."""
        places = nest(vector.par_address, outer, vector.par_stride, self.config.par_depth)
        words = self._parameters[places]
        half = words.shape[1] // 2
        return Parameters(
            np.ascontiguousarray(words[:, :half]).view(np.int32),
            np.ascontiguousarray(words[:, half:]).view(np.float32),
            vector.rounding,
        )

    def _finished(self, x: Symbols, vector: Vector, outer: tuple[int, ...]) -> Symbols:
        if vector.finish is Finish.REQUANTIZE:
            parameters = self._parameters_of(vector, outer)
            return requantized(x, parameters, vector.zero_point, vector.low, vector.high)
        if vector.finish is Finish.SHIFT:
            x = integers(function(digest("shift", vector.shift), x.values))
        if vector.destination is Memory.ACC:
            return x
        return saturated(x, vector.low, vector.high)

    def _folded(self, x: Symbols, vector: Vector) -> Symbols:
        """Results before their finish; x: [results, elements, lanes]."""
        count = x.values.shape[1]
        index = np.arange(count)[:, None] % vector.extent[0]
        m0, m1 = vector.m0, vector.m1
        match vector.fold:
            case Fold.MAX:
                return largest(x.moved(itemgetter((slice(None), n))) for n in range(count))
            case Fold.MIN:
                raise TranslationError(f"no rule for the fold MIN: {vector}")
            case Fold.ADD | Fold.SUB if count == 1:
                return x.moved(lambda each: each[:, 0])
            case Fold.ADD:
                return self._products(x, np.ones((count, 1), np.int64))
            case Fold.SUB:
                return self._products(x, np.where(index == 0, 1, -1))
        if vector.multiplier is Multiplier.TAP:
            depth = self.config.tap_depth
            places = nest(vector.tap_address, vector.extent, vector.tap_stride, depth)
            taps = self._words[Memory.TAP].values[places] + low_bits(np.array(m0), 9)
            return self._products(x, taps.reshape(x.values.shape))
        if vector.multiplier is Multiplier.IMMEDIATE:
            return self._products(x, np.where(index == 0, m0, m1))
        raised = balanced(x.values + low_bits(np.array((m0, m1)), 9)[index % 2])
        return integers(balanced(raised[:, 1::2] * raised[:, : count - 1 : 2]).sum(axis=1))

    @staticmethod
    def _products(x: Symbols, factors: Array) -> Symbols:
        """Sums over the elements of their products with ``factors``."""
        factors = np.broadcast_to(factors, x.values.shape)
        return linear(x, factors, lambda each, by: balanced(each * by).sum(axis=1))

    def _windows(self, x: Symbols, vector: Vector) -> Symbols:
        """As ``isa.semantics.window_sums``, in the field; x: [elements, lanes]."""
        taps = self._words[Memory.TAP].values[window_taps(vector, self.config)]
        factors = taps + low_bits(np.array(vector.m0), 9)
        extent, levels = vector.extent, vector.reduction_levels
        groups, run = (*extent, 1)[levels], int(np.prod(extent[: levels + 1]))
        lanes = self.config.block

        def rule(values: Array, factors: Array) -> Array:
            products = balanced(values[:, None] * factors)
            columns = products.reshape(-1, run // extent[0], extent[0], 3, lanes).sum(axis=2)
            total = columns[:, :, 2].copy()
            total[:, 1:] += columns[:, :-1, 1]
            total[:, 2:] += columns[:, :-2, 0]
            return total.reshape(len(total), groups, -1, lanes)[:, :, -1].reshape(-1, lanes)

        return linear(x, factors, rule)
