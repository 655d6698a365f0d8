"""The order of the program: a list schedule of all instructions over the four units.

Time is estimated, one instruction after the other; the order is that of the estimated starts.
Whatever the estimates, it keeps every dependence, so the result stays the same.
"""

from bisect import insort
from collections.abc import Sequence

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Unit

from .cost import Cost, cost_of
from .resources import AccBanks, ActBanks, DramWork, first_fetch

__all__ = ["Ordered", "order"]

Rank = tuple[int, int]

AT_ONCE, NEVER = -(1 << 60), 1 << 60
"""The lowest rank, and a start that none has."""


@frozen
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
    *,
    by_use: bool = False,
) -> Ordered:
    """All of ``program``, whose dependences are ``before``, in the order of expected starts.

    Of several instructions that could start on a unit, the one with the longest way to the end of
    the program goes first; of several LOADs, the one whose data is needed first; but before all
    others goes what empties a bank of ACC.
    by_use: of all units, the one whose result is needed first.
    tiles: of each instruction the tile whose sums it makes or reads, which get a bank of ACC.
    banks: of ACC, if not all.
    """
    costs = [cost_of(instruction, config) for instruction in program]
    urgency = [] if by_use else _urgency(before, costs)
    first_use = _first_use(before)
    ranks = []
    for index, instruction in enumerate(program):
        is_used = by_use or instruction.unit is Unit.LOAD
        rank = first_use[index] if is_used else -urgency[index]
        if instruction.unit is Unit.VECTOR and tiles[index] is not None:
            rank = AT_ONCE
        ranks.append((rank, index))
    schedule = _Schedule(program, before, costs, ranks, tiles, banks or config.acc_banks, config)
    schedule.run()
    starts = schedule.starts
    places = sorted(range(len(program)), key=lambda i: (starts[i], i))
    before = [frozenset(each) for each in schedule.before]
    return Ordered(places, schedule.banks, before)


def _urgency(before: Sequence[frozenset[int]], costs: Sequence[Cost]) -> list[int]:
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

    A tile gets a bank once everything before it that it depends on has a start.  It will then leave
    the bank again, whatever other tiles do, so there is always a next instruction.
    """

    def __init__(
        self,
        program: Sequence[Instruction],
        before: Sequence[frozenset[int]],
        costs: Sequence[Cost],
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
        self._free = dict.fromkeys(Unit, first_fetch(config))
        self._dram = DramWork(config)
        self._act_banks = ActBanks(program)
        self._acc = AccBanks(tiles, before, banks)
        self._ready: dict[Unit, list[Rank]] = {unit: [] for unit in Unit}
        """By rank, the lowest first."""
        for index, count in enumerate(self._missing):
            if not count:
                insort(self._ready[program[index].unit], ranks[index])

    def run(self) -> None:
        """Give every instruction its start."""
        for _ in self._program:
            found: list[tuple[int, int]] = []
            for unit, waiting in self._ready.items():
                candidate = self._next(unit, waiting, min(found)[0] if found else NEVER)
                found += [candidate] if candidate else []
            self._take(*min(found))

    def _next(self, unit: Unit, waiting: Sequence[Rank], most: int) -> tuple[int, int] | None:
        """Start and index of what the unit takes next: the lowest rank of those that can start
        soonest; None where that is after ``most``.
        """
        free, best = self._free[unit], most + 1
        found: tuple[int, int] | None = None
        if free > most:
            return None
        for _, index in waiting:
            bank_free = self._acc.free_at(index, unit)
            if bank_free is None:
                continue
            start = max(free, self._earliest[index], bank_free)
            if start < best and (start := max(start, self._act_banks.free_at(index))) < best:
                found, best = (start, index), start
                if start == free:
                    break
        return found

    def _take(self, start: int, index: int) -> None:
        instruction, cost = self._program[index], self._costs[index]
        late = self._dram.take(instruction.unit, start, cost)
        end = start + cost.total + late
        self._ready[instruction.unit].remove(self._ranks[index])
        self.starts[index] = start
        self._free[instruction.unit] = start + cost.occupied + late
        self._act_banks.hold(index, end)
        self.banks[index], old = self._acc.take(index, instruction.unit, end)
        self.before[index] |= old
        for later in self._after[index]:
            self._earliest[later] = max(self._earliest[later], end)
            self._missing[later] -= 1
            self._acc.started(index, later)
            if not self._missing[later]:
                insort(self._ready[self._program[later].unit], self._ranks[later])
