"""Random legal instructions that touch the same few words again and again."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import (
    element_words,
    nest,
    outer_extent,
    scratchpad_writes,
    with_bank_masks,
    written_memory,
)
from dovetail.isa.instructions import (
    CLASSES,
    Finish,
    Fold,
    Gemm,
    Instruction,
    Load,
    Multiplier,
    Rounding,
    Row,
    Store,
    Vector,
)
from dovetail.isa.memories import Memory

__all__ = ["DATA_BYTES", "DRAM_BASE", "Draw", "roundings_of"]

DRAM_BASE = 0x1000
DATA_BYTES = 1 << 14
"""DRAM that programs read and write freely; parameters and the program lie after it."""
ITERATIONS = 120
LONG_ITERATIONS = 1500
LONG = 0.03
"""Share of loop nests that may have ``LONG_ITERATIONS``."""
EDGE = 0.04
"""Share of values that are an end of their range, or next to 0."""
EXCESS = 0.25
"""Share of instructions that may name more banks than they touch, or than there are."""
NIBBLES = 0.4
"""Share of LOADs that read short forms of words, where there are any."""
ROWS = 0.25
"""Share of VECTORs that write parameters of rows."""
TRANSFER_BYTES = 4096
MOST_WORD_BYTES = 1 << 12
"""No word of a memory is longer, and it is a multiple of all that addresses need."""
LONGEST = 0.01
"""Share of loop nests of one level with as many iterations as there can be."""
FIELDS = {field.name: field for cls in CLASSES for field in cls.format.fields}
MASKS = ("act_read_banks", "act_write_banks", "acc_banks")


def roundings_of(config: HardwareConfig) -> tuple[Rounding, ...]:
    """The roundings of a configuration."""
    there = {Rounding.FIXED: config.fixed_rounding, Rounding.WIDE: config.row_parameters}
    return tuple(each for each in Rounding if there.get(each, True))


class Draw:
    """Random instructions of one configuration; every one is legal and has a defined result."""

    def __init__(
        self, config: HardwareConfig, rng: np.random.Generator, roundings: Sequence[Rounding]
    ) -> None:
        """roundings: those that its VECTORs may have."""
        self.config, self.rng, self.roundings = config, rng, roundings
        self.spans = {
            memory: min(config.depth(memory), 64 if memory is not Memory.TAB else 512)
            for memory in Memory
        }

    def instruction(self) -> Instruction:
        """One of the four, with all banks it needs in its masks, sometimes more."""
        drawn = (self.load, self.gemm, self.vector, self.store)[self.integer(0, 3)]()
        masked = with_bank_masks(drawn, self.config)
        if self.rng.random() >= EXCESS:
            return masked
        more = {
            name: getattr(masked, name) | self.any(name)
            for name in MASKS
            if hasattr(masked, name) and self.rng.random() < 0.6
        }
        return replace(masked, **more)  # type: ignore[arg-type]

    def integer(self, low: int, high: int) -> int:
        """Uniform, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def edge(self, name: str, usual: int, share: float = EDGE) -> int:
        """``usual``, or at times another value that the field ``name`` can have."""
        if self.rng.random() >= share:
            return usual
        field = FIELDS[name]
        return (field.low, field.high, max(field.low, -1), 0, 1)[self.integer(0, 4)]

    def any(self, name: str) -> int:
        """Any value of the field ``name``, ends of its range more often than others."""
        field = FIELDS[name]
        return self.edge(name, self.integer(field.low, field.high))

    def address(self, memory: Memory) -> int:
        """Mostly in a small span around the start of a bank, so that addresses meet, and wrap."""
        return self.edge("sram_address", self._near_address(memory))

    def _near_address(self, memory: Memory) -> int:
        span = self.spans[memory]
        if self.rng.random() < 0.1:
            return self.integer(0, self.config.depth(memory) - 1)
        bank = self.config.bank_words(memory) * self.integer(0, self.config.banks(memory) - 1)
        return (bank + self.integer(-span // 4, span)) % self.config.depth(memory)

    def extents(self, levels: int) -> tuple[int, ...]:
        """Extents of ``levels`` levels; mostly few iterations."""
        if self.rng.random() < LONGEST:
            place = self.integer(0, levels - 1)
            return tuple(FIELDS["extent0"].high if i == place else 1 for i in range(levels))
        long = self.rng.random() < LONG
        limit = self.integer(1, LONG_ITERATIONS if long else ITERATIONS)
        most = 300 if long else 9
        extents, product = [1] * levels, 1
        for level in self.rng.permutation(levels):
            extents[level] = self.integer(1, max(1, min(most, limit // product)))
            product *= extents[level]
        return tuple(extents)

    def strides(self, count: int, name: str = "act_stride0") -> tuple[int, ...]:
        """``count`` strides, often 0, at times negative; ``name``: a field as wide."""
        return tuple(
            self.edge(name, 0 if self.rng.random() < 0.3 else self.integer(-9, 9))
            for _ in range(count)
        )

    def free_stride(self, stride: int, count: int) -> int:
        """A stride in DRAM: any at times, where there is one row, so that it leads nowhere."""
        if count > 1 or self.rng.random() >= 2 * EDGE:
            return stride
        field = FIELDS["dram_stride_y"]
        return (field.low, field.high + 1 - MOST_WORD_BYTES)[self.integer(0, 1)]

    def block(self, size: int, base: int, room: int) -> tuple[int, int, int, int, int, int]:
        """Counts x, y, z, address and strides of words of ``size`` bytes within ``room`` bytes from
        ``base``.
        """
        while True:
            x, y, z = self.integer(1, 24), self.integer(1, 4), self.integer(1, 3)
            stride_y, stride_z = size * self.integer(-30, 30), size * self.integer(-60, 60)
            corners = [
                a * stride_y * (y - 1) + b * stride_z * (z - 1) for a in (0, 1) for b in (0, 1)
            ]
            low, high = min(corners), max(corners) + x * size
            if high - low <= room and x * y * z * size <= TRANSFER_BYTES:
                start = self.integer(0, (room - (high - low)) // size) * size - low
                return x, y, z, base + start, stride_y, stride_z

    def load(self) -> Load:
        """A LOAD to any memory; to PAR from where DRAM holds parameters."""
        config = self.config
        memory = list(Memory)[self.integer(0, len(Memory) - 1)]
        nibbles = memory in config.short_memories and self.rng.random() < NIBBLES
        size = config.short_bytes(memory) if nibbles else config.word_bytes(memory)
        # Of a table in its short form several words come in a beat.
        rows = config.bus_bytes // size if nibbles and memory is Memory.TAB else 1
        size *= rows
        base, room = DRAM_BASE, DATA_BYTES
        scales = nibbles and memory is Memory.PAR
        if memory is Memory.PAR:
            size = config.word_bytes(memory)
            base, room = DRAM_BASE + DATA_BYTES, size * config.par_depth
        while True:
            x, y, z, address, stride_y, stride_z = self.block(size, base, room)
            if scales:  # behind the biases of a word; with a gap, two of them are a word
                x, address = 1, address + size // 2
            pads = [self.integer(0, 3) if self.rng.random() < 0.4 else 0 for _ in range(4)]
            if self.rng.random() < EDGE:  # with few words, so that all fit
                x, y, z = min(x, 2), 1, 1
                pads[self.integer(0, 3)] = FIELDS["pad_x_before"].high
            if self.rng.random() < 0.1:
                x, pads = self.integer(0, 1) * x, [self.integer(1, 4) for _ in range(4)]
                y = 0 if x else y
            load = Load(
                memory=memory,
                sram_address=self.address(memory) // rows * rows,
                dram_address=address,
                count_x=x * rows,
                count_y=y,
                count_z=z,
                dram_stride_y=self.free_stride(stride_y, y),
                dram_stride_z=self.free_stride(stride_z, z),
                sram_stride_y=self.edge("sram_stride_y", self.integer(-40, 40)) // rows * rows,
                sram_stride_z=self.edge("sram_stride_z", self.integer(-120, 120)) // rows * rows,
                pad_x_before=pads[0] // rows * rows,
                pad_x_after=pads[1],
                pad_y_before=pads[2],
                pad_y_after=pads[3],
                pad_value=self.integer(0, 127) if memory is Memory.PAR else self.integer(-128, 127),
                nibbles=nibbles,
                gap=self.integer(0, 3) if scales else 0,
            )
            if memory is Memory.ACT and not any(pads[:2]) and x and self.rng.random() < 0.5:
                load = self.windows(load)
            cells = scratchpad_writes(load, config)[0].addresses
            if len(cells) and len(np.unique(cells)) == len(cells):
                return load

    def windows(self, load: Load) -> Load:
        """``load`` with a step; its rows lie anywhere in the data that programs share."""
        bus = self.config.bus_bytes
        step = self.integer(bus, min(255, 2 * self.config.block + 3))
        step = 255 if self.rng.random() < EDGE else step
        length = (load.count_x - 1) * step + self.config.block
        while True:
            stride_y, stride_z = bus * self.integer(-20, 20), bus * self.integer(-40, 40)
            corners = [
                a * stride_y * (load.count_y - 1) + b * stride_z * (load.count_z - 1)
                for a in (0, 1)
                for b in (0, 1)
            ]
            low, high = min(corners), max(corners) + length
            if high - low <= DATA_BYTES:
                break
        return replace(
            load,
            dram_address=DRAM_BASE + self.integer(0, DATA_BYTES - (high - low)) - low,
            dram_stride_y=self.free_stride(stride_y, load.count_y),
            dram_stride_z=self.free_stride(stride_z, load.count_z),
            step=step,
            gap=self.edge("gap", self.integer(0, 3) if self.rng.random() < 0.5 else 0, 0.15),
            row_first=self.edge(
                "row_first", self.integer(0, 20) if self.rng.random() < 0.5 else 0, 0.15
            ),
            row_end=self.edge("row_end", self.integer(0, length + 9), 0.15),
        )

    def store(self) -> Store:
        """A STORE into the data that programs share."""
        x, y, z, address, stride_y, stride_z = self.block(
            self.config.word_bytes(Memory.ACT), DRAM_BASE, DATA_BYTES
        )
        return Store(
            dram_address=address,
            sram_address=self.address(Memory.ACT),
            count_x=x,
            count_y=y,
            count_z=z,
            dram_stride_y=self.free_stride(stride_y, y),
            dram_stride_z=self.free_stride(stride_z, z),
            sram_stride_y=self.edge("sram_stride_y", self.integer(-40, 40)),
            sram_stride_z=self.edge("sram_stride_z", self.integer(-120, 120)),
        )

    def gemm(self) -> Gemm:
        """Any loop nest; every hundredth is a long matrix product."""
        if self.rng.random() < 0.01:
            return self._product()
        extent = self.extents(6)
        reduction = self.integer(0, 63)
        acc = list(self.strides(6))
        if self.rng.random() < 0.7:
            acc = [0 if reduction >> level & 1 else stride for level, stride in enumerate(acc)]
        return Gemm(
            act_address=self.address(Memory.ACT),
            wgt_address=self.address(Memory.WGT),
            acc_address=self.address(Memory.ACC),
            extent=extent,
            act_stride=self.strides(6),
            wgt_stride=self.strides(6),
            acc_stride=tuple(acc),
            reduction=reduction,
            accumulate=self.rng.random() < 0.3,
            weight_offset=self.offset("weight_offset"),
            act_zero_point=self.offset("act_zero_point"),
        )

    def offset(self, name: str) -> int:
        """A number added to weights or taken from inputs, mostly 0."""
        return self.any(name) if self.rng.random() < 0.3 else 0

    def _product(self) -> Gemm:
        """Rows by columns by a long reduction, every result in a word of its own."""
        words = self.config.acc_depth // 2
        columns = self.integer(1, 2)
        rows = self.integer(1, max(1, words // columns))
        return Gemm(
            act_address=self.address(Memory.ACT),
            wgt_address=self.address(Memory.WGT),
            acc_address=self.address(Memory.ACC),
            extent=(self.integer(1, 16), self.integer(1, 20), rows, columns, 1, 1),
            act_stride=(1, self.integer(1, 20), self.integer(-3, 3), 0, 0, 0),
            wgt_stride=(1, self.integer(-20, 20), 0, self.integer(-9, 9), 0, 0),
            acc_stride=(0, 0, 1, rows, 0, 0),
            reduction=0b11,
            accumulate=self.rng.random() < 0.3,
            weight_offset=self.offset("weight_offset"),
            act_zero_point=self.offset("act_zero_point"),
        )

    def vector(self) -> Vector:
        """Any fold, finish and look-up that reads no word after writing it."""
        finishes = [it for it in Finish if self.config.finish or it is not Finish.CUSTOM]
        tables = self.config.tab_depth // 256
        while True:
            fold = Fold.MAC if self.rng.random() < 0.3 else Fold(self.integer(0, len(Fold) - 1))
            multiplier = Multiplier(self.integer(0, 3)) if fold is Fold.MAC else Multiplier.TAP
            extent = self.extents(5)
            if multiplier is Multiplier.PAIR and self.rng.random() < 0.5:
                extent = (2, *extent[1:])
            source, destination = ((Memory.ACT, Memory.ACC)[self.integer(0, 1)] for _ in range(2))
            limits = sorted(self.any("low") for _ in range(2))
            wide = self.rng.random() < 0.6
            roundings = [each for each in self.roundings if each is not Rounding.WIDE]
            if destination is Memory.ACC:
                roundings = list(self.roundings)
            vector = Vector(
                source=source,
                destination=destination,
                source_address=self.address(source),
                destination_address=self.address(destination),
                extent=extent,
                source_stride=self.strides(5),
                destination_stride=self.strides(4),
                reduction_levels=self.integer(1, 5),
                fold=fold,
                multiplier=multiplier,
                finish=finishes[self.integer(0, len(finishes) - 1)],
                lookup=destination is Memory.ACT and self.rng.random() < 0.3,
                rounding=roundings[self.integer(0, len(roundings) - 1)],
                zero_point=self.any("zero_point"),
                low=-128 if wide else limits[0],
                high=127 if wide else limits[1],
                shift=self.any("shift"),
                m0=self.any("m0"),
                m1=self.any("m1"),
                par_address=self.edge("par_address", self.integer(0, self.config.par_depth - 1)),
                par_stride=self.strides(4, "par_stride1"),
                tap_address=self.edge("tap_address", self.integer(0, self.config.tap_depth - 1)),
                tap_stride=self.strides(5, "tap_stride0"),
                tab_address=256 * (15 if self.rng.random() < EDGE else self.integer(0, tables - 1)),
                window_skip=self.integer(0, 3),
                wide_window=bool(self.integer(0, 1)),
                row=self.row(),
            )
            if not _reads_own_writes(vector, self.config):
                return vector

    def row(self) -> Row:
        """Parameters of rows, at times, where there are such."""
        rows = self.config.row_parameters and self.rng.random() < ROWS
        return Row(self.integer(1, len(Row) - 1)) if rows else Row.NONE


def _reads_own_writes(vector: Vector, config: HardwareConfig) -> bool:
    """True if a word is read after an earlier result of the same instruction was written to it."""
    source = vector.source if vector.row is Row.NONE else Memory.PAR
    largest = vector.row is Row.LESS and vector.fold is Fold.MAX
    if source is not written_memory(vector) or largest:
        return False
    depth = config.depth(source)
    outer = outer_extent(vector)
    writes = nest(vector.destination_address, outer, vector.destination_stride, depth)
    reads = element_words(vector, config)
    if vector.row is not Row.NONE:
        reads = nest(vector.par_address, outer, vector.par_stride, depth)
    first = np.full(depth, len(writes))
    np.minimum.at(first, writes, np.arange(len(writes)))
    result = np.arange(len(reads)) // (len(reads) // len(writes))
    return bool((first[reads] < result).any())
