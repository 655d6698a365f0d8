"""Cause of each cycle of a layer."""

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import islice

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Unit

from ..result import Ends, Timeline, TimelineEntry
from .flows import token_flows
from .shares import shared_spans
from .traffic import bus_spans

__all__ = ["Breakdown", "break_down", "bus_cycles"]


@frozen
class Breakdown:
    """Cycles of a layer; they add up to all of them.

    useful: that GEMM needs for the layer's MACs with every multiplier at work.  unfilled: more
    that GEMM worked.  vector: VECTOR worked, GEMM did not.  In the rest neither did, before an
    instruction of theirs: load, gemm, vector_token, store: it waited for a token of that unit.
    room: for a token that had nowhere to go, or that no instruction of the wait gave.  bank:
    another unit held a scratchpad bank.  fetch: it was not in its unit's queue.  unknown: the
    device does not say.  other: the run's beginning and end, and the cycles from one step of a
    pipeline to the next.
    """

    useful: int = 0
    unfilled: int = 0
    vector: int = 0
    load: int = 0
    gemm: int = 0
    vector_token: int = 0
    store: int = 0
    room: int = 0
    bank: int = 0
    fetch: int = 0
    unknown: int = 0
    other: int = 0

    @property
    def cycles(self) -> int:
        """All of the layer's cycles."""
        return sum(getattr(self, each.name) for each in fields(self))


def break_down(
    program: Sequence[Instruction],
    timeline: Timeline,
    macs: Sequence[int],
    config: HardwareConfig,
    cycles: int,
    ends: Ends = (),
) -> tuple[Breakdown, ...]:
    """One for each layer; ``macs``: of each.  ends: of programs that others follow."""
    givers = _givers(program, timeline)
    found = [dict.fromkeys((each.name for each in fields(Breakdown)), 0) for _ in macs]
    for share in shared_spans(timeline, len(macs), cycles, ends):
        mine, length = found[share.layer], share.end - share.begin
        if share.unit is not None:
            mine["unfilled" if share.unit == "GEMM" else "vector"] += length
            continue
        if share.entry is not None:
            for name, waited in _waits(share.entry, givers):
                part = min(length, waited)
                mine[name] += part
                length -= part
        known = share.entry is None or share.entry.waited_token is not None
        mine["other" if known else "unknown"] += length
    return tuple(
        _with_useful(Breakdown(**mine), count, config)
        for mine, count in zip(found, macs, strict=True)
    )


def bus_cycles(
    program: Sequence[Instruction],
    timeline: Timeline,
    layers: int,
    config: HardwareConfig,
    cycles: int,
    ends: Ends = (),
) -> tuple[int, ...]:
    """Cycles of each layer in which the bus carried something, of whatever layer."""
    carried = bus_spans(program, timeline, config, cycles)
    found, place = [0] * layers, 0
    for share in shared_spans(timeline, layers, cycles, ends):
        while place < len(carried) and carried[place][2] <= share.begin:
            place += 1
        for _, begin, end in islice(carried, place, None):
            if begin >= share.end:
                break
            found[share.layer] += min(end, share.end) - max(begin, share.begin)
    return tuple(found)


def _with_useful(found: Breakdown, macs: int, config: HardwareConfig) -> Breakdown:
    useful = min(found.unfilled, -(-macs // config.macs_per_cycle))
    return replace(found, useful=useful, unfilled=found.unfilled - useful)


def _waits(entry: TimelineEntry, givers: dict[int, str]) -> list[tuple[str, int]]:
    """Causes that an instruction waited for, the last first."""
    return [
        ("bank", entry.waited_port or 0),
        (givers.get(entry.index, "room"), entry.waited_token or 0),
        ("fetch", entry.waited_memory),
    ]


def _givers(program: Sequence[Instruction], timeline: Timeline) -> dict[int, str]:
    """By instruction that waited for tokens: the unit whose token came last, if it came in the
    cycles of the wait.
    """
    last: dict[int, TimelineEntry] = {}
    for flow in token_flows(program):
        source = timeline[flow.source]
        if flow.target not in last or source.end > last[flow.target].end:
            last[flow.target] = source
    names = {
        Unit.LOAD.name: "load",
        Unit.GEMM.name: "gemm",
        Unit.VECTOR.name: "vector_token",
        Unit.STORE.name: "store",
    }
    found = {}
    for index, source in last.items():
        entry = timeline[index]
        waited = (entry.waited_token or 0) + (entry.waited_port or 0)
        if source.end >= entry.start - waited - 1:
            found[index] = names[source.unit]
    return found
