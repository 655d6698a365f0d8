"""Movements of pixels as pieces: channels of evenly spaced rows and columns."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....graph.operators.integer.rules import Pair

__all__ = ["Indices", "Picture", "Piece", "Run", "numbers_of", "pieces_of"]

LONGEST = 8
"""The largest period of rows or columns, except that in which each row or column is a phase of its
own.
"""
MOST = 64
"""Pieces that an image is made of, at most."""
Indices = NDArray[np.int64]


@frozen
class Run:
    """Pixels ``start``, ``start + step``, ... of a row or column, ``count`` of them."""

    start: int
    step: int
    count: int


@frozen
class Piece:
    """Channels ``places`` of a result: ``channels`` of the pixels ``rows`` and ``columns``."""

    rows: Run
    columns: Run
    channels: tuple[int, ...]
    places: tuple[int, ...]


@frozen
class Picture:
    """An image: pixels ``steps`` apart from each of ``starts`` on, and the pieces they are made of,
    one after the other.
    """

    starts: tuple[Pair, ...]
    steps: Pair
    parts: tuple[list[Piece], ...]

    @property
    def pieces(self) -> int:
        """Pieces of all parts."""
        return sum(map(len, self.parts))

    @property
    def picked(self) -> int:
        """Pieces of channels that do not follow each other."""
        found = (piece.channels for pieces in self.parts for piece in pieces)
        return sum(each != tuple(range(each[0], each[0] + len(each))) for each in found)


def numbers_of(shape: tuple[int, ...], planes: bool) -> Indices:
    """The number of each element; that in [1, H, W, C] if the shape is ``planes``, [1, C, H, W]."""
    if not planes:
        return np.arange(np.prod(shape)).reshape(shape)
    pixels = np.arange(np.prod(shape)).reshape(1, *shape[2:], shape[1])
    return np.asarray(pixels.transpose(0, 3, 1, 2))


def pieces_of(numbers: Indices, size: tuple[int, ...]) -> Picture | None:
    """The least periods of rows and columns with which all phases are pieces; without such periods
    the longest runs of rows and columns; None when there are too many.

    numbers: [H, W, C], of the elements of an image of ``size``.
    """
    height, width = numbers.shape[:2]
    rows, rest = np.divmod(numbers, size[1] * size[2])
    columns, channels = np.divmod(rest, size[2])

    def picture(starts: list[Pair], steps: Pair, ends: list[Pair]) -> Picture | None:
        found: list[list[Piece]] = []
        more = MOST - len(starts)  # than one for each phase
        for (top, left), (bottom, right) in zip(starts, ends, strict=True):
            part = np.s_[top : bottom : steps[0], left : right : steps[1]]
            pieces = _phase(rows[part], columns[part], channels[part], 1 + more)
            if pieces is None:
                return None
            found.append(pieces)
            more -= len(pieces) - 1
        return Picture(tuple(starts), steps, tuple(found))

    ways = product(_periods(height), _periods(width))
    down = _cuts(rows[:, :, 0], columns[:, :, 0])
    across = _cuts(columns[:, :, 0].T, rows[:, :, 0].T)
    runs = len(down) * len(across)
    for steps in sorted(ways, key=lambda way: (way[0] * way[1], way)):
        starts = list(product(range(steps[0]), range(steps[1])))
        if len(starts) > MOST or len(starts) > runs > 1:
            break
        found = picture(starts, steps, [(height, width)] * len(starts))
        if found is not None:
            return found
    if runs > MOST:
        return None
    ends = product([*down[1:], height], [*across[1:], width])
    return picture(list(product(down, across)), (1, 1), list(ends))


def _periods(count: int) -> list[int]:
    """Periods of ``count`` rows or columns that are tried."""
    return [*range(1, min(count, LONGEST) + 1), *([count] if LONGEST < count <= MOST else [])]


def _cuts(moving: Indices, fixed: Indices) -> list[int]:
    """Where runs begin that are as long as possible: of rows of ``moving`` that are evenly apart,
    and of equal ones of ``fixed``.
    """
    steps = np.diff(moving, axis=0)
    even, whole = (steps == steps[:, :1]).all(1) & (steps[:, 0] >= 1), steps[:, 0].tolist()
    goes_on = (even & (fixed[1:] == fixed[:-1]).all(1)).tolist()
    found = [0]
    for place in range(1, len(moving)):
        if not goes_on[place - 1] or whole[place - 1] != whole[found[-1]]:
            found.append(place)
    return found


def _phase(rows: Indices, columns: Indices, channels: Indices, most: int) -> list[Piece] | None:
    """The pieces with one set of rows and columns each; None when some have another, or there are
    more than ``most``.
    """
    down, across = _runs(rows[:, 0]), _runs(columns[0])
    if down is None or across is None:
        return None
    groups: dict[tuple[Pair, Pair], list[int]] = {}
    for place, key in enumerate(zip(down, across, strict=True)):
        groups.setdefault(key, []).append(place)
    if len(groups) > most:
        return None
    if (rows != rows[:, :1]).any() or (columns != columns[:1]).any():
        return None
    if (channels != channels[:1, :1]).any():
        return None
    first = channels[0, 0].tolist()
    return [
        Piece(
            Run(*of_rows, len(rows)),
            Run(*of_columns, columns.shape[1]),
            tuple([first[place] for place in places]),
            tuple(places),
        )
        for (of_rows, of_columns), places in groups.items()
    ]


def _runs(numbers: Indices) -> list[Pair] | None:
    """Start and step of the run in each column of ``numbers``; None when some are not evenly
    apart.
    """
    steps = numbers[1] - numbers[0] if len(numbers) > 1 else np.ones_like(numbers[0])
    if (steps < 1).any() or (np.diff(numbers, axis=0) != steps).any():
        return None
    return list(zip(numbers[0].tolist(), steps.tolist(), strict=True))
