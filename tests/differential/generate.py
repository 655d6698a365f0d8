"""Random legal programs without races: every instruction, every unit, every memory.

Instructions are drawn with random addresses in small memories, so that most touch what others
touch; then tokens are inserted until every conflicting pair on different units is ordered.  Nothing
here is shared with the compiler.
"""

from dataclasses import dataclass, replace

import numpy as np

from dovetail.isa.config import INSTRUCTION_BYTES, DramTiming, HardwareConfig
from dovetail.isa.footprint import (
    dram_rows,
    nest,
    outer_extent,
    scratchpad_reads,
    scratchpad_writes,
    with_bank_masks,
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
    encode,
)
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.state import MachineState

__all__ = ["Case", "generate", "order_with_tokens"]

DRAM_BASE = 0x1000
DATA_BYTES = 1 << 14
"""DRAM that programs read and write freely; parameters and the program lie after it."""
ITERATIONS = 120
UNITS = (Unit.LOAD, Unit.GEMM, Unit.VECTOR, Unit.STORE)


@dataclass(frozen=True, slots=True)
class Case:
    """A program and everything around it: the same for every backend."""

    config: HardwareConfig
    instructions: tuple[Instruction, ...]
    state: MachineState
    timing: DramTiming

    @property
    def program_address(self) -> int:
        """Byte address of instruction 0."""
        used = DATA_BYTES + 8 * self.config.block * self.config.par_depth
        return DRAM_BASE + -(-used // INSTRUCTION_BYTES) * INSTRUCTION_BYTES

    @property
    def window(self) -> tuple[int, int]:
        """First and last byte address a program may touch."""
        return DRAM_BASE, DRAM_BASE + len(self.state.dram) - 1

    def initial(self) -> MachineState:
        """A copy of the state before the run, the program in DRAM."""
        source = self.state
        copy = MachineState.zeros(self.config, source.dram.copy(), source.dram_base)
        for memory in Memory:
            words = source.words(memory)
            copy.write_words(memory, np.arange(len(words)), words)
        code = b"".join(encode(instruction) for instruction in self.instructions)
        start = self.program_address - DRAM_BASE
        copy.dram[start : start + len(code)] = np.frombuffer(code, np.uint8)
        return copy


class _Draw:
    """Random instructions of one configuration."""

    def __init__(self, config: HardwareConfig, rng: np.random.Generator) -> None:
        self.config, self.rng = config, rng
        self.spans = {
            memory: min(config.depth(memory), 64 if memory is not Memory.TAB else 512)
            for memory in Memory
        }

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def address(self, memory: Memory) -> int:
        """Mostly in a small span around address 0, so that addresses meet, and wrap."""
        span = self.spans[memory]
        if self.rng.random() < 0.1:
            return self.integer(0, self.config.depth(memory) - 1)
        bank = self.config.bank_words(memory) * self.integer(0, self.config.banks(memory) - 1)
        return (bank + self.integer(-span // 4, span)) % self.config.depth(memory)

    def extents(self, levels: int) -> tuple[int, ...]:
        """Extents of ``levels`` levels, with at most ``ITERATIONS`` iterations, often few."""
        limit = self.integer(1, ITERATIONS)
        extents, product = [1] * levels, 1
        for level in self.rng.permutation(levels):
            extents[level] = self.integer(1, max(1, min(9, limit // product)))
            product *= extents[level]
        return tuple(extents)

    def strides(self, count: int, most: int = 9) -> tuple[int, ...]:
        return tuple(
            0 if self.rng.random() < 0.3 else self.integer(-most, most) for _ in range(count)
        )

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
            if high - low <= room and x * y * z * size <= 4096:
                start = self.integer(0, (room - (high - low)) // size) * size - low
                return x, y, z, base + start, stride_y, stride_z

    def load(self) -> Load:
        config = self.config
        memory = list(Memory)[self.integer(0, len(Memory) - 1)]
        size = config.word_bytes(memory)
        base, room = DRAM_BASE, DATA_BYTES
        if memory is Memory.PAR:
            base, room = DRAM_BASE + DATA_BYTES, size * config.par_depth
        while True:
            x, y, z, address, stride_y, stride_z = self.block(size, base, room)
            pads = [self.integer(0, 3) if self.rng.random() < 0.4 else 0 for _ in range(4)]
            if self.rng.random() < 0.1:
                x, pads = self.integer(0, 1) * x, [self.integer(1, 4) for _ in range(4)]
                y = 0 if x else y
            load = Load(
                memory=memory,
                sram_address=self.address(memory),
                dram_address=address,
                count_x=x,
                count_y=y,
                count_z=z,
                dram_stride_y=stride_y,
                dram_stride_z=stride_z,
                sram_stride_y=self.integer(-40, 40),
                sram_stride_z=self.integer(-120, 120),
                pad_x_before=pads[0],
                pad_x_after=pads[1],
                pad_y_before=pads[2],
                pad_y_after=pads[3],
                pad_value=self.integer(0, 127) if memory is Memory.PAR else self.integer(-128, 127),
            )
            cells = scratchpad_writes(load, config)[0].addresses
            if len(cells) and len(np.unique(cells)) == len(cells):
                return load

    def store(self) -> Store:
        x, y, z, address, stride_y, stride_z = self.block(
            self.config.word_bytes(Memory.ACT), DRAM_BASE, DATA_BYTES
        )
        return Store(
            dram_address=address,
            sram_address=self.address(Memory.ACT),
            count_x=x,
            count_y=y,
            count_z=z,
            dram_stride_y=stride_y,
            dram_stride_z=stride_z,
            sram_stride_y=self.integer(-40, 40),
            sram_stride_z=self.integer(-120, 120),
        )

    def gemm(self) -> Gemm:
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
        )

    def vector(self) -> Vector:
        while True:
            fold = Fold(self.integer(0, len(Fold) - 1))
            source, destination = ((Memory.ACT, Memory.ACC)[self.integer(0, 1)] for _ in range(2))
            limits = sorted(self.integer(-128, 127) for _ in range(2))
            wide = self.rng.random() < 0.6
            vector = Vector(
                source=source,
                destination=destination,
                source_address=self.address(source),
                destination_address=self.address(destination),
                extent=self.extents(5),
                source_stride=self.strides(5),
                destination_stride=self.strides(4),
                reduction_levels=self.integer(1, 5),
                fold=fold,
                multiplier=Multiplier(self.integer(0, 2)) if fold is Fold.MAC else Multiplier.TAP,
                finish=Finish(self.integer(0, 2)),
                lookup=destination is Memory.ACT and self.rng.random() < 0.3,
                zero_point=self.integer(-128, 127),
                low=-128 if wide else limits[0],
                high=127 if wide else limits[1],
                shift=self.integer(0, 31),
                m0=self.integer(-(1 << 23), (1 << 23) - 1),
                m1=self.integer(-(1 << 23), (1 << 23) - 1),
                par_address=self.integer(0, self.config.par_depth - 1),
                par_stride=self.strides(4),
                tap_address=self.integer(0, self.config.tap_depth - 1),
                tap_stride=self.strides(5),
                tab_address=256 * self.integer(0, self.config.tab_depth // 256 - 1),
            )
            if not _reads_own_writes(vector, self.config):
                return vector

    def instruction(self) -> Instruction:
        return (self.load, self.gemm, self.vector, self.store)[self.integer(0, 3)]()


def _reads_own_writes(vector: Vector, config: HardwareConfig) -> bool:
    """Whether a word is read after an earlier result of the same instruction was written to it."""
    if vector.source is not vector.destination:
        return False
    depth = config.depth(vector.source)
    outer = outer_extent(vector)
    writes = nest(vector.destination_address, outer, vector.destination_stride, depth)
    reads = nest(vector.source_address, vector.extent, vector.source_stride, depth)
    first = np.full(depth, len(writes))
    np.minimum.at(first, writes, np.arange(len(writes)))
    result = np.arange(len(reads)) // (len(reads) // len(writes))
    return bool((first[reads] < result).any())


def _touched(instruction: Instruction, config: HardwareConfig) -> tuple[set[int], set[int]]:
    """Everything read and written, as numbers that are unique over all memories and DRAM bytes."""
    sets: list[set[int]] = []
    for touches in (
        scratchpad_reads(instruction, config),
        scratchpad_writes(instruction, config),
    ):
        places: set[int] = set()
        for touch in touches:
            places |= {touch.memory.code << 40 | int(a) for a in np.unique(touch.addresses)}
        sets.append(places)
    if isinstance(instruction, Load | Store):
        bytes_touched = {
            1 << 50 | byte
            for start, size in dram_rows(instruction, config)
            for byte in range(start, start + size, config.bus_bytes)
        }
        sets[isinstance(instruction, Store)] |= bytes_touched
    return sets[0], sets[1]


def order_with_tokens(
    instructions: list[Instruction], config: HardwareConfig, rng: np.random.Generator
) -> list[Instruction]:
    """``instructions`` with tokens that order every conflicting pair of different units, and a few
    more.
    """
    touched = [_touched(instruction, config) for instruction in instructions]
    waits: list[set[Unit]] = [set() for _ in instructions]
    posts: list[set[Unit]] = [set() for _ in instructions]
    # known[i][u]: the last instruction of unit u that has certainly ended when i starts.
    known: list[dict[Unit, int]] = []
    last_of: dict[Unit, int] = {}
    last_post: dict[tuple[Unit, Unit], int] = {}
    for now, instruction in enumerate(instructions):
        unit = instruction.unit
        clock = dict(known[last_of[unit]]) if unit in last_of else {}
        reads, writes = touched[now]
        for other in UNITS:
            if other is unit or other not in last_of:
                continue
            needed = -1
            for before in range(now):
                if instructions[before].unit is other:
                    earlier_reads, earlier_writes = touched[before]
                    if earlier_writes & (reads | writes) or earlier_reads & writes:
                        needed = before
            if rng.random() < 0.05:
                needed = max(needed, last_of[other])
            if needed <= clock.get(other, -1):
                continue
            later = [
                index
                for index in range(needed, now)
                if instructions[index].unit is other and index > last_post.get((other, unit), -1)
            ]
            chosen = later[0] if rng.random() < 0.8 else later[int(rng.integers(len(later)))]
            posts[chosen].add(unit)
            waits[now].add(other)
            last_post[other, unit] = chosen
            for known_unit, index in known[chosen].items():
                clock[known_unit] = max(clock.get(known_unit, -1), index)
            clock[other] = max(clock.get(other, -1), chosen)
        known.append(clock)
        last_of[unit] = now
    return [
        replace(instruction, wait=frozenset(wait), post=frozenset(post))
        for instruction, wait, post in zip(instructions, waits, posts, strict=True)
    ]


def ends(instructions: list[Instruction], config: HardwareConfig) -> bool:
    """Whether the program runs to its end: tokens, their limit, and the length of the queues."""
    queues: dict[Unit, list[Instruction]] = {unit: [] for unit in UNITS}
    tokens: dict[tuple[Unit, Unit], int] = {}
    rest = list(instructions)
    while rest or any(queues.values()):
        moved = False
        while rest and len(queues[rest[0].unit]) < config.queue_depth:
            queues[rest[0].unit].append(rest.pop(0))
            moved = True
        for unit, queue in queues.items():
            if not queue:
                continue
            head = queue[0]
            there = all(tokens.get((other, unit), 0) for other in head.wait)
            room = all(tokens.get((unit, other), 0) < config.token_max for other in head.post)
            if there and room:
                queue.pop(0)
                for other in head.wait:
                    tokens[other, unit] -= 1
                for other in head.post:
                    tokens[unit, other] = tokens.get((unit, other), 0) + 1
                moved = True
        if not moved:
            return False
    return True


def _random_timing(rng: np.random.Generator) -> DramTiming:
    return DramTiming(
        latency_cycles=int(rng.choice([1, 2, 7, 24, 90])),
        beat_interval_cycles=int(rng.choice([1, 1, 2, 5])),
        queue_bursts=int(rng.choice([1, 2, 4, 8, 16])),
        turnaround_cycles=int(rng.choice([0, 1, 4, 13])),
        response_cycles=int(rng.choice([1, 2, 4, 20])),
    )


def _random_state(config: HardwareConfig, rng: np.random.Generator, count: int) -> MachineState:
    par_words = 2 * config.par_depth
    bias = rng.integers(-(1 << 31), 1 << 31, (par_words, config.block), dtype=np.int64)
    small = rng.random((par_words, config.block)) < 0.7
    bias = np.where(small, bias >> 16, bias).astype(np.int32)
    exponents = np.where(
        rng.random((par_words, config.block)) < 0.8,
        rng.uniform(-24, 0, (par_words, config.block)),
        rng.uniform(-120, 120, (par_words, config.block)),
    )
    scale = np.exp2(exponents).astype(np.float32)
    halves = rng.random((par_words, config.block)) < 0.2
    scale[halves] = np.exp2(np.floor(exponents[halves])).astype(np.float32)
    words = np.concatenate([bias.view(np.uint8), scale.view(np.uint8)], axis=1)
    size = DATA_BYTES + 8 * config.block * config.par_depth + INSTRUCTION_BYTES * (count + 1)
    dram = rng.integers(0, 256, size, dtype=np.uint8)
    in_dram = words[config.par_depth :].reshape(-1)
    dram[DATA_BYTES : DATA_BYTES + len(in_dram)] = in_dram
    state = MachineState.zeros(config, dram, DRAM_BASE)
    for memory in Memory:
        shape = (config.depth(memory), config.word_bytes(memory))
        content = rng.integers(0, 256, shape, dtype=np.uint8)
        if memory is Memory.PAR:
            content = words[: config.par_depth]
        state.write_words(memory, np.arange(shape[0]), content)
    return state


def generate(config: HardwareConfig, seed: int, number: int) -> Case:
    """Case ``number`` of ``seed``: always the same."""
    rng = np.random.default_rng((seed, number))
    while True:
        draw = _Draw(config, rng)
        count = int(rng.integers(4, 60))
        plain = [with_bank_masks(draw.instruction(), config) for _ in range(count)]
        instructions = order_with_tokens(plain, config, rng)
        if ends(instructions, config):
            break
    state = _random_state(config, rng, count)
    return Case(config, tuple(instructions), state, _random_timing(rng))
