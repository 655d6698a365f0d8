"""3x3 convolution by minimal filtering (Winograd): fewer products, between sums.

Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016; the matrices
by interpolation at small points and infinity (Toom and Cook).
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import ClassVar

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import GraphError
from ..types import TensorType
from .protocol import Array, Fusion, require, require_inputs

__all__ = [
    "KERNEL",
    "TILES",
    "TiledOutputs",
    "Transforms",
    "Winograd",
    "interpolation",
    "transforms",
]

KERNEL = 3
"""Rows and columns of the kernel."""
TILES = (2, 4)
"""Rows and columns of the outputs that are computed together."""
POINTS = {2: (0, 1, -1), 4: (0, Fraction(2, 3), Fraction(-2, 3), Fraction(3, 2), Fraction(-3, 2))}
"""Interpolation points of a tile, besides infinity.

Those of 4: small products of powers, and pairs that share their sums.  The largest error of float32
is a quarter of that with 1, -1, 2 and -2, measured on sums over 256 channels.
"""

Matrix = tuple[tuple[Fraction, ...], ...]


@frozen
class Transforms:
    """``y = output ((kernel w) * (input x))`` in one dimension.

    For a tile of m and a kernel of 3, x has m + 2 values: input is [m + 2, m + 2], kernel
    [m + 2, 3], output [m, m + 2].
    """

    input: Matrix
    kernel: Matrix
    output: Matrix


def transforms(tile: int) -> Transforms:
    """The matrices for a tile of ``tile`` outputs of floats.

    Raises GraphError for a tile without points.
    """
    if tile not in POINTS:
        raise GraphError(f"tile of {tile} outputs; required one of {TILES}")
    return interpolation(tile, POINTS[tile])


@cache
def interpolation(tile: int, chosen: tuple[Fraction | int, ...]) -> Transforms:
    """The exact matrices for a tile and as many points as ``tile + KERNEL - 2``."""
    points = [Fraction(point) for point in chosen]
    rows, kernel = [], []
    for point in points:
        others = [other for other in points if other != point]
        scale = Fraction(1)
        for other in others:
            scale *= point - other
        rows.append((*_polynomial(others), Fraction(0)))
        kernel.append(tuple(point**power / scale for power in range(KERNEL)))
    rows.append(_polynomial(points))
    kernel.append((Fraction(0),) * (KERNEL - 1) + (Fraction(1),))
    output = tuple(
        (*(point**power for point in points), Fraction(int(power == tile - 1)))
        for power in range(tile)
    )
    return Transforms(tuple(rows), tuple(kernel), output)


def _polynomial(roots: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The coefficients of the product of ``x - root``, of the constant first."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        found = [a - root * b for a, b in zip(shifted, [*found, Fraction(0)], strict=True)]
    return tuple(found)


@frozen
class TiledOutputs:
    """``rows`` by ``columns`` outputs, ``tile`` by ``tile`` at a time.

    Raises GraphError for a tile without points, and for no outputs.
    """

    tile: int
    rows: int
    columns: int

    fusion: ClassVar[Fusion] = Fusion.CONTRACTION

    def __post_init__(self) -> None:
        transforms(self.tile)
        if min(self.rows, self.columns) < 1:
            raise GraphError(f"{self}: required at least one row and column")

    @property
    def size(self) -> int:
        """Rows and columns of the inputs of a tile."""
        return self.tile + KERNEL - 1

    @property
    def tiles(self) -> tuple[int, int]:
        """Rows and columns of tiles."""
        return -(-self.rows // self.tile), -(-self.columns // self.tile)

    def outputs(
        self, x: TensorType, u: TensorType, lanes: tuple[int, ...], dtype: DType
    ) -> tuple[TensorType, ...]:
        """The result, of ``dtype``; lanes: the last dimensions of ``u``.

        Raises GraphError for other shapes.
        """
        spatial = tuple(count * self.tile + KERNEL - 1 for count in self.tiles)
        require(self, x.shape[2:4] == spatial, x, f"{spatial} positions")
        weights = (self.size**2, u.shape[1], x.shape[1], *lanes)
        require(self, u.shape == weights, u, f"weights {list(weights)}")
        return (TensorType((x.shape[0], u.shape[1], self.rows, self.columns, u.shape[4]), dtype),)

    def windows(self, x: Array) -> Array:
        """Inputs of tiles, [N, C / B, rows, columns, B, T, T]."""
        found = np.lib.stride_tricks.sliding_window_view(x, (self.size, self.size), axis=(2, 3))
        return found[:, :, :: self.tile, :: self.tile]

    def joined(self, y: Array) -> Array:
        """The outputs of tiles [N, O / B, rows, tile, columns, tile, B] side by side."""
        down, across = self.tiles
        y = y.reshape(*y.shape[:2], down * self.tile, across * self.tile, y.shape[-1])
        return y[:, :, : self.rows, : self.columns]


@frozen
class Winograd(TiledOutputs):
    """``y[n, o, i, j] = sum(x[n, c, i + k, j + l] * w[o, c, k, l])`` by tiles of outputs.

    x: float32[N, C / B, H, W, B], with H and W whole tiles and two more.
    u: float32[T * T, O / B, C / B, B, B], the transformed weights, T = tile + 2: places of the
    transform, output blocks, input blocks, input lanes, output lanes.
    Result: float32[N, O / B, rows, columns, B]; what is left of the last tiles is dropped.
    Products are of sums, so the result is less exact than of direct sums, and infinite values
    become NaN.
    """

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError for other shapes and types."""
        x, u = require_inputs(self, inputs, 2)
        types = x.dtype == u.dtype == DType.FLOAT32 and x.rank == u.rank == 5
        require(self, types, f"{x} and {u}", "float32 of 5 dimensions")
        return self.outputs(x, u, (x.shape[4], u.shape[4]), DType.FLOAT32)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Transformed, multiplied and transformed back in float32."""
        x, u = inputs
        matrices = transforms(self.tile)
        into, back = (np.array(matrix, np.float32) for matrix in (matrices.input, matrices.output))
        v = np.einsum("pi,qj,ncyxlij->pqncyxl", into, into, self.windows(x), optimize=True)
        u = u.reshape(self.size, self.size, *u.shape[1:])
        m = np.einsum("pqncyxl,pqoclk->pqnoyxk", v, u, optimize=True)
        y = np.einsum("ip,jq,pqnoyxk->noyixjk", back, back, m, optimize=True)
        return (np.ascontiguousarray(self.joined(y), np.float32),)
