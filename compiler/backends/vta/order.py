"""The order of the program: a list schedule of all instructions over the four units.

Time is estimated, one instruction after the other; the order is that of the estimated starts.
Whatever the estimates, it keeps every dependence, so the result stays the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instructions import Gemm, Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory, Unit

__all__ = ["order"]

Rank = tuple[int, int]

PIPELINE_CYCLES = 12
"""Estimate: last issue of GEMM or VECTOR to its result."""

SETUP_CYCLES = 4
"""Estimate: acceptance of a LOAD or STORE to its first address."""


def order(
    program: Sequence[Instruction], before: Sequence[frozenset[int]], config: HardwareConfig
) -> list[int]:
    """All of ``program``, whose dependences are ``before``, in the order of expected starts.

    Of several instructions that could start on a unit, the one with the longest way to the end of
    the program goes first; of several LOADs, the one whose data is needed first.
    """
    costs = [_cost(instruction, config) for instruction in program]
    urgency = _urgency(before, costs)
    first_use = _first_use(before)
    ranks = [
        (first_use[i] if instruction.unit is Unit.LOAD else -urgency[i], i)
        for i, instruction in enumerate(program)
    ]
    starts = _schedule(program, before, costs, ranks)
    return sorted(range(len(program)), key=lambda i: (starts[i], i))


@dataclass(frozen=True, slots=True)
class _Cost:
    """Cycles from acceptance until the unit can accept again, and until the result is there."""

    occupied: int
    total: int


def _cost(instruction: Instruction, config: HardwareConfig) -> _Cost:
    match instruction:
        case Gemm(extent=extent) | Vector(extent=extent):
            return _Cost(prod(extent), prod(extent) + PIPELINE_CYCLES)
        case Load(memory=memory):
            cells = instruction.count_z * instruction.rows * instruction.columns
            size = instruction.words * config.word_bytes(memory)
            cycles = _transfer(size, config) if size else cells
        case Store():
            words = instruction.count_x * instruction.count_y * instruction.count_z
            cycles = _transfer(words * config.word_bytes(Memory.ACT), config)
    return _Cost(SETUP_CYCLES + cycles, SETUP_CYCLES + cycles)


def _transfer(size: int, config: HardwareConfig) -> int:
    return config.dram.latency_cycles + size // config.bus_bytes * config.dram.beat_interval_cycles


def _urgency(before: Sequence[frozenset[int]], costs: Sequence[_Cost]) -> list[int]:
    """Cycles from each operation's start to the end of the program, at the least."""
    urgency = [cost.total for cost in costs]
    for index in reversed(range(len(before))):
        for earlier in before[index]:
            urgency[earlier] = max(urgency[earlier], costs[earlier].total + urgency[index])
    return urgency


def _first_use(before: Sequence[frozenset[int]]) -> list[int]:
    """For each operation, the first one that depends on it; itself, when none does."""
    first = list(range(len(before)))
    for index in reversed(range(len(before))):
        for earlier in before[index]:
            first[earlier] = index
    return first


def _schedule(
    program: Sequence[Instruction],
    before: Sequence[frozenset[int]],
    costs: Sequence[_Cost],
    ranks: Sequence[Rank],
) -> list[int]:
    """The estimated start of every operation; on each unit the lowest rank goes first."""
    after: list[list[int]] = [[] for _ in program]
    missing = [len(earlier) for earlier in before]
    for index, earlier in enumerate(before):
        for other in earlier:
            after[other].append(index)
    earliest = [0] * len(program)
    starts = [0] * len(program)
    ready: dict[Unit, list[int]] = {unit: [] for unit in Unit}
    for index, count in enumerate(missing):
        if not count:
            ready[program[index].unit].append(index)
    free = dict.fromkeys(Unit, 0)
    banks = _Banks()
    for _ in program:
        start, index = min(
            _next(unit, waiting, free[unit], earliest, ranks, program, banks)
            for unit, waiting in ready.items()
            if waiting
        )
        unit = program[index].unit
        ready[unit].remove(index)
        starts[index] = start
        free[unit] = start + costs[index].occupied
        banks.hold(program[index], start + costs[index].total)
        for later in after[index]:
            earliest[later] = max(earliest[later], start + costs[index].total)
            missing[later] -= 1
            if not missing[later]:
                ready[program[later].unit].append(later)
    return starts


def _next(
    unit: Unit,
    waiting: Sequence[int],
    free: int,
    earliest: Sequence[int],
    ranks: Sequence[Rank],
    program: Sequence[Instruction],
    banks: "_Banks",
) -> tuple[int, int]:
    """Start and index of what the unit takes next: the lowest rank of those that can start."""
    starts = {i: max(free, earliest[i], banks.free_at(program[i])) for i in waiting}
    first = min(starts.values())
    chosen = min((i for i in waiting if starts[i] == first), key=lambda i: ranks[i])
    return first, chosen


class _Banks:
    """Until when each unit holds each bank."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, int], dict[Unit, int]] = {}

    def free_at(self, instruction: Instruction) -> int:
        """The first cycle in which no other unit holds a bank of ``instruction``."""
        return max(
            (
                until
                for bank in _banks_of(instruction)
                for unit, until in self._until.get(bank, {}).items()
                if unit is not instruction.unit
            ),
            default=0,
        )

    def hold(self, instruction: Instruction, until: int) -> None:
        """Let ``instruction`` hold its banks."""
        for bank in _banks_of(instruction):
            self._until.setdefault(bank, {})[instruction.unit] = until


def _banks_of(instruction: Instruction) -> list[tuple[str, int]]:
    masks = (
        (kind, getattr(instruction, kind, 0))
        for kind in ("act_read_banks", "act_write_banks", "acc_banks")
    )
    return [
        (kind, bank)
        for kind, mask in masks
        for bank in range(mask.bit_length())
        if mask >> bank & 1
    ]
