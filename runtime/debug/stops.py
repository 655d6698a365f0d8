"""Where to stop: places in a run, and how they are written."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Memory, Unit

from ..errors import InputError
from .moments import Event, Moment
from .shadow import Footprints, Space

__all__ = ["AtCycle", "AtInstruction", "AtLayer", "AtToken", "Run", "Stop", "Watch", "positions"]


@frozen
class Run:
    """Facts about a run that are known beforehand.

    Position ``p`` of a run is before ``moments[p]``.  layer_of: of each instruction.
    """

    program: tuple[Instruction, ...]
    moments: tuple[Moment, ...]
    layers: tuple[str, ...]
    layer_of: tuple[int, ...]
    footprints: Footprints
    lanes: int


@frozen
class AtInstruction:
    """Just before an instruction is queued or starts, or just after it ended."""

    index: int
    event: Event = Event.STARTED

    def __str__(self) -> str:
        words = {Event.QUEUED: "queued", Event.STARTED: "start", Event.ENDED: "end"}
        return f"instruction {self.index} {words[self.event]}"


@frozen
class AtCycle:
    """After all that happens up to a cycle, that one included."""

    cycle: int

    def __str__(self) -> str:
        return f"cycle {self.cycle}"


@frozen
class AtLayer:
    """Before the first instruction of a layer starts, or after the last one ended."""

    layer: int
    end: bool = False

    def __str__(self) -> str:
        return f"layer {self.layer} {'end' if self.end else 'start'}"


@frozen
class AtToken:
    """After ``giver`` gave ``taker`` a token: the one of that number, from 1 on, or any."""

    giver: Unit
    taker: Unit
    count: int | None = None

    def __str__(self) -> str:
        which = "" if self.count is None else f" {self.count}"
        return f"token {self.giver.name.lower()} {self.taker.name.lower()}{which}"


@frozen
class Watch:
    """Words ``first`` to ``last`` of a scratchpad, or bytes of DRAM.

    Before an instruction that reads one of them starts, and after one that writes one ended.
    """

    space: Space
    first: int
    last: int
    reads: bool = True
    writes: bool = True

    def __str__(self) -> str:
        kind = "rw" if self.reads and self.writes else "r" if self.reads else "w"
        if self.space is None:
            return f"watch dram {self.first:#x}..{self.last:#x} {kind}"
        return f"watch {self.space.value} {self.first}..{self.last} {kind}"


Stop = AtInstruction | AtCycle | AtLayer | AtToken | Watch


def positions(stop: Stop, run: Run) -> list[int]:
    """Every position of ``run`` at which ``stop`` stops, ascending.

    Raises InputError for an instruction, layer, token or range that does not exist.
    """
    match stop:
        case AtInstruction(index=index, event=event):
            if not 0 <= index < len(run.program):
                raise InputError(
                    f"no instruction {index}; the program has {len(run.program)}, from 0 on"
                )
            return _of(run, {index}, event)
        case AtCycle(cycle=cycle):
            return [bisect_right(run.moments, cycle, key=lambda moment: moment.cycle)]
        case AtLayer(layer=layer, end=end):
            mine = {i for i, number in enumerate(run.layer_of) if number == layer}
            found = _of(run, mine, Event.ENDED if end else Event.STARTED)
            return found[-1:] if end else found[:1]
        case AtToken(giver=giver, taker=taker, count=count):
            posts = {
                i for i, each in enumerate(run.program) if each.unit is giver and taker in each.post
            }
            if not posts or (count is not None and not 1 <= count <= len(posts)):
                raise InputError(
                    f"{giver.name} gives {taker.name} {len(posts)} tokens; required a number of "
                    "one of them, from 1 on"
                )
            found = _of(run, posts, Event.ENDED)
            return found if count is None else found[count - 1 : count]
        case Watch():
            return _watched(stop, run)


def _of(run: Run, indices: set[int], event: Event) -> list[int]:
    """Before instructions are queued or start, or after they ended."""
    after = int(event is Event.ENDED)
    return [
        place + after
        for place, moment in enumerate(run.moments)
        if moment.event is event and moment.index in indices
    ]


def _watched(watch: Watch, run: Run) -> list[int]:
    scale = run.lanes if watch.space is None else 1
    first, last = watch.first // scale, watch.last // scale

    def touching(touches: Sequence[tuple[Space, "np.ndarray"]]) -> bool:
        return any(
            space is watch.space and bool(np.any((places >= first) & (places <= last)))
            for space, places in touches
        )

    indices = range(len(run.program))
    reads = {i for i in indices if watch.reads and touching(run.footprints.reads(i))}
    writes = {i for i in indices if watch.writes and touching(run.footprints.writes(i))}
    return sorted({*_of(run, reads, Event.STARTED), *_of(run, writes, Event.ENDED)})


MEMORIES = {memory.value: memory for memory in Memory}


def parse_space(text: str) -> Space:
    """``act``, ``wgt``, ..., or ``dram``.

    Raises InputError for anything else.
    """
    if text == "dram":
        return None
    if text not in MEMORIES:
        raise InputError(f"no memory {text!r}; there are: {', '.join(MEMORIES)}, dram")
    return MEMORIES[text]
