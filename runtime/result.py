"""What running a module gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

__all__ = ["RunResult", "Timeline", "TimelineEntry"]


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class RunResult:
    """Outputs by name, and what the run took.

    macs: multiply-accumulates of the model that ran on the accelerator.
    gemm_utilization: ``macs / (cycles * MAC per cycle)``.
    host_seconds: host steps before and after.  device_seconds: the device.  wall_seconds: all.
    Accelerator figures are None on devices that have none.
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
