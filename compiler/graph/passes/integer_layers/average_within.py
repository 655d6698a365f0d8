"""Averages over what of each window is within the image."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from dovetail.isa.frozen import frozen

from ...ir import GraphBuilder
from ...operators.assembly import Assemble
from ...operators.integer.rules import Pair
from ...operators.integer.windows import AveragePool2d
from .values import Averaged

__all__ = ["average_within"]


@frozen
class _Piece:
    """``count`` windows of a row or column of them from number ``place`` on, each with ``taps``
    elements, the first of them element ``start``.
    """

    place: int
    count: int
    start: int
    taps: int


def average_within(
    graph: GraphBuilder,
    value: Averaged,
    pool: Callable[[Pair], AveragePool2d],
    x: str,
    stem: str,
    origin: str,
) -> str:
    """Add a pool for each kind of window, and what puts the image together from their results.

    pool: the pool over windows of a size.  x: int8[1, H, W, C].
    """
    _, height, width, _ = graph.types[x].shape
    rows = _pieces(height, value.kernel[0], value.strides[0], value.pads[0], value.pads[2])
    columns = _pieces(width, value.kernel[1], value.strides[1], value.pads[1], value.pads[3])
    names, places = [], []
    for down, across in product(rows, columns):
        operator = replace(
            pool((down.taps, across.taps)),
            start=(down.start, across.start),
            size=(down.count, across.count),
        )
        names.append(graph.node(operator, (x,), f"{stem}/piece", origin))
        places.append((down.place, across.place))
    if len(names) == 1:
        return names[0]
    size = rows[-1].place + rows[-1].count, columns[-1].place + columns[-1].count
    return graph.node(Assemble(size, tuple(places), (1, 1)), tuple(names), stem, origin)


def _pieces(size: int, window: int, stride: int, before: int, after: int) -> list[_Piece]:
    """The windows along one dimension, those together that are within the image alike."""
    found: list[_Piece] = []
    for place in range((size + before + after - window) // stride + 1):
        start = max(place * stride - before, 0)
        taps = min(place * stride - before + window, size) - start
        last = found[-1] if found else None
        if last and last.taps == taps and start == last.start + last.count * stride:
            found[-1] = replace(last, count=last.count + 1)
        else:
            found.append(_Piece(place, 1, start, taps))
    return found
