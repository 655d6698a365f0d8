"""The layer that each cycle of a run belongs to.

A cycle is that of the layer that GEMM works for; when it does not, of the layer that VECTOR works
for; when neither does, of the layer of the next instruction that one of them starts.  Those after a
program's last work are of its last layer.
"""

from itertools import pairwise

from dovetail.isa.frozen import frozen

from ..result import Ends, Timeline, TimelineEntry

__all__ = ["Share", "busy_cycles", "share_cycles", "shared_spans", "unit_spans"]


@frozen
class Share:
    """Cycles from ``begin`` to before ``end``, of a layer.

    unit: that worked for it, None where neither GEMM nor VECTOR did.  entry: the instruction it
    worked on, or the one that ended the wait; None after a program's last one.
    """

    begin: int
    end: int
    layer: int
    unit: str | None
    entry: TimelineEntry | None


Span = tuple[int, int, TimelineEntry]


def unit_spans(timeline: Timeline, unit: str) -> list[Span]:
    """First cycle, the cycle after the last, and instruction, of what the unit did; no overlap."""
    spans, before = [], 0
    for entry in sorted((e for e in timeline if e.unit == unit), key=lambda e: e.start):
        if entry.start < 0 or entry.end < 0:
            continue
        spans.append((max(before, entry.start), entry.end, entry))
        before = entry.end
    return spans


def shared_spans(timeline: Timeline, count: int, cycles: int, ends: Ends = ()) -> list[Share]:
    """All ``cycles`` of a run, in order, each in one share; ``count``: of layers.

    ends: of programs that others follow.
    """
    shares: list[Share] = []
    before, pending = 0, [*ends, (cycles, count - 1)]
    for begin, end, entry in sorted(_working(timeline), key=lambda span: span[:2]):
        if end <= max(begin, before):
            continue
        while pending[0][0] <= begin:
            over, layer = pending.pop(0)
            shares.append(Share(before, over, layer, None, None))
            before = over
        if begin > before:
            shares.append(Share(before, begin, entry.layer, None, entry))
        shares.append(Share(max(begin, before), end, entry.layer, entry.unit, entry))
        before = end
    for over, layer in pending:
        if before < over:
            shares.append(Share(before, over, layer, None, None))
            before = over
    return shares


def _working(timeline: Timeline) -> list[Span]:
    """Work of GEMM, and work of VECTOR while GEMM was idle."""
    gemm = unit_spans(timeline, "GEMM")
    free = [
        (0, gemm[0][0] if gemm else None),
        *((first[1], second[0]) for first, second in pairwise(gemm)),
        *([(gemm[-1][1], None)] if gemm else []),
    ]
    spans, place = list(gemm), 0
    for begin, end, entry in unit_spans(timeline, "VECTOR"):
        while place + 1 < len(free) and free[place + 1][0] <= begin:
            place += 1
        for low, high in free[place:]:
            if low >= end:
                break
            spans.append((max(begin, low), end if high is None else min(end, high), entry))
    return spans


def share_cycles(timeline: Timeline, count: int, cycles: int, ends: Ends = ()) -> list[int]:
    """Cycles of each of ``count`` layers; they add up to ``cycles``."""
    shares = [0] * count
    for share in shared_spans(timeline, count, cycles, ends):
        shares[share.layer] += share.end - share.begin
    return shares


def busy_cycles(timeline: Timeline, unit: str, count: int) -> list[int]:
    """Cycles that ``unit`` spent on each layer; those of overlapping instructions count once."""
    busy = [0] * count
    for begin, end, entry in unit_spans(timeline, unit):
        busy[entry.layer] += end - begin
    return busy
