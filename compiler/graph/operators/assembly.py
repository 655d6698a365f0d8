"""Images put together from images that each give some of the pixels, or of the channels; and one
folded in the middle.
"""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen
from dovetail.runtime.accelerator import host_steps

from ...dtypes import DType
from ..types import TensorType
from .protocol import Array, Movement, require

__all__ = ["Append", "Assemble", "Halves"]

IMAGE = 4
"""Dimensions of an image, batch and channels included."""
TWO = 2
"""Operands of what is appended."""


@frozen
class Assemble(Movement):
    """``y[0, starts[i][0] + r * steps[0], starts[i][1] + c * steps[1]] = x_i[0, r, c]``.

    x_i: T[1, h_i, w_i, C] to T[1, size[0], size[1], C].  Each pixel comes from one operand.
    turned: numbers of the operands that come upside down: row r of these is row h_i - 1 - r here.
    """

    size: tuple[int, int]
    starts: tuple[tuple[int, int], ...]
    steps: tuple[int, int]
    turned: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        least = min(*self.size, *self.steps)
        require(self, least >= 1, f"{self.size} and {self.steps}", "a size and steps of at least 1")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """An image of ``size``."""
        count = len(self.starts)
        require(self, len(inputs) == count > 0, f"{len(inputs)} operands", f"{count}")
        first = inputs[0]
        for kind in inputs:
            fits = len(kind.shape) == len(first.shape) == 4 and kind.dtype == first.dtype
            fits = fits and (kind.shape[0], kind.shape[3]) == (1, first.shape[3])
            require(self, fits, kind, f"{first.dtype}[1, h, w, C]")
        covered = np.zeros(self.size, np.int64)
        places = self._places([(kind.shape[1], kind.shape[2]) for kind in inputs])
        for start, rows, columns in places:
            inside = rows.max() < self.size[0] and columns[-1] < self.size[1] and min(start) >= 0
            require(self, inside, f"an operand at {start}", f"pixels within {self.size}")
            covered[np.ix_(rows, columns)] += 1
        require(self, bool((covered == 1).all()), "pixels of no or two operands", "of one each")
        return (TensorType((1, *self.size, first.shape[3]), first.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The operands' pixels in their places."""
        first = inputs[0]
        result = np.empty((1, *self.size, first.shape[3]), first.dtype)
        for x, (_, rows, columns) in zip(
            inputs, self._places([x.shape[1:3] for x in inputs]), strict=True
        ):
            result[0, rows[:, None], columns] = x[0]
        return (result,)

    def order(self, shapes: Sequence[tuple[int, ...]]) -> Array:
        """The place of each pixel of the result, row by row, among all pixels of the operands.

        shapes: height and width of each operand.
        """
        found, taken = np.empty(self.size, np.int64), 0
        for shape, (_, rows, columns) in zip(shapes, self._places(shapes), strict=True):
            count = shape[0] * shape[1]
            found[np.ix_(rows, columns)] = np.arange(taken, taken + count).reshape(shape)
            taken += count
        return found.reshape(-1)

    def _places(
        self, shapes: Sequence[tuple[int, ...]]
    ) -> list[tuple[tuple[int, int], Array, Array]]:
        """Start, rows and columns of each operand."""
        return [
            (
                start,
                start[0] + self.steps[0] * np.arange(height)[:: -1 if i in self.turned else 1],
                start[1] + self.steps[1] * np.arange(width),
            )
            for i, (start, (height, width)) in enumerate(zip(self.starts, shapes, strict=True))
        ]


@frozen
class Halves(Movement):
    """Rows of an image from its top down, and beside them, as more channels, rows from below up.

    ``y[0, r, c, k] = x[0, r - above, c, k]``, ``y[0, r, c, C + k] = x[0, last - r, c, k]``, and
    ``fill`` where ``x`` has no such row.
    x: int8[1, H, W, C] to int8[1, rows, W, 2 * C].
    """

    rows: int
    above: int
    last: int
    fill: int

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """An image of ``rows`` rows and twice the channels."""
        require(self, len(inputs) == 1, f"{len(inputs)} operands", "1")
        (x,) = inputs
        fits = x.rank == IMAGE and x.shape[0] == 1 and x.dtype == DType.INT8
        require(self, fits and self.rows > 0, x, "int8[1, H, W, C], and rows")
        return (TensorType((1, self.rows, x.shape[2], 2 * x.shape[3]), x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """As the host does."""
        return (host_steps.Halves(self.rows, self.above, self.last, self.fill).run(inputs[0]),)


@frozen
class Append(Movement):
    """The first ``start`` columns (axis 2) or channels (axis 3) of ``x``, and behind them ``y``.

    x: T[1, H, W, C], y: the same except for the size of ``axis``.  ``y`` may take the room that
    ``x`` has from ``start`` on: a cache, and the row that a run adds to it.
    """

    axis: int
    start: int

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """An image of ``start`` columns or channels, and those of ``y``."""
        require(self, len(inputs) == TWO and self.axis in (2, 3), inputs, "axis 2 or 3 of two")
        x, y = inputs
        fits = x.rank == IMAGE and 0 <= self.start <= x.shape[self.axis]
        require(self, fits, x, "T[1, H, W, C], and a start within it")
        size = list(x.shape)
        size[self.axis] = y.shape[self.axis] if y.rank == IMAGE else 0
        require(self, y == TensorType(tuple(size), x.dtype), y, f"{x.dtype}{size}")
        size[self.axis] += self.start
        return (TensorType(tuple(size), x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By joining both."""
        x, y = inputs
        kept = x[(slice(None),) * self.axis + (slice(self.start),)]
        return (np.concatenate([kept, y], axis=self.axis),)
