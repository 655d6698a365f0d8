"""A tensor of bytes that is added to a convolution's sums before these are bytes.

    wide[0, c] = rint((acc[c] + bias[c]) * scale[c])             20 bits, where acc is
    wide[1, c] = r[c] * factor                                   behind it
    y[c] = clip(rint((wide[0, c] + wide[1, c] + add_bias) * add_scale) + zero_point)

for all blocks ``c`` of channels, their pixels and lanes.
"""

import numpy as np

from ....dtypes import DType
from ....graph.operators.integer.residual import RequantizeAdd
from ....loops.expressions import (
    BinaryFunction,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    Scope,
    Variable,
)
from ....loops.ir import Allocate, Stmt, Store, block
from ..nest import ADDED
from ..read_nests import MOVED
from .activation import Activation
from .definition import Array, Definition, Fold, Place, nest, place_of, write
from .row_norm import WIDE
from .windows import finish_of

__all__ = ["added", "with_terms"]

SECOND = f"{WIDE}.{MOVED}"
"""The prefix of the loops that write the second term."""


def added(operator: RequantizeAdd, output: Activation) -> Definition:
    """The result, of both terms in ACC."""
    bias = -operator.factor * operator.r_zero_point
    constants: dict[str, Array] = {
        "add_bias": np.full((1, output.lanes), bias, np.int32),
        "add_scale": np.full((1, output.lanes), operator.step, np.float32),
    }
    limits = operator.zero_point, operator.low, operator.high
    wide = _terms(output)

    def value(place: Place) -> Expr:
        return Load(wide, (Variable(ADDED), *place.indices))

    fold = Fold(((ADDED, 2),), BinaryFunction.ADD, 0)
    return Definition(value, finish_of(constants, "add_", *limits), fold, None, constants)


def with_terms(
    last: Stmt, sums: Definition, operator: RequantizeAdd, r: Activation, output: Activation
) -> Stmt:
    """``last``, which adds the terms, after what makes them.

    sums: of the first term, with a finish to 20 bits.
    """
    wide, at, moved = _terms(output), place_of(f"{WIDE}."), place_of(SECOND)
    first, second = (Constant(n, DType.INT64) for n in range(2))
    scaled = Cast(DType.INT32, r.at(*moved.indices)) * operator.factor
    terms = (
        nest(output, write(sums, at, wide, (first, *at.indices)), f"{WIDE}."),
        nest(output, Store(wide, (second, *moved.indices), scaled), SECOND),
    )
    return Allocate(wide, block(*terms, last))


def _terms(output: Activation) -> Buffer:
    size = output.blocks, output.height, output.width, output.lanes
    return Buffer(WIDE, (2, *size), DType.INT32, Scope.ACC)
