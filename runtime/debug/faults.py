"""Where a machine, the RTL, first departs from what its instructions mean."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState

from ..devices import open_launcher
from .machines import SETTLED, SnapshotDevice
from .moments import Event
from .session import InstructionInfo, Session
from .shadow import Space

__all__ = ["Fault", "first_fault", "first_late"]

AT_ONCE = 16
"""Snapshots of one run."""


@frozen
class Fault:
    """A word that an instruction left wrong, first seen when the run stands at ``position``.

    address: of the word; of the first wrong byte in DRAM.  lane: None in DRAM.  found, expected:
    values of its elements, or bytes.
    """

    instruction: InstructionInfo
    space: Space
    address: int
    lane: int | None
    found: int
    expected: int
    position: int

    def __str__(self) -> str:
        space = "dram" if self.space is None else self.space.value
        lane = "" if self.lane is None else f", lane {self.lane}"
        return (
            f"the machine departs from what instruction {self.instruction.index} means: it left "
            f"{self.found} in {space} {self.address:#x}{lane}, required {self.expected}: "
            f"{self.instruction.assembly}"
        )


def first_late(session: Session) -> str | None:
    """First event whose cycle differs from the simulator's; None when all agree."""
    wanted = open_launcher("sim").run(session.launch)
    columns = (("queued", "dispatched"), ("started", "accepted"), ("ended", "ended"))
    found = []
    for word, name in columns:
        ours, theirs = getattr(session.result, name), getattr(wanted, name)
        for index in np.flatnonzero(ours != theirs)[:1]:
            found.append((int(theirs[index]), word, int(index), int(ours[index])))
    if not found:
        return None
    theirs, word, index, ours = min(found)
    return f"instruction {index} is {word} in cycle {ours}; on the simulator in {theirs}"


def first_fault(session: Session, device: SnapshotDevice) -> Fault | None:
    """The first word in which a device's memories differ from those of the simulator, told to the
    instruction: searched between the ends of instructions, several at a time.
    """
    ends = [n + 1 for n, m in enumerate(session.moments) if m.event is Event.ENDED]
    low, high = 0, len(ends)
    fault: Fault | None = None
    while low < high:
        chosen = sorted({low + (high - low) * n // AT_ONCE for n in range(AT_ONCE)} | {high - 1})
        cycles = [session.moments[ends[n] - 1].cycle + SETTLED for n in chosen]
        states = device.snapshots(session.launch, cycles)
        before = low
        for place, state in zip(chosen, states, strict=True):
            found = _compare(session, ends[place], state)
            if found is not None:
                fault, low, high = found, before, place
                break
            before = place + 1
        else:
            return fault
    return fault


def _compare(session: Session, position: int, state: MachineState) -> Fault | None:
    """The first word that differs, except for those that instructions under way write."""
    cycle = session.moments[position - 1].cycle
    session.run_to_cycle(cycle)
    wanted = session.replayed_state
    writers = {space: each.copy() for space, each in session.shadow.writers.items()}
    unsettled = _unsettled(session, cycle)
    for memory in Memory:
        for ours, theirs in _arrays(memory, state, wanted):
            different = (ours != theirs).reshape(len(ours), -1)
            different[[w for space, words in unsettled for w in words if space is memory]] = False
            if different.any():
                word, lane = (int(axis[0]) for axis in np.nonzero(different))
                values = ours.reshape(len(ours), -1), theirs.reshape(len(ours), -1)
                return _fault(session, memory, word, lane, values, writers[memory][word])
    lanes = session.config.block
    dram = state.dram != wanted.dram
    for space, words in unsettled:
        if space is None:
            places = words[:, None] * lanes + np.arange(lanes)
            dram[places[places < len(dram)]] = False
    if dram.any():
        byte = int(np.flatnonzero(dram)[0])
        pair = state.dram[:, None], wanted.dram[:, None]
        return _fault(session, None, byte, 0, pair, writers[None][byte // lanes])
    return None


def _arrays(
    memory: Memory, ours: MachineState, theirs: MachineState
) -> Sequence[tuple[NDArray[np.generic], NDArray[np.generic]]]:
    if memory is Memory.PAR:
        pairs = [(getattr(ours.par, n), getattr(theirs.par, n)) for n in ("bias", "scale")]
        return [(a.view(np.int32), b.view(np.int32)) for a, b in pairs]
    return [(getattr(ours, memory.value), getattr(theirs, memory.value))]


def _unsettled(session: Session, cycle: int) -> list[tuple[Space, NDArray[np.int64]]]:
    """Words written by instructions that are under way in a snapshot after ``cycle``."""
    done = session.result
    assert done.accepted is not None
    assert done.ended is not None
    started = (done.accepted >= 0) & (done.accepted <= cycle + SETTLED)
    working = np.flatnonzero(started & ((done.ended > cycle) | (done.ended < 0)))
    return [touch for index in working.tolist() for touch in session.footprints.writes(index)]


def _fault(
    session: Session,
    space: Space,
    address: int,
    lane: int,
    values: tuple[NDArray[np.generic], NDArray[np.generic]],
    writer: int,
) -> Fault:
    ours, theirs = (int(each[address, lane]) for each in values)
    last = session.moments[session.position - 1].index
    info = session.instruction(int(writer) if writer >= 0 else last)
    where = None if space is None else lane
    return Fault(info, space, address, where, ours, theirs, session.position)
