"""The timeline as a picture: one row a unit, one box an instruction, coloured by layer (SVG)."""

from collections.abc import Sequence
from html import escape

from dovetail.runtime.result import Timeline

__all__ = ["timeline_svg"]

ROWS = ("LOAD", "GEMM", "VECTOR", "STORE")
WIDTH, LEFT, TOP, ROW, GAP = 1400, 80, 48, 44, 14
COLOURS = (
    *("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2"),
    *("#edc948", "#9c755f", "#ff9da7", "#bab0ac"),
)
TICKS = 10


def timeline_svg(timeline: Timeline, layers: Sequence[str], cycles: int) -> str:
    """The picture of a run of ``cycles`` cycles; ``layers`` are the layers' names.

    A box goes from an instruction's start to its end; the hatched strip before it is the time it waited for
    a token (red) or a bank (blue).  A tooltip gives the figures.
    """
    height = TOP + len(ROWS) * (ROW + GAP) + 40 + 18 * len(layers)
    scale = (WIDTH - LEFT - 20) / max(cycles, 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        "<defs>",
        *(_hatch(name, colour) for name, colour in (("token", "#c00"), ("bank", "#06c"))),
        "</defs>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="15">{cycles:,} cycles</text>',
    ]
    bottom = TOP + len(ROWS) * (ROW + GAP)
    for tick in range(TICKS + 1):
        x = LEFT + scale * cycles * tick / TICKS
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle" fill="#555">'
            f"{cycles * tick // TICKS:,}</text>"
        )
    for row, unit in enumerate(ROWS):
        y = TOP + row * (ROW + GAP)
        parts.append(f'<text x="10" y="{y + ROW / 2 + 4}">{unit}</text>')
        for entry in timeline:
            if entry.unit != unit or entry.end < 0:
                continue
            parts += _waits(entry.start, entry.waited_token, entry.waited_port, y, scale)
            colour = COLOURS[entry.layer % len(COLOURS)]
            title = (
                f"instruction {entry.index}: {layers[entry.layer]}; cycles {entry.start} to {entry.end}; "
                f"queued {entry.queued}"
            )
            parts.append(
                f'<rect x="{LEFT + scale * (entry.start + 1):.2f}" y="{y}" '
                f'width="{max(scale * (entry.end - entry.start), 0.4):.2f}" height="{ROW}" '
                f'fill="{colour}" stroke="white" stroke-width="0.3"><title>{escape(title)}</title></rect>'
            )
    for number, name in enumerate(layers):
        y = bottom + 36 + 18 * number
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<rect x="{LEFT}" y="{y - 10}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + 18}" y="{y}">{number}: {escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _hatch(name: str, colour: str) -> str:
    return (
        f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" stroke="{colour}" '
        'stroke-width="1.5"/></pattern>'
    )


def _waits(start: int, token: int | None, bank: int | None, y: int, scale: float) -> list[str]:
    boxes, end = [], start
    for cycles, pattern in ((bank, "bank"), (token, "token")):
        if cycles:
            end -= cycles
            boxes.append(
                f'<rect x="{LEFT + scale * end:.2f}" y="{y + ROW / 3:.1f}" '
                f'width="{scale * cycles:.2f}" height="{ROW / 3:.1f}" fill="url(#{pattern})"/>'
            )
    return boxes
