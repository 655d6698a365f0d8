"""An exploration as one HTML page that needs nothing else."""

from html import escape
from statistics import geometric_mean

from bokeh.embed import components
from bokeh.models import Model
from bokeh.resources import Resources

from ...explore.evaluate import Failure
from ...explore.exploration import Exploration
from ...explore.front import fitting_front
from .plots import energy_plot, trade_off_plot

__all__ = ["explore_page"]

STYLE = """
body { font-family: system-ui, sans-serif; margin: 1.5em; color: #222; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin-top: 1.6em; }
table { border-collapse: collapse; font-size: 0.85em; }
th, td { padding: 0.2em 0.7em; text-align: right; border-bottom: 1px solid #ddd; }
td.text, th.text { text-align: left; } p { max-width: 60em; }
"""
MOST_FAILURES = 200


def explore_page(found: Exploration) -> str:
    """The page: for each family the trade-off and its front, then what failed and why."""
    plots: dict[str, Model] = {}
    for family in found.basis.areas:
        plots[f"{family} trade-off"] = trade_off_plot(found, family)
        plots[f"{family} energy"] = energy_plot(found, family)
    script, shown = components(plots)
    families = "".join(
        f"<h2>{escape(family)}</h2>{_basis(found, family)}"
        f"{shown[f'{family} trade-off']}{shown[f'{family} energy']}{_front(found, family)}"
        for family in found.basis.areas
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Exploration: {escape(", ".join(found.models))}</title>
{Resources(mode="inline", components=["bokeh"]).render_js()}
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(", ".join(found.models))}: {len(found.results):,} designs</h1>
{_summary(found)}
{families}
{_failures(found)}
{script}
</body>
</html>
"""


def _summary(found: Exploration) -> str:
    how = "a search in" if found.searched else "all of"
    return (
        f"<p>From {how} {found.space.size:,} combinations; {found.progress.failed:,} of "
        f"{found.progress.done:,} evaluations failed. Latencies and energies are geometric means "
        "of the models. Cycles are exact; a latency is cycles over the estimated clock. Energy is "
        "of operations in a 45 nm chip (Horowitz, ISSCC 2014), for comparing designs: without "
        "clock and leakage, and not that of an FPGA.</p>"
    )


def _basis(found: Exploration, family: str) -> str:
    model, clocks = found.basis.areas[family], found.basis.clocks[family]
    spread = f", ±{clocks.error:.0%}" if clocks.error is not None else ", error unknown"
    counted = sum(
        result.families[family].area.basis == "synthesised"
        for result in found.results
        if result.complete
    )
    return (
        f"<p>Clocks are {escape(clocks.basis)}{spread}. Areas: {counted:,} "
        f"designs synthesised, the rest estimated from {len(model.records)} syntheses, each of "
        f"which the others predict within {model.error:.0%}. The share is of an "
        f"{escape(model.family.part)}, of what the design takes most of. Not drawn: designs larger "
        "than the part.</p>"
    )


def _front(found: Exploration, family: str) -> str:
    axes = [axis.name for axis in found.space.axes if len(axis.values) > 1]
    headings = (
        *axes,
        *("ms", *(f"{name}, ms" for name in found.models), "MHz", "LUT", "FF", "multipliers"),
        *("block RAM", "share", "area", "uJ", "uJ, range"),
    )
    lines = []
    for result in fitting_front(found.results, family):
        mine, energies = result.families[family], result.energies.values()
        area = mine.area
        low = geometric_mean(each.low for each in energies)
        high = geometric_mean(each.high for each in energies)
        cells = (
            *(str(result.design.values[name]) for name in axes),
            f"{1e3 * mine.latency:.3f}",
            *(f"{1e3 * mine.latencies[name]:.3f}" for name in found.models),
            f"{mine.clock.hz / 1e6:.1f}",
            *(f"{area.luts:,}", f"{area.registers:,}", str(area.multipliers)),
            *(f"{area.block_rams:g}", f"{area.share:.0%}", area.said),
            *(f"{result.energy:.1f}", f"{low:.1f} to {high:.1f}"),
        )
        lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table class="front"><tr>{head}</tr>{body}</table>'


def _failures(found: Exploration) -> str:
    listed = [
        (result.design.config.name, model, outcome)
        for result in found.results
        for model, outcome in result.outcomes.items()
        if isinstance(outcome, Failure)
    ]
    if not listed:
        return ""
    lines = "".join(
        f'<tr><td class="text">{escape(name)}</td><td class="text">{escape(model)}</td>'
        f'<td class="text">{escape(f"{failure.kind}: {failure.message}")}</td></tr>'
        for name, model, failure in listed[:MOST_FAILURES]
    )
    more = len(listed) - MOST_FAILURES
    rest = f"<p>and {more:,} more, in results.csv</p>" if more > 0 else ""
    return f'<h2>Failed</h2><table id="failed">{lines}</table>{rest}'
