"""3x3 convolution of bytes by minimal filtering, exactly.

The transforms of ``winograd`` with whole numbers: each row of the kernel's is multiplied by the
least number that makes it whole, and the output's columns by what makes all products alike again.
Results are then ``divisor`` times too large: of two factors, a power of 2 and an odd number, the
second has an inverse modulo 2**32, and the first is shifted out.  So all sums may wrap, as long as
results are below ``2**31`` divided by that power.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import lcm

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..types import TensorType
from .protocol import Array, require, require_inputs
from .winograd import KERNEL, Matrix, TiledOutputs, Transforms, interpolation

__all__ = ["WHOLE_POINTS", "IntegerWinograd", "WholeTransforms", "whole_transforms"]

WHOLE_POINTS = (0, 1, -1, 2, -2)
"""Interpolation points besides infinity, the first ones first."""


@frozen
class WholeTransforms:
    """matrices: of whole numbers.  The result in two dimensions is ``odd * 2**shift`` times."""

    matrices: Transforms
    odd: int
    shift: int

    @property
    def inverse(self) -> int:
        """The inverse of ``odd`` modulo 2**32, as int32."""
        found = pow(self.odd, -1, 1 << 32)
        return found - (1 << 32) if found >= 1 << 31 else found

    @property
    def limit(self) -> int:
        """Results are below it."""
        return 1 << (31 - self.shift)


@cache
def whole_transforms(tile: int) -> WholeTransforms:
    """The matrices for a tile of ``tile`` outputs.  Raises as ``transforms``."""
    exact = interpolation(tile, WHOLE_POINTS[: tile + KERNEL - 2])
    scales = [lcm(*(each.denominator for each in row)) for row in exact.kernel]
    common = lcm(*scales)
    kernel: Matrix = tuple(
        tuple(each * scale for each in row) for row, scale in zip(exact.kernel, scales, strict=True)
    )
    output: Matrix = tuple(
        tuple(each * Fraction(common, scale) for each, scale in zip(row, scales, strict=True))
        for row in exact.output
    )
    divisor = common**2
    shift = (divisor & -divisor).bit_length() - 1
    return WholeTransforms(Transforms(exact.input, kernel, output), divisor >> shift, shift)


@frozen
class IntegerWinograd(TiledOutputs):
    """``y[n, o, i, j] = sum(x[n, c, i + k, j + l] * w[o, c, k, l])`` by tiles of outputs.

    x: uint8[N, C / B, H, W, B], with H and W whole tiles and two more.
    u: int16[T * T, O / B, C / B, B / 2, B, 2], the transformed weights, T = tile + 2: places of the
    transform, output blocks, input blocks, pairs of input lanes, output lanes, lanes of a pair.
    Result: int32[N, O / B, rows, columns, B]; what is left of the last tiles is dropped.
    Each result is exact where it is below ``whole_transforms(tile).limit``.
    """

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError for other shapes and types."""
        x, u = require_inputs(self, inputs, 2)
        types = (x.dtype, u.dtype, x.rank, u.rank) == (DType.UINT8, DType.INT16, 5, 6)
        require(self, types, f"{x} and {u}", "uint8 of 5 dimensions and int16 of 6")
        require(self, x.shape[4] % 2 == 0, x, "an even number of lanes")
        return self.outputs(x, u, (x.shape[4] // 2, u.shape[4], 2), DType.INT32)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Transformed, multiplied and transformed back, modulo 2**32."""
        x, u = inputs
        whole = whole_transforms(self.tile)
        into = np.array(whole.matrices.input, np.int64)
        back = np.array(whole.matrices.output, np.int64)
        windows = self.windows(x).astype(np.int64)
        v = np.einsum("pi,qj,ncyxlij->pqncyxl", into, into, windows, optimize=True)
        v = v.astype(np.int16).astype(np.int64).reshape(*v.shape[:-1], -1, 2)
        u = u.reshape(self.size, self.size, *u.shape[1:]).astype(np.int64)
        m = np.einsum("pqncyxlm,pqoclkm->pqnoyxk", v, u, optimize=True)
        y = np.einsum("ip,jq,pqnoyxk->noyixjk", back, back, m, optimize=True)
        y = self.joined(y).astype(np.int32) * np.int32(whole.inverse)
        return (np.ascontiguousarray(y >> whole.shift),)
