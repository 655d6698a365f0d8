"""Where the cycles of a run went, layer by layer."""

from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.isa.config import HardwareConfig

from ..accelerator.part import LayerFigures
from ..result import RunResult, Timeline

__all__ = ["LayerProfile", "profile_layers", "share_cycles"]


@dataclass(frozen=True, slots=True)
class LayerProfile:
    """One layer of a run.

    cycles: of the run.  A cycle is that of the layer that GEMM works for; when it does not, of the
    layer that VECTOR works for; when neither does, of the layer of the next instruction that one
    of them starts.  So the cycles of all layers add up to those of the run.
    utilization: ``macs / (cycles * MAC a cycle)``.
    gemm_cycles, vector_cycles: that the unit spent on the layer's instructions.  dram_cycles: that
    its bytes take on the bus at the least.
    waited_token, waited_port, waited_memory: cycles that GEMM and VECTOR stood still before its
    instructions, by reason; None where the device does not know.
    """

    name: str
    kind: str
    cycles: int
    macs: int
    utilization: float
    dram_bytes: int
    gemm_cycles: int
    vector_cycles: int
    dram_cycles: int
    waited_token: int | None
    waited_port: int | None
    waited_memory: int

    @property
    def bound(self) -> str:
        """What takes longest: "gemm", "vector" or "dram"."""
        found = {"gemm": self.gemm_cycles, "vector": self.vector_cycles, "dram": self.dram_cycles}
        return max(found, key=lambda name: found[name])

    @property
    def intensity(self) -> float:
        """MACs for each byte of DRAM; infinite without any."""
        return self.macs / self.dram_bytes if self.dram_bytes else float("inf")


def profile_layers(
    result: RunResult, layers: Sequence[LayerFigures], config: HardwareConfig
) -> tuple[LayerProfile, ...]:
    """Figures of every layer; ``layers``: as the module lists them."""
    count = len(layers)
    shares = share_cycles(result.timeline, count, result.cycles or 0)
    busy = {unit: _busy(result.timeline, unit, count) for unit in ("GEMM", "VECTOR")}
    waits = [_waits(result.timeline, number) for number in range(count)]
    beat = config.dram.beat_interval_cycles
    return tuple(
        LayerProfile(
            layer.name,
            layer.kind,
            cycles,
            layer.macs,
            layer.macs / (cycles * config.macs_per_cycle) if cycles else 0.0,
            layer.dram_bytes,
            busy["GEMM"][number],
            busy["VECTOR"][number],
            -(-layer.dram_bytes // config.bus_bytes) * beat,
            *waits[number],
        )
        for number, (layer, cycles) in enumerate(zip(layers, shares, strict=True))
    )


def _busy(timeline: Timeline, unit: str, count: int) -> list[int]:
    """Cycles that ``unit`` spent on each layer; those of overlapping instructions count once."""
    busy = [0] * count
    for begin, end, layer in _spans(timeline, unit):
        busy[layer] += end - begin
    return busy


def _waits(timeline: Timeline, layer: int) -> tuple[int | None, int | None, int]:
    entries = [e for e in timeline if e.layer == layer and e.unit in ("GEMM", "VECTOR")]
    known = all(e.waited_token is not None and e.waited_port is not None for e in entries)
    return (
        sum(e.waited_token or 0 for e in entries) if known else None,
        sum(e.waited_port or 0 for e in entries) if known else None,
        sum(e.waited_memory for e in entries),
    )


def share_cycles(timeline: Timeline, count: int, cycles: int) -> list[int]:
    """Cycles of each of ``count`` layers; they add up to ``cycles``."""
    gemm = _spans(timeline, "GEMM")
    spans, place = list(gemm), 0
    for begin, end, layer in _spans(timeline, "VECTOR"):
        while place < len(gemm) and gemm[place][1] <= begin:
            place += 1
        for other in range(place, len(gemm)):
            if gemm[other][0] >= end:
                break
            spans.append((begin, min(gemm[other][0], end), layer))
            begin = max(begin, gemm[other][1])
        spans.append((begin, end, layer))
    shares, before = [0] * count, 0
    for begin, end, layer in sorted(spans):
        if end > begin:
            shares[layer] += max(0, end - before)
            before = max(before, end)
    shares[-1] += cycles - before
    return shares


def _spans(timeline: Timeline, unit: str) -> list[tuple[int, int, int]]:
    """First cycle, the cycle after the last, and layer, of what the unit did; without overlap."""
    spans, before = [], 0
    for entry in sorted((e for e in timeline if e.unit == unit), key=lambda e: e.start):
        if entry.start < 0 or entry.end < 0:
            continue
        spans.append((max(before, entry.start), entry.end, entry.layer))
        before = entry.end
    return spans
