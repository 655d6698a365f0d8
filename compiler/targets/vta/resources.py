"""Banks of ACC and ACT, and DRAM: what units share while instructions get estimated starts, one
after the other.
"""

from collections.abc import Sequence

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Unit

from .cost import Cost

__all__ = ["AccBanks", "ActBanks", "DramWork", "first_fetch"]

INTERRUPTED = 64
"""Estimate: a transfer of so many cycles lets in all instructions that are due to be fetched; some
of them may fit into the pauses between shorter transfers.
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
        """The tiles that an instruction belongs to, or stands in the middle of."""
        self._open = dict.fromkeys(self._members, 0)
        """How many dependences of a tile, and of the instructions in the middle of it, have no
        start yet.
        """
        for tile, members in self._members.items():
            for index in range(members[0], members[-1] + 1):
                self._around.setdefault(index, []).append(tile)
                self._open[tile] += sum(other < members[0] for other in before[index])
        self._left = {tile: len(members) for tile, members in self._members.items()}
        self._bank: dict[int, int] = {}
        self._old: dict[int, set[int]] = {}
        """For each tile, the instructions of the tile that was in its bank before."""
        self._first = {
            index
            for members in self._members.values()
            for index in members
            if before[index].isdisjoint(members)
        }
        """Instructions that depend on no other of their tile."""
        self._free: list[tuple[int, int, int | None]] = [(0, n, None) for n in range(banks)]
        """Banks without a tile: since when, their number, and the tile before."""
        self._until: list[dict[Unit, int]] = [{} for _ in range(banks)]

    def free_at(self, index: int, unit: Unit) -> int | None:
        """When the bank of its tile is free for ``index``; None when the tile has none yet."""
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
        """The bank in which instruction ``index`` works until ``end``, and the instructions of the
        tile before in that bank, if ``index`` depends on no other of its tile.
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
        """Instruction ``index``, which ``later`` depends on, has got its start."""
        for tile in self._around.get(later, ()):
            if index < self._members[tile][0]:
                self._open[tile] -= 1


def first_fetch(config: HardwareConfig) -> int:
    """The first cycle in which an instruction may start."""
    return config.dram.latency_cycles + INSTRUCTION_BYTES // config.bus_bytes + 2


class DramWork:
    """The time until which DRAM has work, which instructions share in their order."""

    def __init__(self, config: HardwareConfig) -> None:
        self._turn = 2 * config.dram.turnaround_cycles
        self._fetch = INSTRUCTION_BYTES // config.bus_bytes * config.dram.beat_interval_cycles
        # FETCH runs ahead of the units, as far as their queues allow.
        self._until = first_fetch(config) + config.queue_depth * self._fetch
        self._owed = 0
        """Cycles that DRAM still needs for instructions that are due to be fetched."""
        self._bursts: dict[Unit, tuple[int, float]] = {}
        """For LOAD and for STORE, the end of the last instruction, and its bursts."""

    def take(self, unit: Unit, start: int, cost: Cost) -> int:
        """Cycles by which the work of others delays an instruction that starts at ``start``."""
        self._owed += self._fetch
        if not cost.moved:
            return 0
        begin = max(self._until, start)
        # DRAM read instructions while it had nothing else to do.
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
    """The time until which each unit holds each bank of ACT, for reading and for writing."""

    def __init__(self, program: Sequence[Instruction]) -> None:
        self._units = [instruction.unit for instruction in program]
        banks_of = [_banks_of(instruction) for instruction in program]
        until: dict[tuple[str, int], dict[Unit, int]] = {
            bank: {} for banks in banks_of for bank in banks
        }
        until |= {("act_write_banks", bank): {} for kind, bank in until}
        self._held = [[until[bank] for bank in banks] for banks in banks_of]
        """For each bank that an instruction needs, until when each unit holds it."""
        self._written = [
            [until["act_write_banks", bank] for kind, bank in banks if kind == "act_read_banks"]
            if unit is Unit.VECTOR
            else []
            for unit, banks in zip(self._units, banks_of, strict=True)
        ]
        """For each bank that a VECTOR reads, until when each unit writes it."""

    def free_at(self, index: int) -> int:
        """The first cycle in which no other unit holds a bank of instruction ``index``.

        If it is a VECTOR, no earlier one may be writing a bank that it reads, either.
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
