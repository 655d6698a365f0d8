"""Units, queues, tokens and banks between two moments of a run, and what waits for what."""

from collections.abc import Sequence

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Gemm, Instruction, Load, Store, Vector
from dovetail.isa.memories import Unit

from .moments import Event, Moment

__all__ = ["Issue", "UnitStatus"]

READ, WRITE, SUMS = "ACT read bank", "ACT write bank", "ACC bank"


@frozen
class UnitStatus:
    """State of a unit.

    working: indices of the instructions it works on.  queue: of those that wait, first one first.
    waits_for: why the first of them has not started, or, without one, where its next one is.
    """

    unit: Unit
    working: tuple[int, ...]
    queue: tuple[int, ...]
    waits_for: str


class Issue:
    """The state after the moments so far: instructions under way, queues, tokens."""

    def __init__(self, program: Sequence[Instruction], config: HardwareConfig) -> None:
        self._program, self._config = program, config
        self._of_unit = {
            unit: [i for i, each in enumerate(program) if each.unit is unit] for unit in Unit
        }
        self.working: dict[Unit, list[int]] = {unit: [] for unit in Unit}
        self.queues: dict[Unit, list[int]] = {unit: [] for unit in Unit}
        self.tokens = {(a, b): 0 for a in Unit for b in Unit if a is not b}
        """Tokens there are, by giver and taker."""
        self.given = dict(self.tokens)
        """Tokens given so far."""
        self.queued = 0
        self.ended = 0

    def apply(self, moment: Moment) -> None:
        """One moment later."""
        index = moment.index
        instruction = self._program[index]
        unit = instruction.unit
        match moment.event:
            case Event.QUEUED:
                self.queues[unit].append(index)
                self.queued += 1
            case Event.STARTED:
                self.queues[unit].remove(index)
                self.working[unit].append(index)
                for other in instruction.wait:
                    self.tokens[other, unit] -= 1
            case Event.ENDED:
                self.working[unit].remove(index)
                self.ended += 1
                for other in instruction.post:
                    self.tokens[unit, other] += 1
                    self.given[unit, other] += 1

    def status(self, unit: Unit) -> UnitStatus:
        """State of ``unit`` now."""
        return UnitStatus(
            unit, tuple(self.working[unit]), tuple(self.queues[unit]), self._reason(unit)
        )

    def _reason(self, unit: Unit) -> str:
        if not self.queues[unit]:
            return self._next(unit)
        index = self.queues[unit][0]
        instruction = self._program[index]
        why = [
            f"a token from {other.name}{self._giver(other, unit)}"
            for other in sorted(instruction.wait)
            if not self.tokens[other, unit]
        ]
        why += [
            f"{other.name} to take a token: it has {self._config.token_max}, the most there can be"
            for other in sorted(instruction.post)
            if self._promised(unit, other) >= self._config.token_max
        ]
        why = why or self._banks(unit, instruction)
        if not why and unit in (Unit.LOAD, Unit.STORE) and self.working[unit]:
            return f"{index}: its unit, which works on {self.working[unit][0]}"
        return f"{index}: {' and '.join(why)}" if why else f"{index}: nothing, it starts next"

    def _next(self, unit: Unit) -> str:
        """Where the next instruction of a unit with an empty queue is."""
        left = [index for index in self._of_unit[unit] if index >= self.queued]
        if not left:
            return "no more instructions"
        blocked = self._program[self.queued].unit
        if len(self.queues[blocked]) >= self._config.queue_depth:
            return f"{left[0]}: room in the queue of {blocked.name}, for {self.queued} before it"
        return f"{left[0]}: to be fetched"

    def _giver(self, giver: Unit, taker: Unit) -> str:
        """The instruction that will give the next token."""
        posts = (i for i in self._of_unit[giver] if taker in self._program[i].post)
        skipped = self.given[giver, taker]
        found = next((i for n, i in enumerate(posts) if n == skipped), None)
        return ", which no instruction gives" if found is None else f", which {found} gives"

    def _promised(self, giver: Unit, taker: Unit) -> int:
        """Tokens there are, and those that instructions under way will give."""
        coming = sum(taker in self._program[i].post for i in self.working[giver])
        return self.tokens[giver, taker] + coming

    def _banks(self, unit: Unit, instruction: Instruction) -> list[str]:
        """Banks it needs that another unit holds."""
        needed, found = _claims(instruction), []
        for other, working in self.working.items():
            for index in working if other is not unit else ():
                held = _claims(self._program[index])
                for kind in needed.keys() & held.keys():
                    both = needed[kind] & held[kind]
                    found += [
                        f"{kind} {bank}, which {other.name} {index} holds"
                        for bank in range(both.bit_length())
                        if both >> bank & 1
                    ]
        return found


def _claims(instruction: Instruction) -> dict[str, int]:
    """Masks of the banks that it holds while it runs."""
    match instruction:
        case Load():
            return {WRITE: instruction.act_write_banks, SUMS: instruction.acc_banks}
        case Gemm():
            return {READ: instruction.act_read_banks, SUMS: instruction.acc_banks}
        case Vector():
            return {
                READ: instruction.act_read_banks,
                WRITE: instruction.act_write_banks,
                SUMS: instruction.acc_banks,
            }
        case Store():
            return {READ: instruction.act_read_banks}
