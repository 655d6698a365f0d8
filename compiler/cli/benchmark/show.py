"""Results of a benchmark, as JSON and as a table."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from dovetail.isa.frozen import frozen

from ...benchmark.accuracy import Accuracy
from ...benchmark.measure import Measured, quartiles
from ..output import table

__all__ = ["Row", "figures", "result_table"]

SMALL = 1e-4
"""Errors below it are written with an exponent."""


@frozen
class Row:
    """A subject's measurements, compared with the first one's."""

    measured: Measured
    first: Measured
    accuracy: Accuracy

    @property
    def name(self) -> str:
        """With the clock, where cycles are counted."""
        mhz = self.measured.mhz
        return self.measured.subject.name + (f", {mhz:g} MHz" if mhz else "")

    @property
    def spread(self) -> tuple[float, float]:
        """Quartiles of the rounds' latencies; on an accelerator of the samples'."""
        own = self.measured
        if own.mhz:
            return quartiles([cycles / own.mhz / 1e3 for cycles in own.cycles])
        return quartiles(own.milliseconds)

    def to_json(self) -> dict[str, Any]:
        """Everything but the outputs; what is not known is left out."""
        own, ratios = self.measured, self.measured.ratios(self.first)
        low, high = quartiles(ratios)
        found = {
            "device": own.subject.device,
            "target": own.subject.target,
            "milliseconds": own.latency,
            "milliseconds_quartiles": list(self.spread),
            "milliseconds_of_rounds": own.milliseconds,
            "per_second": 1e3 / own.latency,
            "times_first": {"median": statistics.median(ratios), "quartiles": [low, high]},
            "megabytes": own.megabytes,
            "first_seconds": statistics.median(own.first_seconds) if own.first_seconds else None,
            "compile_seconds": own.compile_seconds,
            "build_seconds": own.build_seconds,
            "cycles": own.cycles or None,
            "mhz": own.mhz,
            "host_milliseconds": own.host_milliseconds,
            **asdict(self.accuracy),
        }
        return {name: value for name, value in found.items() if value is not None}


def figures(rows: Sequence[Row], about: Mapping[str, Any]) -> dict[str, Any]:
    """about: the model, and how it was measured."""
    return {**about, "results": [row.to_json() for row in rows]}


def result_table(title: str, rows: Sequence[Row]) -> Table:
    """One line a subject; columns that nobody has anything for are left out."""
    columns: dict[str, list[str]] = {
        "device": [row.measured.subject.name for row in rows],
        "MHz": [_number(row.measured.mhz, "g") for row in rows],
        "cycles": [_cycles(row.measured.cycles) for row in rows],
        "ms": [f"{row.measured.latency:.3f}" for row in rows],
        "quartiles": [_range(row.spread) for row in rows],
        "per s": [f"{1e3 / row.measured.latency:,.0f}" for row in rows],
        "x first": [_times(row) for row in rows],
        "host ms": [_number(row.measured.host_milliseconds, ".3f") for row in rows],
        "MB": [f"{row.measured.megabytes:.3g}" for row in rows],
        "top 1": [_number(row.accuracy.top1, ".1%") for row in rows],
        "agreement": [_number(row.accuracy.agreement, ".1%") for row in rows],
        "error": [_error(row.accuracy) for row in rows],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    justify = {name: "left" if name == "device" else "right" for name in shown}
    return table(title, justify, list(zip(*shown.values(), strict=True)))


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _range(pair: tuple[float, float]) -> str:
    low, high = (f"{each:.3f}" for each in pair)
    return low if low == high else f"{low}-{high}"


def _times(row: Row) -> str:
    ratios = row.measured.ratios(row.first)
    return f"{statistics.median(ratios):.3g}"


def _cycles(cycles: Sequence[int]) -> str:
    return f"{statistics.median(cycles):,.0f}" if cycles else ""


def _error(accuracy: Accuracy) -> str:
    if accuracy.equal:
        return "equal"
    small = accuracy.error is not None and 0 < accuracy.error < SMALL
    return _number(accuracy.error, ".1e" if small else ".2%")
