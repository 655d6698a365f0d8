"""Resources that units share while instructions get their estimated starts one after the other:
banks of ACC and ACT, and DRAM.
"""

from collections.abc import Sequence

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Unit

from .cost import Cost

__all__ = ["AccBanks", "ActBanks", "DramWork", "first_fetch"]

INTERRUPTED = 64
"""Estimate: cycles of a transfer into which all instructions that are due to be fetched fall; they
may fall into the pauses between shorter ones.
"""


class AccBanks:
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
        self._old: dict[int, set[int]] = {}
        """The instructions of the tile that was in the bank of a tile before."""
        self._first = {
            index
            for members in self._members.values()
            for index in members
            if before[index].isdisjoint(members)
        }
        """Instructions that depend on none of their tile."""
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
        """The bank in which ``index`` works until ``end``; what was there before, unless ``index``
        comes after others of its tile.
        """
        tile = self._tiles[index]
        if tile is None:
            return 0, set()
        if tile not in self._bank:
            _, bank, last = entry = min(self._free)
            self._free.remove(entry)
            self._bank[tile] = bank
            self._old[tile] = set() if last is None else set(self._members[last])
        old = self._old[tile] if index in self._first else set()
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


def first_fetch(config: HardwareConfig) -> int:
    """The first cycle in which an instruction may start."""
    return config.dram.latency_cycles + INSTRUCTION_BYTES // config.bus_bytes + 2


class DramWork:
    """Until when DRAM has work, which it shares between instructions, in their order."""

    def __init__(self, config: HardwareConfig) -> None:
        self._turn = 2 * config.dram.turnaround_cycles
        self._fetch = INSTRUCTION_BYTES // config.bus_bytes * config.dram.beat_interval_cycles
        # FETCH runs ahead of the units, as far as their queues allow.
        self._until = first_fetch(config) + config.queue_depth * self._fetch
        self._owed = 0
        """Cycles for instructions that are to be fetched."""
        self._bursts: dict[Unit, tuple[int, float]] = {}
        """Until when the last instruction of LOAD and of STORE works, and its bursts."""

    def take(self, unit: Unit, start: int, cost: Cost) -> int:
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


class ActBanks:
    """Until when each unit holds each bank of ACT, for reading and for writing."""

    def __init__(self, program: Sequence[Instruction]) -> None:
        self._units = [instruction.unit for instruction in program]
        banks_of = [_banks_of(instruction) for instruction in program]
        until: dict[tuple[str, int], dict[Unit, int]] = {
            bank: {} for banks in banks_of for bank in banks
        }
        until |= {("act_write_banks", bank): {} for kind, bank in until}
        self._held = [[until[bank] for bank in banks] for banks in banks_of]
        """Until when each unit holds each of the banks of an instruction."""
        self._written = [
            [until["act_write_banks", bank] for kind, bank in banks if kind == "act_read_banks"]
            if unit is Unit.VECTOR
            else []
            for unit, banks in zip(self._units, banks_of, strict=True)
        ]
        """The same of the banks that a VECTOR reads, for writing."""

    def free_at(self, index: int) -> int:
        """The first cycle in which no other unit holds a bank of instruction ``index``.

        Nor, if it is a VECTOR, an earlier one writes a bank that it reads.
        """
        own = self._units[index]
        found = 0
        for held in self._held[index]:
            for unit, until in held.items():
                if until > found and unit is not own:
                    found = until
        for written in self._written[index]:
            found = max(found, written.get(own, 0))
        return found

    def hold(self, index: int, until: int) -> None:
        """Let instruction ``index`` hold its banks."""
        for held in self._held[index]:
            held[self._units[index]] = until


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
