"""Where the cycles of a run went, layer by layer."""

from collections.abc import Sequence

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen

from ..accelerator.part import LayerFigures
from ..result import RunResult, Timeline
from .shares import busy_cycles, share_cycles

__all__ = ["LayerProfile", "profile_layers"]


@frozen
class LayerProfile:
    """One layer of a run.

    name: no other layer of the run has it.
    cycles: of the run, by ``shares``; those of all layers add up to those of the run.
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
        """Resource that takes longest: "gemm", "vector" or "dram"."""
        found = {"gemm": self.gemm_cycles, "vector": self.vector_cycles, "dram": self.dram_cycles}
        return max(found, key=lambda name: found[name])


def profile_layers(
    result: RunResult, layers: Sequence[LayerFigures], config: HardwareConfig
) -> tuple[LayerProfile, ...]:
    """Figures of every layer; ``layers``: as the module lists them.

    Of layers that share a name, as those of several parts may, the second is called "name (2)".
    """
    count = len(layers)
    shares = share_cycles(result.timeline, count, result.cycles or 0, result.ends)
    busy = {unit: busy_cycles(result.timeline, unit, count) for unit in ("GEMM", "VECTOR")}
    waits = [_waits(result.timeline, number) for number in range(count)]
    beat = config.dram.beat_interval_cycles
    names = _told_apart([layer.name for layer in layers])
    return tuple(
        LayerProfile(
            names[number],
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


def _told_apart(names: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for name in names:
        shown, number = name, 1
        while shown in found:
            number += 1
            shown = f"{name} ({number})"
        found[shown] = None
    return list(found)


def _waits(timeline: Timeline, layer: int) -> tuple[int | None, int | None, int]:
    entries = [e for e in timeline if e.layer == layer and e.unit in ("GEMM", "VECTOR")]
    known = all(e.waited_token is not None and e.waited_port is not None for e in entries)
    return (
        sum(e.waited_token or 0 for e in entries) if known else None,
        sum(e.waited_port or 0 for e in entries) if known else None,
        sum(e.waited_memory for e in entries),
    )
