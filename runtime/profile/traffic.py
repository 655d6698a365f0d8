"""Bytes on the memory bus over time.

A timeline says when an instruction began and ended, not when each of its beats came.  But the bus
carries one beat at a time, so the beats are put back one after the other: each within the time of
its instruction, as early as it can, and of those that could come, the one whose instruction ends
first.  The beats of a real run fit into their instructions' times, so these do (Jackson's rule:
earliest deadline first meets all deadlines that can be met on one machine).
"""

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.footprint import dram_rows
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction, Load, Store

from ..result import Timeline

__all__ = ["bus_spans", "dram_traffic"]

Series = NDArray[np.float64]


@frozen
class _Transfer:
    """``work`` cycles of the bus that an instruction takes, from ``begin`` to before ``end``."""

    kind: str
    begin: int
    end: int
    work: int


def bus_spans(
    program: Sequence[Instruction], timeline: Timeline, config: HardwareConfig, cycles: int
) -> list[tuple[str, int, int]]:
    """Kind ("fetch", "load" or "store"), first cycle and the one after the last, of what the bus
    carried; in order, one at a time, and all that was moved.
    """
    spans: list[tuple[str, int, int]] = []
    for kind, begin, end in _spans(_transfers(program, timeline, config), cycles):
        if spans and spans[-1][0] == kind and spans[-1][2] == begin:
            begin = spans.pop()[1]
        spans.append((kind, begin, end))
    return spans


def dram_traffic(
    program: Sequence[Instruction],
    timeline: Timeline,
    config: HardwareConfig,
    cycles: int,
    bins: int,
) -> dict[str, Series]:
    """Bytes a cycle in each of ``bins`` equal parts of the run: "fetch", "load", "store".

    Together never more than the bus carries in a cycle; over the run, all that was moved.
    """
    edges = np.linspace(0, cycles, bins + 1)
    bytes_a_cycle = config.bus_bytes / config.dram.beat_interval_cycles
    spans, found = bus_spans(program, timeline, config, cycles), {}
    for kind in ("fetch", "load", "store"):
        mine = np.array([span[1:] for span in spans if span[0] == kind], np.float64).reshape(-1, 2)
        lengths = mine[:, 1] - mine[:, 0]
        carried = np.cumsum(lengths)
        times = np.concatenate(([0.0], mine.reshape(-1)))
        sums = np.concatenate(([0.0], np.stack([carried - lengths, carried], 1).reshape(-1)))
        found[kind] = np.diff(np.interp(edges, times, sums)) * bytes_a_cycle * bins / cycles
    return found


def _transfers(
    program: Sequence[Instruction], timeline: Timeline, config: HardwareConfig
) -> list[_Transfer]:
    """Traffic of every instruction; it is fetched once there is room ahead of the queues."""
    interval, ahead = config.dram.beat_interval_cycles, config.fetch_ahead
    latency = 0 if config.dram.sdram else config.dram.latency_cycles
    found = []
    for place, (entry, instruction) in enumerate(zip(timeline, program, strict=True)):
        if entry.queued >= 0:
            room = timeline[place - ahead].queued + 1 if place >= ahead else 0
            work = INSTRUCTION_BYTES // config.bus_bytes * interval
            found.append(_Transfer("fetch", room + latency, entry.queued, work))
        if entry.end >= 0 and isinstance(instruction, Load | Store):
            size = sum(size for _, size in dram_rows(instruction, config))
            if size:
                kind = "load" if isinstance(instruction, Load) else "store"
                work = size // config.bus_bytes * interval
                found.append(_Transfer(kind, entry.start + 1 + latency, entry.end + 1, work))
    return found


def _spans(transfers: Sequence[_Transfer], cycles: int) -> list[tuple[str, int, int]]:
    """Kind, first cycle and the one after the last, of what the bus carried; ascending, apart."""
    early = 0
    while True:
        spans = _in_turn(transfers, early)
        over = spans[-1][2] - cycles if spans else 0
        if over <= 0 or early >= cycles:
            return spans
        # The windows were too late, as those of a run that was stopped may be.
        early += over


def _in_turn(transfers: Sequence[_Transfer], early: int) -> list[tuple[str, int, int]]:
    waiting = sorted(transfers, key=lambda each: each.begin, reverse=True)
    ready: list[tuple[int, int, str, int]] = []
    spans: list[tuple[str, int, int]] = []
    now = 0
    while waiting or ready:
        if not ready:
            now = max(now, waiting[-1].begin - early)
        while waiting and waiting[-1].begin - early <= now:
            each = waiting.pop()
            heappush(ready, (each.end, len(waiting), each.kind, each.work))
        end, number, kind, work = heappop(ready)
        after = now + work
        if waiting:
            after = min(after, max(waiting[-1].begin - early, now + 1))
        spans.append((kind, now, after))
        if after - now < work:
            heappush(ready, (end, number, kind, work - (after - now)))
        now = after
    return spans
