"""The picture of searches: of each kernel the best time so far, by trials, with quartiles."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Curves", "picture", "quartiles"]

Curves = Mapping[str, Mapping[str, Sequence[Sequence[float]]]]
"""The best ratio after each trial, by kernel, strategy and seed."""

WIDTH, HEIGHT, MARGIN, TOP, COLUMNS = 250, 180, 46, 40, 3
SHOWN = 2.5
"""The largest time over the default's that is drawn."""
TICKS = (2.5, 2.0, 1.6, 1.4, 1.2, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
CLOSE = 13
"""Distance of two lines with a number, in pixels."""
COLORS = ("#1f6fb4", "#c0504d")


def quartiles(curves: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """float64[3, trials]: the lower quartile of the seeds, the median and the upper one."""
    return np.asarray(np.quantile(np.array(curves), (0.25, 0.5, 0.75), axis=0), np.float64)


def picture(curves: Curves) -> str:
    """An SVG with one plot for each kernel: medians as lines, quartiles as bands."""
    parts = []
    for place, (title, strategies) in enumerate(curves.items()):
        left = MARGIN + place % COLUMNS * (WIDTH + MARGIN)
        top = TOP + place // COLUMNS * (HEIGHT + 2 * TOP)
        parts += _plot(title, [quartiles(own) for own in strategies.values()], left, top)
    rows = -(-len(curves) // COLUMNS)
    width = min(len(curves), COLUMNS) * (WIDTH + MARGIN) + MARGIN
    height = rows * (HEIGHT + 2 * TOP) + 20
    x = MARGIN
    for color, name in zip(COLORS, next(iter(curves.values())), strict=True):
        y = height - 12
        parts.append(_line([(x, y - 4), (x + 24, y - 4)], color))
        parts.append(f'<text x="{x + 30}" y="{y}">{name}</text>')
        x += 60 + 7 * len(name)
    said = "best time so far over the default schedule's, by trials; median and quartiles of seeds"
    parts.append(f'<text x="{x}" y="{height - 12}">{said}</text>')
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def _plot(title: str, bands: Sequence[NDArray[np.float64]], left: int, top: int) -> list[str]:
    low = 0.97 * min(float(band.min()) for band in bands)
    high = min(SHOWN, max(float(band[2, 2:].max()) for band in bands))
    count = bands[0].shape[1]

    def height(value: float) -> float:
        return float(top + HEIGHT * np.log(high / min(value, high)) / np.log(high / low))

    parts = [f'<text x="{left}" y="{top - 14}" font-weight="bold">{title}</text>']
    last = -CLOSE
    for value in TICKS:
        y = height(value)
        if low <= value <= high and y - last >= CLOSE:
            last = y
            parts.append(
                f'<line x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{"#888" if value == 1 else "#ddd"}"/>'
                f'<text x="{left - 4}" y="{y + 4:.1f}" text-anchor="end">{value:.1f}</text>'
            )
    for number in range(0, count + 1, max(1, count // 4)):
        x = left + WIDTH * number / count
        parts.append(
            f'<text x="{x:.1f}" y="{top + HEIGHT + 16}" text-anchor="middle">{number}</text>'
        )
    for color, band in zip(COLORS, bands, strict=True):
        lines = [
            [(left + WIDTH * (n + 1) / count, height(y)) for n, y in enumerate(own)] for own in band
        ]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*lines[0], *reversed(lines[2])))
        parts.append(f'<polygon points="{corners}" fill="{color}" fill-opacity="0.18"/>')
        parts.append(_line(lines[1], color))
    return parts


def _line(points: Sequence[tuple[float, float]], color: str) -> str:
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{text}" fill="none" stroke="{color}" stroke-width="2"/>'
