"""A benchmark as a picture (SVG): a panel of bars for each figure, a bar for each device."""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from .show import Row

__all__ = ["picture_svg"]

WIDTH, LEFT, RIGHT, TOP = 860, 250, 120, 90
BAR, LINE, HEADING, GAP = 16, 26, 26, 22
WIDE = 20.0
"""From this ratio of the largest to the smallest on, an axis is logarithmic."""
STYLE = """
svg { font: 13px sans-serif; color-scheme: light dark }
.paper { fill: #fff } text { fill: #222 } .soft { fill: #666 } .bar { fill: #4e79a7 }
.spread { stroke: #222; stroke-width: 1.5 } .base { stroke: #bbb }
@media (prefers-color-scheme: dark) {
.paper { fill: #16181c } text { fill: #eee } .soft { fill: #aaa } .bar { fill: #76a5d8 }
.spread { stroke: #eee } .base { stroke: #555 } }
"""


class Panel(NamedTuple):
    """values: of each row, None for none.  spread: lower and upper ends of a line over each bar.
    form: of the number next to the bar.  whole: the axis ends there; None for the largest value.
    """

    title: str
    values: Sequence[float | None]
    form: str
    spread: Sequence[tuple[float, float]] = ()
    whole: float | None = None


def picture_svg(model: str, rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """The picture; it follows the reader's choice of light or dark."""
    latencies = [row.measured.latency for row in rows]
    panels = [
        Panel("latency, ms", latencies, ",.3f", [row.spread for row in rows]),
        Panel("inferences a second", [1e3 / each for each in latencies], ",.0f"),
        Panel("memory, MB", [row.measured.megabytes for row in rows], ",.3g"),
        Panel("largest output as labelled", [r.accuracy.top1 for r in rows], ".1%", whole=1.0),
        Panel(
            f"largest output as of {about['against']}",
            [row.accuracy.agreement for row in rows], ".1%", whole=1.0,
        ),
    ]  # fmt: skip
    y = TOP
    parts: list[str] = []
    for panel in panels:
        if any(value is not None for value in panel.values):
            parts += _panel(panel, [row.name for row in rows], y)
            y += HEADING + LINE * len(rows) + GAP
    said = (
        f"Medians of {about['rounds']} rounds of {about['runs']} runs in fresh processes; lines "
        "from quartile to quartile.",
        "Accelerators: cycles at the clock that is named; memory is their DRAM.",
    )
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
            f'viewBox="0 0 {WIDTH} {y}" role="img" aria-label="Benchmark of {escape(model)}">',
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{y}"/>',
            f'<text x="20" y="28" font-size="17">{escape(model)}</text>',
            *(
                f'<text class="soft" x="20" y="{48 + 18 * n}">{t}</text>'
                for n, t in enumerate(said)
            ),
            *parts,
            "</svg>",
            "",
        )
    )


def _panel(panel: Panel, names: Sequence[str], top: int) -> Iterator[str]:
    known = [value for value in panel.values if value is not None]
    most = panel.whole or max(known)
    least = min((value for value in known if value > 0), default=most)
    logarithmic = panel.whole is None and most > WIDE * least
    room = WIDTH - LEFT - RIGHT

    def x(value: float) -> float:
        if not logarithmic:
            return LEFT + room * value / (most or 1)
        decades = math.log10(most / least) + 1
        return LEFT + room * (math.log10(max(value, least / 10) / least) + 1) / decades

    note = ", logarithmic" if logarithmic else ""
    yield f'<text x="20" y="{top + 12}" font-weight="bold">{escape(panel.title)}{note}</text>'
    base = top + HEADING - 4
    yield (
        f'<line class="base" x1="{LEFT}" y1="{base}" x2="{LEFT}" y2="{base + LINE * len(names)}"/>'
    )
    for number, (name, value) in enumerate(zip(names, panel.values, strict=True)):
        y = top + HEADING + LINE * number
        yield f'<text x="{LEFT - 10}" y="{y + 13}" text-anchor="end">{escape(name)}</text>'
        if value is None:
            continue
        end = x(value)
        yield (
            f'<rect class="bar" x="{LEFT}" y="{y}" width="{max(end - LEFT, 1):.1f}" '
            f'height="{BAR}"/>'
        )
        beside = end
        if panel.spread and panel.spread[number][0] < panel.spread[number][1]:
            low, high = map(x, panel.spread[number])
            high = min(high, WIDTH - RIGHT + 20)
            middle = y + BAR / 2
            yield (
                f'<line class="spread" x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}"/>'
            )
            beside = max(end, high)
        yield f'<text x="{beside + 8:.1f}" y="{y + 13}">{format(value, panel.form)}</text>'
