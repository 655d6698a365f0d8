"""The timeline as a picture (SVG): one row a unit, one box an instruction, coloured by layer."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import count

from dovetail.runtime.result import Timeline, TimelineEntry

from .profile.colours import WAITS, layer_colour

__all__ = ["Picture", "timeline_svg"]

ROWS = ("LOAD", "GEMM", "VECTOR", "STORE")
WIDTH, LEFT, RIGHT, TOP = 1400, 80, 20, 56
ROW, GAP, LINE = 44, 14, 18
BOTTOM = TOP + len(ROWS) * (ROW + GAP)
WAITED = {
    "memory": (WAITS["fetch"], "waiting for its next instruction to be fetched and queued"),
    "token": (WAITS["token"], "waiting for a token of another unit"),
    "port": (WAITS["bank"], "waiting for a scratchpad bank that another unit holds"),
}
"""Why a unit stood still: the hatching's colour and the legend, in the order of their turn."""
MOST_TICKS = 12
NARROWEST = 0.4
"""Width of a box that would be too narrow to see."""


class Picture(str):
    """The text of an SVG; notebooks show what it draws."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Picture of {len(self):,} characters>"

    def _repr_svg_(self) -> str:
        return str(self)


def timeline_svg(timeline: Timeline, layers: Sequence[str], cycles: int) -> Picture:
    """The picture of a run of ``cycles`` cycles; ``layers`` are the layers' names.

    A box reaches from the cycle after an instruction was accepted to its last one; the hatched
    strip before it is the time its unit stood still, by reason.  A tooltip gives the figures.
    """
    scale = (WIDTH - LEFT - RIGHT) / max(cycles, 1)
    height = BOTTOM + 40 + LINE * (len(layers) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        "<defs>",
        *(_hatching(name, colour) for name, (colour, _) in WAITED.items()),
        "</defs>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{cycles:,} cycles</text>',
        *_axis(cycles, scale),
    ]
    for row, unit in enumerate(ROWS):
        y = TOP + row * (ROW + GAP)
        parts.append(f'<text x="10" y="{y + ROW / 2 + 4:g}">{unit}</text>')
        accepted = [entry for entry in timeline if entry.unit == unit and entry.start >= 0]
        for entry in accepted:
            parts += _waits(entry, y, scale)
        parts += [_box(entry, layers[entry.layer], y, scale, cycles) for entry in accepted]
    parts += _legend(layers)
    return Picture("\n".join((*parts, "</svg>", "")))


def _hatching(name: str, colour: str) -> str:
    return (
        f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" stroke="{colour}" '
        'stroke-width="2"/></pattern>'
    )


def _axis(cycles: int, scale: float) -> Iterator[str]:
    """Lines at round numbers of cycles."""
    rounds = (digit * 10**power for power in count() for digit in (1, 2, 5))
    step = next(size for size in rounds if size * MOST_TICKS >= cycles)
    for tick in range(0, cycles + 1, step):
        x = LEFT + scale * tick
        yield f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{BOTTOM}" stroke="#ddd"/>'
        yield (
            f'<text x="{x:.1f}" y="{BOTTOM + 14}" text-anchor="middle" fill="#555">{tick:,}</text>'
        )


def _box(entry: TimelineEntry, layer: str, y: int, scale: float, cycles: int) -> str:
    """The instruction; one that never ended reaches to the end of the run."""
    end = entry.end if entry.end >= 0 else cycles
    title = (
        f"instruction {entry.index} of {layer}; queued {entry.queued}, accepted {entry.start}, "
        f"ended {entry.end}; waited {entry.waited_memory} to be queued, "
        f"{_known(entry.waited_token)} for tokens, {_known(entry.waited_port)} for banks"
    )
    return (
        f'<rect x="{LEFT + scale * (entry.start + 1):.2f}" y="{y}" '
        f'width="{max(scale * (end - entry.start), NARROWEST):.2f}" height="{ROW}" '
        f'fill="{layer_colour(entry.layer)}" stroke="white" stroke-width="0.3">'
        f"<title>{escape(title)}</title></rect>"
    )


def _known(cycles: int | None) -> str:
    return "unknown" if cycles is None else f"{cycles}"


def _waits(entry: TimelineEntry, y: int, scale: float) -> Iterator[str]:
    """Hatched strips that end where the instruction begins."""
    waited = {"memory": entry.waited_memory, "token": entry.waited_token, "port": entry.waited_port}
    end = entry.start + 1
    for name in reversed(WAITED):
        cycles = waited[name]
        if cycles:
            end -= cycles
            yield (
                f'<rect x="{LEFT + scale * end:.2f}" y="{y + ROW / 3:.1f}" '
                f'width="{scale * cycles:.2f}" height="{ROW / 3:.1f}" fill="url(#{name})"/>'
            )


def _legend(layers: Sequence[str]) -> Iterator[str]:
    """Layers by colour, one below the other; reasons by hatching, side by side above them."""
    fills = [f"url(#{name})" for name in WAITED]
    for number, (fill, (_, text)) in enumerate(zip(fills, WAITED.values(), strict=True)):
        yield from _sample(LEFT + 400 * number, BOTTOM + 40, fill, text)
    for number, name in enumerate(layers):
        colour = layer_colour(number)
        yield from _sample(LEFT, BOTTOM + 40 + LINE * (number + 1), colour, f"{number}: {name}")


def _sample(x: int, y: int, fill: str, text: str) -> Iterator[str]:
    yield f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{fill}"/>'
    yield f'<text x="{x + LINE}" y="{y}">{escape(text)}</text>'
