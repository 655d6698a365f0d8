"""The table of the zoo: one row a network and quantiser, and a count of what was refused."""

from collections import Counter

from measure import Figures
from rich.table import Table

__all__ = ["reasons", "summary", "table"]

LONGEST = 60
"""Characters of a reason in the table."""


def table(rows: list[Figures]) -> Table:
    """One row each; ``wrong`` counts elements that differ from ONNX Runtime's with its
    optimisations, then without.
    """
    made = Table()
    headings = ("MMAC", "on it", "parts", "cpu", "kcycles", "x roof", "wrong", "off", "of", "CPU s")
    for heading in ("network", "quantiser"):
        made.add_column(heading, no_wrap=True)
    for heading in headings:
        made.add_column(heading, justify="right", no_wrap=True)
    made.add_column("refused")
    for each in rows:
        made.add_row(each.model, each.quantiser, *_figures(each), _short(each))
    return made


def _figures(each: Figures) -> list[str]:
    if each.where:
        return [f"{each.macs / 1e6:.1f}", *[""] * 9]
    return [
        f"{each.macs / 1e6:.1f}",
        f"{each.accelerated / max(each.macs, 1):.0%}",
        f"{each.parts}",
        f"{each.cpu_parts}",
        f"{each.cycles / 1e3:,.0f}",
        f"{each.cycles / each.roof:.2f}" if each.roof else "",
        *(f"{each.differing[name]}" for name in ("default", "off")),
        f"{each.elements}",
        f"{each.compile_seconds:.1f}",
    ]


def _short(each: Figures) -> str:
    return f"{each.where}: {each.refused[:LONGEST]}" if each.where else ""


def summary(rows: list[Figures]) -> str:
    """How many run, and how many of them with ONNX Runtime's bytes."""
    ran = [each for each in rows if not each.where]
    equal = sum(not each.differing["default"] for each in ran)
    whole = sum(each.accelerated == each.macs for each in ran)
    return f"{len(rows)} networks: {len(ran)} run, {equal} with equal bytes, {whole} with all MACs"


def reasons(rows: list[Figures]) -> list[str]:
    """Reasons why networks do not run whole, the most frequent first."""
    counted = Counter(_short(each) for each in rows if each.where)
    return [f"{count} x {reason}" for reason, count in counted.most_common()]
