"""Races: instructions that read what, in the order of the program, is not theirs."""

from collections.abc import Iterator

import numpy as np

from dovetail.isa.frozen import frozen

from .moments import steps_of
from .session import InstructionInfo, Session
from .shadow import Seen, Shadow, Space

__all__ = ["Race", "first_race"]


@frozen
class Race:
    """``reader`` read a word that ``found`` had written last; in the program that is ``expected``.

    None where nobody wrote it.  address: of the word, or byte of DRAM.  ordered: what the reader
    reads when instructions run one after the other.
    """

    reader: InstructionInfo
    space: Space
    address: int
    found: InstructionInfo | None
    expected: InstructionInfo | None
    ordered: tuple[Seen, ...]

    @property
    def early(self) -> InstructionInfo:
        """The instruction that did not wait."""
        if self.found is not None and self.found.index > self.reader.index:
            return self.found
        return self.reader

    @property
    def late(self) -> InstructionInfo:
        """The one it ought to have waited for."""
        if self.early is self.reader and self.expected is not None:
            return self.expected
        return self.reader

    def __str__(self) -> str:
        space = "dram" if self.space is None else self.space.value
        return (
            f"instruction {self.early.index} ({self.early.unit.name}) did not wait for "
            f"{self.late.index} ({self.late.unit.name}): {self.reader.index} read {space} "
            f"{self.address:#x} as {_named(self.found)} left it, in the order of the program it is "
            f"{_named(self.expected)}'s; no token orders them"
        )


def _named(info: InstructionInfo | None) -> str:
    return "nobody" if info is None else f"{info.index}"


def first_race(session: Session, position: int) -> Race | None:
    """The first instruction, of those that had read before ``position``, that read something else
    than if instructions ran one after the other.
    """
    ordered = {index: _digest(seen) for index, seen in _in_program_order(session)}
    shadow = _shadow(session)
    for moment in session.moments[:position]:
        for step in steps_of(moment, session.program[moment.index].unit):
            index = step >> 1
            if not step & 1:
                seen = shadow.seen(index)
                if _digest(seen) != ordered[index]:
                    return _race(session, index, seen)
            shadow.apply(step)
    return None


def _in_program_order(session: Session) -> Iterator[tuple[int, list[Seen]]]:
    """For each instruction, what it reads when all run one after the other, and who wrote that."""
    shadow = _shadow(session)
    for index in range(len(session.program)):
        yield index, shadow.seen(index)
        shadow.apply(2 * index)
        shadow.apply(2 * index + 1)


def _shadow(session: Session) -> Shadow:
    size = session.launch.dram.size
    return Shadow(session.program, session.config, size, session.record, session.footprints)


def _digest(seen: list[Seen]) -> int:
    return hash(tuple(each.writers.tobytes() for each in seen))


def _race(session: Session, index: int, seen: list[Seen]) -> Race | None:
    """The first word of ``seen`` that another instruction ought to have written."""
    wanted = next(found for i, found in _in_program_order(session) if i == index)
    for got, want in zip(seen, wanted, strict=True):
        different = np.flatnonzero(got.writers != want.writers)
        if not different.size:
            continue
        place = int(different[0])
        found, expected = (int(each.writers[place]) for each in (got, want))
        scale = session.config.block if got.space is None else 1
        return Race(
            session.instruction(index),
            got.space,
            int(got.places[place]) * scale,
            session.instruction(found) if found >= 0 else None,
            session.instruction(expected) if expected >= 0 else None,
            tuple(wanted),
        )
    return None
