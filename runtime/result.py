"""Results of running a module."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

__all__ = ["Ends", "RunResult", "Timeline", "TimelineEntry", "join_results"]


@frozen
class TimelineEntry:
    """One instruction: index, unit (LOAD, GEMM, VECTOR, STORE), layer, and its cycles.

    queued: dispatched to its unit's queue.  start: accepted.  end: its last cycle.
    waited_token, waited_port: cycles at the head of the queue, the unit free, for want of a token
    or a bank; None where the device does not know.
    waited_memory: cycles before that in which the unit was idle, its next instruction not fetched.
    """

    index: int
    unit: str
    layer: int
    queued: int
    start: int
    end: int
    waited_token: int | None
    waited_port: int | None
    waited_memory: int


Timeline = tuple[TimelineEntry, ...]

Ends = tuple[tuple[int, int], ...]
"""Where programs end that others follow: the first cycle of the next, and the last layer before."""


@frozen
class RunResult:
    """Outputs by name, and what the run took.

    macs: multiply-accumulates of the model that ran on the accelerator.
    gemm_utilization: ``macs / (cycles * MAC per cycle)``.
    host_seconds: host steps before and after.  device_seconds: the device.  wall_seconds: all.
    Accelerator figures are None on devices that have none.  ends: of programs in the timeline that
    others follow.
    """

    outputs: Mapping[str, NDArray[Any]]
    device: str
    wall_seconds: float
    host_seconds: float
    device_seconds: float
    cycles: int | None = None
    macs: int | None = None
    gemm_busy_cycles: int | None = None
    gemm_utilization: float | None = None
    dram_bytes_read: int | None = None
    dram_bytes_written: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    timeline: Timeline = ()
    ends: Ends = ()

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {a.dtype}{list(a.shape)}" for name, a in self.outputs.items())
        cycles = "" if self.cycles is None else f", {self.cycles:,} cycles"
        return f"<RunResult of {self.device}: {shapes}{cycles}>"

    def _repr_html_(self) -> str:
        from .html import table

        return table(repr(self), ("figure", "value"), list(self.figures().items()))

    def figures(self) -> dict[str, Any]:
        """Everything but the arrays and the timeline, as JSON values; what is None is left out."""
        names = (
            *("device", "wall_seconds", "host_seconds", "device_seconds", "cycles", "macs"),
            *("gemm_busy_cycles", "gemm_utilization", "dram_bytes_read", "dram_bytes_written"),
        )
        found = {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}


def join_results(
    results: Sequence[RunResult],
    outputs: Mapping[str, NDArray[Any]],
    device: str,
    wall_seconds: float,
) -> RunResult:
    """Result of parts that ran in order: figures of accelerators added up, the time of other parts
    as the host's.

    In the timeline each program begins where the one before it ended: instructions, layers and
    cycles are counted on.  None where one of them has none.
    """
    counted = [each for each in results if each.cycles is not None]
    if not counted:
        return RunResult(outputs, device, wall_seconds, 0.0, sum(r.device_seconds for r in results))
    others = sum(each.wall_seconds for each in results if each.cycles is None)
    if len(counted) == 1:
        host = counted[0].host_seconds + others
        return replace(
            counted[0], outputs=outputs, device=device, wall_seconds=wall_seconds, host_seconds=host
        )

    def total(name: str) -> Any:
        return sum(getattr(each, name) for each in counted)

    timeline, ends = _joined_timelines(counted)
    possible = sum((r.macs or 0) / r.gemm_utilization for r in counted if r.gemm_utilization)
    return RunResult(
        outputs=outputs,
        device=device,
        wall_seconds=wall_seconds,
        host_seconds=total("host_seconds") + others,
        device_seconds=total("device_seconds"),
        cycles=total("cycles"),
        macs=total("macs"),
        gemm_busy_cycles=total("gemm_busy_cycles"),
        gemm_utilization=total("macs") / possible if possible else 0.0,
        dram_bytes_read=total("dram_bytes_read"),
        dram_bytes_written=total("dram_bytes_written"),
        counters={
            name: sum(each.counters[name] for each in counted) for name in counted[0].counters
        },
        timeline=timeline,
        ends=ends,
    )


def _joined_timelines(results: Sequence[RunResult]) -> tuple[Timeline, Ends]:
    if not all(each.timeline for each in results):
        return (), ()
    entries: list[TimelineEntry] = []
    ends: list[tuple[int, int]] = []
    layers = cycles = 0
    for result in results:
        count = len(entries)
        entries += [
            replace(
                each,
                index=each.index + count,
                layer=each.layer + layers,
                queued=each.queued + cycles,
                start=each.start + cycles,
                end=each.end + cycles,
            )
            for each in result.timeline
        ]
        layers = 1 + max(each.layer for each in entries)
        cycles += result.cycles or 0
        ends.append((cycles, layers - 1))
    return tuple(entries), tuple(ends[:-1])
