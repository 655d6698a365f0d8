"""Where the time of a run went: figures per layer and per unit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from dovetail.runtime.result import RunResult

from .output import table

__all__ = ["LayerFigures", "layer_figures", "layer_table", "unit_table"]


@dataclass(frozen=True, slots=True)
class LayerFigures:
    """One layer: cycles from the end of the layers before it to its own, MACs, DRAM bytes."""

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
    last = [0] * len(layers)
    for entry in result.timeline:
        if entry.unit != "LOAD":
            last[entry.layer] = max(last[entry.layer], entry.end)
    last[-1] = max(last[-1], (result.cycles or 0))
    figures, before = [], 0
    for layer, end in zip(layers, last, strict=True):
        cycles = max(0, end - before)
        before = max(before, end)
        share = layer["macs"] / (cycles * macs_per_cycle) if cycles else 0.0
        figures.append(
            LayerFigures(
                layer["name"], layer["kind"], cycles, layer["macs"], share, layer["dram_bytes"]
            )
        )
    return figures


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
