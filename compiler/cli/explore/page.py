"""An exploration as one HTML page that needs nothing else."""

from html import escape
from statistics import geometric_mean

from ...explore.evaluate import Failure
from ...explore.exploration import Exploration
from ...explore.front import fitting_front
from ..profile.colours import LAYERS
from ..web import filled, packed, read
from .plots import plot_data

__all__ = ["explore_page"]

MOST_FAILURES = 200
HINT = (
    "Large points are of the front, the best in latency, share and energy; the line joins the best "
    "of the two that are drawn. Drag a rectangle to look closer; a double click shows all."
)
STYLES = (("profile", "style"), ("explore", "style"))
SCRIPTS = (
    *(("profile", name) for name in ("data", "tooltip", "axes")),
    *(("explore", name) for name in ("scatter", "main")),
)
"""In the order in which they define what others use."""


def explore_page(found: Exploration) -> str:
    """The page: for each family the trade-off and its front, then what failed and why."""
    families = [plot_data(found, family) for family in found.basis.areas]
    sections = "".join(
        f"<h2>{escape(family)}</h2>{_basis(found, family)}"
        f'<div class="bar sizes" id="sizes-{number}"></div>'
        f'<div class="plots" id="plots-{number}"></div>'
        f'<p class="hint">{HINT}</p>{_front(found, family)}'
        for number, family in enumerate(found.basis.areas)
    )
    parts = {
        "STYLE": "\n".join(read(package, f"{name}.css") for package, name in STYLES),
        "CONTENT": f"{_summary(found)}{sections}{_failures(found)}",
        "DATA": packed({"families": families, "colours": LAYERS}),
        "SCRIPT": "\n".join(read(package, f"{name}.js") for package, name in SCRIPTS),
    }
    title = f"{', '.join(found.models)}: {len(found.results):,} designs"
    return filled(read("explore", "page.html"), title, parts)


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
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    table = f'<table class="front"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    about = f'role="region" aria-label="The front, {escape(family)}"'
    return f'<div class="scroll" tabindex="0" {about}>{table}</div>'


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
