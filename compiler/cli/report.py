"""Where the time of a run went: figures per layer and per unit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from dovetail.runtime.result import RunResult, Timeline

from .output import table

__all__ = ["LayerFigures", "layer_figures", "layer_table", "unit_table"]


@dataclass(frozen=True, slots=True)
class LayerFigures:
    """One layer: cycles, MACs, DRAM bytes.

    A cycle is that of the layer that GEMM works for; when it does not, of the layer that VECTOR
    works for; when neither does, of the layer of the next instruction that one of them starts.
    """

    name: str
    kind: str
    cycles: int
    macs: int
    utilization: float
    dram_bytes: int


def layer_figures(
    result: RunResult, layers: Sequence[Mapping[str, Any]], macs_per_cycle: int
) -> list[LayerFigures]:
    """Figures of every layer; their cycles add up to those of the run."""
    figures = []
    shares = _layer_cycles(result.timeline, len(layers), result.cycles or 0)
    for layer, cycles in zip(layers, shares, strict=True):
        share = layer["macs"] / (cycles * macs_per_cycle) if cycles else 0.0
        figures.append(
            LayerFigures(
                layer["name"], layer["kind"], cycles, layer["macs"], share, layer["dram_bytes"]
            )
        )
    return figures


def _layer_cycles(timeline: Timeline, count: int, cycles: int) -> list[int]:
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
        spans.append((max(before, entry.start), entry.end, entry.layer))
        before = entry.end
    return spans


def layer_table(figures: Sequence[LayerFigures], result: RunResult) -> Table:
    """The layers, and the sum."""
    rows: list[tuple[object, ...]] = [
        (
            number,
            each.name if len(each.name) <= 40 else f"…{each.name[-39:]}",
            each.kind,
            f"{each.cycles:,}",
            f"{each.macs:,}",
            f"{each.utilization:.1%}",
            f"{each.dram_bytes:,}",
        )
        for number, each in enumerate(figures)
    ]
    total = f"{result.gemm_utilization:.1%}"
    moved = (result.dram_bytes_read or 0) + (result.dram_bytes_written or 0)
    rows.append(("", "all", "", f"{result.cycles:,}", f"{result.macs:,}", total, f"{moved:,}"))
    columns = {
        "#": "right",
        "layer": "left",
        "operators": "left",
        "cycles": "right",
        "MACs": "right",
        "utilisation": "right",
        "DRAM bytes": "right",
    }
    return table("Layers", columns, rows)


def unit_table(result: RunResult) -> Table:
    """Busy and stalled cycles of each unit."""
    counters, cycles = result.counters, result.cycles or 1
    rows: list[tuple[object, ...]] = []
    for unit in ("load", "gemm", "vector", "store"):
        values = [counters[f"{unit}_{kind}"] for kind in ("busy", "stall_token", "stall_port")]
        idle = cycles - sum(values)
        rows.append(
            (unit.upper(), *(f"{value:,} ({value / cycles:.0%})" for value in (*values, idle)))
        )
    columns = {"unit": "left"} | dict.fromkeys(
        ("busy", "waiting for a token", "waiting for a bank", "nothing to do"), "right"
    )
    return table("Where time went (cycles)", columns, rows)
