"""Instructions in flight in the stepped reference, and when another one may start beside them.

Source: docs/timing.md, "Accepting an instruction".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instructions import Finish, Fold, Gemm, Instruction, Load, Row, Vector
from dovetail.isa.latency import issue_cycles
from dovetail.isa.memories import Memory, Unit

from .reference_memory import Burst

__all__ = ["ROLES", "Flight", "Tokens", "banks", "last_issue", "needs_bank"]

ROLES = ("act_read_banks", "act_write_banks", "acc_banks", "par")


@dataclass(slots=True)
class Flight:
    """An instruction in flight; the lower fields are LOAD's or STORE's own registers."""

    index: int
    instruction: Instruction
    accepted: int
    bursts: list[Burst] = field(default_factory=list)
    taken: int = 0
    beats: int = 0
    words_left: int = 0
    offer_from: int = 0
    """LOAD, STORE: from when a burst can be offered, or filled."""
    completing: set[int] = field(default_factory=set)
    """LOAD: numbers of the beats that complete a word."""
    cells_left: int = 0
    beats_left: int = 0
    """LOAD: beats that have not come."""
    finishing: int = 0
    """LOAD: cycles to the end, when all is on its way."""
    filled_bursts: int = 0
    filled_words: int = 0
    used_slots: int = 0
    offered_from: list[int] = field(default_factory=list)
    read_addresses: list[int] = field(default_factory=list)
    data: list[NDArray[np.uint8]] = field(default_factory=list)
    responses: int = 0


def last_issue(flight: Flight, config: HardwareConfig) -> int:
    """Last issue cycle of a GEMM or VECTOR."""
    instruction = flight.instruction
    assert isinstance(instruction, Gemm | Vector)
    each = issue_cycles(config)[instruction.unit]
    return flight.accepted + each * prod(instruction.extent)


def needs_bank(
    instruction: Instruction, claimed: Mapping[str, int], flights: Mapping[Unit, Sequence[Flight]]
) -> bool:
    """True if it needs a bank that is ``claimed`` in this cycle, or that one in flight has."""
    for role in ROLES:
        mask = banks(instruction, role)
        if mask & claimed[role]:
            return True
        for other, there in flights.items() if mask else ():
            for flight in there:
                if other is not instruction.unit and mask & banks(flight.instruction, role):
                    return True
    if not isinstance(instruction, Vector):
        return False
    for flight in flights[Unit.VECTOR]:
        earlier = flight.instruction
        assert isinstance(earlier, Vector)
        if _reads_par(instruction) and earlier.row is not Row.NONE:
            return True
        if instruction.act_read_banks & earlier.act_write_banks:
            return True
        both = instruction.source is Memory.ACC and earlier.destination is Memory.ACC
        if both and instruction.acc_banks & earlier.acc_banks:
            return True
    return False


def banks(instruction: Instruction, role: str) -> int:
    """The banks that it has in a role, as a mask; PAR is one bank, of those that write it."""
    return int(_writes_par(instruction)) if role == "par" else getattr(instruction, role, 0)


def _writes_par(instruction: Instruction) -> bool:
    if isinstance(instruction, Load):
        return instruction.memory is Memory.PAR
    return isinstance(instruction, Vector) and instruction.row is not Row.NONE


def _reads_par(vector: Vector) -> bool:
    if vector.row is Row.NONE:
        return vector.finish is Finish.REQUANTIZE
    return not (vector.row is Row.LESS and vector.fold is Fold.MAX)


class Tokens:
    """Tokens of each ordered pair of units, and how many more may be posted.

    ``later`` takes what changes them in the next cycle.
    """

    def __init__(self, most: int, later: list[Callable[[], object]]) -> None:
        pairs = [(a, b) for a in Unit for b in Unit if a is not b]
        self.there = dict.fromkeys(pairs, 0)
        self.room = dict.fromkeys(pairs, most)
        self.later = later

    def allow(self, instruction: Instruction) -> bool:
        """True if there are those it waits for, and room for those it will give."""
        unit = instruction.unit
        return all(self.there[other, unit] for other in instruction.wait) and all(
            self.room[unit, other] for other in instruction.post
        )

    def start(self, instruction: Instruction) -> None:
        """Take what it waits for, and the room for what it will give."""
        unit = instruction.unit
        for other in instruction.wait:
            self._add(self.there, (other, unit), -1)
            self._add(self.room, (other, unit), 1)
        for other in instruction.post:
            self._add(self.room, (unit, other), -1)

    def end(self, instruction: Instruction) -> None:
        """Give what it gives."""
        for other in instruction.post:
            self._add(self.there, (instruction.unit, other), 1)

    def _add(self, counts: dict[tuple[Unit, Unit], int], pair: tuple[Unit, Unit], n: int) -> None:
        self.later.append(lambda: counts.__setitem__(pair, counts[pair] + n))
