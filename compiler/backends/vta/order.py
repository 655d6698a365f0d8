"""The order of the program: a list schedule of all instructions over the four units.

Time is estimated, one instruction after the other; the order is that of the estimated starts.
Whatever the estimates, it keeps every dependence, so the result stays the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.footprint import row_span
from dovetail.isa.instructions import Gemm, Instruction, Load, Store, Vector
from dovetail.isa.latency import compute_latency, issue_cycles
from dovetail.isa.memories import Unit

from .model import SETUP_CYCLES, row_cycles

__all__ = ["Ordered", "order"]

Rank = tuple[int, int]

INTERRUPTED = 64
"""Estimate: cycles of a transfer into which all instructions that are due to be fetched fall; they
may fall into the pauses between shorter ones.
"""

AT_ONCE = -(1 << 60)
"""The lowest rank."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """places: the instructions in their new order.  banks: of each instruction, in the order in
    which they were given, the bank of ACC of its tile.  before: its dependences, those included
    that come from tiles in one bank.
    """

    places: list[int]
    banks: list[int]
    before: list[frozenset[int]]


def order(
    program: Sequence[Instruction],
    before: Sequence[frozenset[int]],
    tiles: Sequence[int | None],
    config: HardwareConfig,
    banks: int | None = None,
) -> Ordered:
    """All of ``program``, whose dependences are ``before``, in the order of expected starts.

    Of several instructions that could start on a unit, the one with the longest way to the end of
    the program goes first; of several LOADs, the one whose data is needed first; but before all
    others goes what empties a bank of ACC.
    tiles: of each instruction the tile whose sums it makes or reads, which get a bank of ACC.
    banks: of ACC, if not all.
    """
    costs = [_cost(instruction, config) for instruction in program]
    urgency = _urgency(before, costs)
    first_use = _first_use(before)
    ranks = []
    for index, instruction in enumerate(program):
        rank = first_use[index] if instruction.unit is Unit.LOAD else -urgency[index]
        if instruction.unit is Unit.VECTOR and tiles[index] is not None:
            rank = AT_ONCE
        ranks.append((rank, index))
    schedule = _Schedule(program, before, costs, ranks, tiles, banks or config.acc_banks, config)
    schedule.run()
    starts = schedule.starts
    places = sorted(range(len(program)), key=lambda i: (starts[i], i))
    before = [frozenset(each) for each in schedule.before]
    return Ordered(places, schedule.banks, before)


@dataclass(frozen=True, slots=True)
class _Cost:
    """Cycles from acceptance until the unit can accept again, and until the result is there.

    moved, bursts: cycles in which DRAM works for it alone, and its bursts.
    """

    occupied: int
    total: int
    moved: int = 0
    bursts: float = 0


def _cost(instruction: Instruction, config: HardwareConfig) -> _Cost:
    match instruction:
        case Gemm(extent=extent):
            return _compute(Unit.GEMM, prod(extent), config)
        case Vector(extent=extent):
            return _compute(Unit.VECTOR, prod(extent), config)
        case Load():
            cells = instruction.count_z * instruction.rows * instruction.columns
            if not instruction.words:
                return _Cost(SETUP_CYCLES + cells, SETUP_CYCLES + cells)
            return _transfer(instruction, 0, config)
        case Store():
            return _transfer(instruction, config.dram.response_cycles, config)


def _compute(unit: Unit, iterations: int, config: HardwareConfig) -> _Cost:
    cycles = iterations * issue_cycles(config)[unit]
    return _Cost(cycles, cycles + compute_latency(config)[unit] + 1)


def _transfer(instruction: Load | Store, after: int, config: HardwareConfig) -> _Cost:
    """``after``: cycles from the last beat to the end."""
    before, size = row_span(instruction, config)
    rows, longest = instruction.count_z * instruction.count_y, config.burst_bytes
    apart = [
        stride
        for count, stride in (
            (instruction.count_y, instruction.dram_stride_y),
            (instruction.count_z, instruction.dram_stride_z),
        )
        if count > 1
    ]
    start = None
    if not any(stride % longest for stride in apart):
        start = (instruction.dram_address - before) % longest
    cycles, bursts = row_cycles(size, config, start)
    moved = round(rows * cycles)
    total = SETUP_CYCLES + config.dram.latency_cycles + moved + after
    return _Cost(total, total, moved, rows * bursts)


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


class _Schedule:
    """Instructions getting their estimated starts, one after the other, and tiles their banks.

    A tile gets a bank when everything before it that it depends on has a start: so it will leave
    the bank again, whatever other tiles do, and there is always a next instruction.
    """

    def __init__(
        self,
        program: Sequence[Instruction],
        before: Sequence[frozenset[int]],
        costs: Sequence[_Cost],
        ranks: Sequence[Rank],
        tiles: Sequence[int | None],
        banks: int,
        config: HardwareConfig,
    ) -> None:
        self.starts = [0] * len(program)
        self.banks = [0] * len(program)
        self.before = [set(each) for each in before]
        self._program, self._costs, self._ranks = program, costs, ranks
        self._earliest = [0] * len(program)
        self._missing = [len(each) for each in before]
        self._after: list[list[int]] = [[] for _ in program]
        for index, each in enumerate(before):
            for other in each:
                self._after[other].append(index)
        self._free = dict.fromkeys(Unit, _first_fetch(config))
        self._dram = _Dram(config)
        self._act_banks = _Banks()
        self._acc = _Tiles(tiles, before, banks)
        self._ready: dict[Unit, list[int]] = {unit: [] for unit in Unit}
        for index, count in enumerate(self._missing):
            if not count:
                self._ready[program[index].unit].append(index)

    def run(self) -> None:
        """Give every instruction its start."""
        for _ in self._program:
            start, index = min(
                candidate
                for unit, waiting in self._ready.items()
                if waiting and (candidate := self._next(unit, waiting)) is not None
            )
            self._take(start, index)

    def _next(self, unit: Unit, waiting: Sequence[int]) -> tuple[int, int] | None:
        """Start and index of what the unit takes next: the lowest rank of those that can start."""
        free = self._free[unit]
        best: tuple[int, Rank] | None = None
        for index in waiting:
            instruction = self._program[index]
            bank_free = self._acc.free_at(index, instruction.unit)
            if bank_free is None:
                continue
            start = max(free, self._earliest[index], bank_free)
            if best is not None and start > best[0]:
                continue
            start = max(start, self._act_banks.free_at(instruction))
            candidate = start, self._ranks[index]
            if best is None or candidate < best:
                best = candidate
        return best and (best[0], best[1][1])

    def _take(self, start: int, index: int) -> None:
        instruction, cost = self._program[index], self._costs[index]
        late = self._dram.take(instruction.unit, start, cost)
        end = start + cost.total + late
        self._ready[instruction.unit].remove(index)
        self.starts[index] = start
        self._free[instruction.unit] = start + cost.occupied + late
        self._act_banks.hold(instruction, end)
        self.banks[index], old = self._acc.take(index, instruction.unit, end)
        self.before[index] |= old
        for later in self._after[index]:
            self._earliest[later] = max(self._earliest[later], end)
            self._missing[later] -= 1
            self._acc.started(index, later)
            if not self._missing[later]:
                self._ready[self._program[later].unit].append(later)


class _Tiles:
    """Banks of ACC, and the tiles in them."""

    def __init__(
        self, tiles: Sequence[int | None], before: Sequence[frozenset[int]], banks: int
    ) -> None:
        self._tiles = tiles
        self._members: dict[int, list[int]] = {}
        for index, tile in enumerate(tiles):
            if tile is not None:
                self._members.setdefault(tile, []).append(index)
        self._around: dict[int, list[int]] = {}
        """The tiles whose instructions come before and after an instruction, or are the same."""
        self._open = dict.fromkeys(self._members, 0)
        """Dependences of a tile, and of what comes in between, that have no start yet."""
        for tile, members in self._members.items():
            for index in range(members[0], members[-1] + 1):
                self._around.setdefault(index, []).append(tile)
                self._open[tile] += sum(other < members[0] for other in before[index])
        self._left = {tile: len(members) for tile, members in self._members.items()}
        self._bank: dict[int, int] = {}
        self._free: list[tuple[int, int, int | None]] = [(0, n, None) for n in range(banks)]
        """Banks without a tile: since when, number, the tile before."""
        self._until: list[dict[Unit, int]] = [{} for _ in range(banks)]

    def free_at(self, index: int, unit: Unit) -> int | None:
        """When the bank of its tile is free for ``index``; None when there is none yet."""
        tile = self._tiles[index]
        if tile is None:
            return 0
        bank = self._bank.get(tile)
        if bank is None:
            if self._open[tile] or not self._free:
                return None
            return min(self._free)[0]
        return max(
            (end for other, end in self._until[bank].items() if other is not unit), default=0
        )

    def take(self, index: int, unit: Unit, end: int) -> tuple[int, set[int]]:
        """The bank in which ``index`` works until ``end``; what was there before, if it is new."""
        tile = self._tiles[index]
        if tile is None:
            return 0, set()
        old: set[int] = set()
        if tile not in self._bank:
            _, bank, last = entry = min(self._free)
            self._free.remove(entry)
            self._bank[tile] = bank
            old = set() if last is None else set(self._members[last])
        bank = self._bank[tile]
        self._until[bank][unit] = end
        self._left[tile] -= 1
        if not self._left[tile]:
            self._free.append((max(self._until[bank].values()), bank, tile))
        return bank, old

    def started(self, index: int, later: int) -> None:
        """``index``, which ``later`` depends on, has its start."""
        for tile in self._around.get(later, ()):
            if index < self._members[tile][0]:
                self._open[tile] -= 1


def _first_fetch(config: HardwareConfig) -> int:
    """The first cycle in which an instruction may start."""
    return config.dram.latency_cycles + INSTRUCTION_BYTES // config.bus_bytes + 2


class _Dram:
    """Until when DRAM has work, which it shares between instructions, in their order."""

    def __init__(self, config: HardwareConfig) -> None:
        self._turn = 2 * config.dram.turnaround_cycles
        self._fetch = INSTRUCTION_BYTES // config.bus_bytes * config.dram.beat_interval_cycles
        # FETCH runs ahead of the units, as far as their queues allow.
        self._until = _first_fetch(config) + config.queue_depth * self._fetch
        self._owed = 0
        """Cycles for instructions that are to be fetched."""
        self._bursts: dict[Unit, tuple[int, float]] = {}
        """Of LOAD and STORE: until when its last instruction works, and its bursts."""

    def take(self, unit: Unit, start: int, cost: _Cost) -> int:
        """Cycles by which others' work delays an instruction that starts in ``start``."""
        self._owed += self._fetch
        if not cost.moved:
            return 0
        begin = max(self._until, start)
        # While DRAM had nothing else to do it read instructions.
        idle = begin - self._until - (cost.total - cost.moved)
        owed = max(0, self._owed - max(0, idle))
        work = cost.moved + owed * min(cost.moved, INTERRUPTED) // INTERRUPTED
        self._owed = 0
        for other, (end, bursts) in self._bursts.items():
            if other is not unit and end > start:
                work += round(self._turn * min(bursts, cost.bursts))
        self._until = begin + work
        self._bursts[unit] = self._until, cost.bursts
        return begin + work - start - cost.moved


class _Banks:
    """Until when each unit holds each bank of ACT."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, int], dict[Unit, int]] = {}

    def free_at(self, instruction: Instruction) -> int:
        """The first cycle in which no other unit holds a bank of ``instruction``.

        Nor, if it is a VECTOR, an earlier one writes a bank that it reads.
        """
        own = instruction.unit
        found = 0
        for kind, bank in _banks_of(instruction):
            for unit, until in self._until.get((kind, bank), {}).items():
                if unit is not own and until > found:
                    found = until
            if own is Unit.VECTOR and kind == "act_read_banks":
                until = self._until.get(("act_write_banks", bank), {}).get(own, 0)
                found = max(found, until)
        return found

    def hold(self, instruction: Instruction, until: int) -> None:
        """Let ``instruction`` hold its banks."""
        for bank in _banks_of(instruction):
            self._until.setdefault(bank, {})[instruction.unit] = until


def _banks_of(instruction: Instruction) -> list[tuple[str, int]]:
    masks = (
        (kind, getattr(instruction, kind, 0)) for kind in ("act_read_banks", "act_write_banks")
    )
    return [
        (kind, bank)
        for kind, mask in masks
        for bank in range(mask.bit_length())
        if mask >> bank & 1
    ]
