"""A run as a list of moments: instructions are queued, start and end."""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction
from dovetail.isa.launch import LaunchResult
from dovetail.isa.memories import Unit

from ..errors import DeviceError

__all__ = ["Event", "Moment", "moments_of", "steps_of"]


class Event(IntEnum):
    """Event in the life of an instruction; the order is that of one cycle."""

    QUEUED = 0
    """It enters the queue of its unit."""
    STARTED = 1
    """Its unit accepts it: it takes its tokens and banks, and works from the next cycle on."""
    ENDED = 2
    """It gives its tokens and its banks back."""


@frozen
class Moment:
    """An event of instruction ``index`` in a ``cycle``."""

    cycle: int
    event: Event
    index: int


def moments_of(program: Sequence[Instruction], done: LaunchResult) -> tuple[Moment, ...]:
    """Every moment of a run, in order.

    Within a cycle it is that of the simulator's data: LOAD before STORE when they start, STORE last
    when they end.
    Raises DeviceError when the device does not say when instructions ran.
    """
    if done.dispatched is None or done.accepted is None or done.ended is None:
        raise DeviceError(
            "the device does not say when each instruction ran; debug on sim or rtl, where a "
            "board's program takes the same cycles"
        )
    found = []
    cycles = (done.dispatched, done.accepted, done.ended)
    for event, column in zip(Event, cycles, strict=True):
        for index in np.flatnonzero(column >= 0).tolist():
            stores = program[index].unit is Unit.STORE
            found.append((int(column[index]), event, stores, index))
    found.sort()
    return tuple(Moment(cycle, event, index) for cycle, event, _, index in found)


def steps_of(moment: Moment, unit: Unit) -> tuple[int, ...]:
    """Effect of ``moment`` on the memories, as a replayer takes it."""
    match moment.event, unit:
        case (Event.STARTED, Unit.LOAD | Unit.STORE) | (Event.ENDED, Unit.GEMM | Unit.VECTOR):
            return (2 * moment.index,)
        case Event.ENDED, Unit.STORE:
            return (2 * moment.index + 1,)
        case _:
            return ()
