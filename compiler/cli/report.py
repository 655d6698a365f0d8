"""Where the time of a run went: figures per layer and per unit."""

from collections.abc import Sequence

from rich.table import Table

from dovetail.runtime.profile.layers import LayerProfile
from dovetail.runtime.profile.units import profile_units
from dovetail.runtime.result import RunResult

from .output import table

__all__ = ["layer_table", "short", "unit_table"]


def layer_table(figures: Sequence[LayerProfile], result: RunResult) -> Table:
    """The layers, what their instructions take of the bus, and the sum."""
    rows: list[tuple[object, ...]] = [
        (
            number,
            short(each.name),
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
    program = moved - sum(each.dram_bytes for each in figures)
    rows.append(("", "instructions", "", "", "", "", f"{program:,}"))
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


def short(name: str) -> str:
    """The end of a layer's name, for a line of a terminal."""
    return name if len(name) <= 40 else f"…{name[-39:]}"


def unit_table(result: RunResult) -> Table:
    """Cycles of each unit, by what it did."""
    cycles = result.cycles or 1
    rows: list[tuple[object, ...]] = [
        (
            each.unit,
            *(
                f"{value:,} ({value / cycles:.0%})"
                for value in (each.busy, each.token, each.bank, each.idle)
            ),
        )
        for each in profile_units(result)
    ]
    columns = {"unit": "left"} | dict.fromkeys(
        ("busy", "waiting for a token", "waiting for a bank", "nothing to do"), "right"
    )
    return table("Where time went (cycles)", columns, rows)
