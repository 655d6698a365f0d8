"""Normalisation of rows that lie along channels: less their mean, over the root of their squares.

    less[y, x] = -(sum of x[:, y, x])                        to PAR, for all lanes
    acc[...] = rint((C * x[...] + less[y, x]) * step)        deviations, 16 bits
    over[y, x] = 2^19 * step / sqrt(sum of acc[:, y, x]^2 + epsilon)        to PAR
    wide[...] = rint((C * x[...] + less[y, x]) * over[y, x]) 20 bits, where the deviations were
    y[...] = clip(rint((wide[...] + bias[c]) * scale[c]) + zero_point)

Without a mean to take away ``x + row_bias``, a constant, takes the place of ``C * x + less``.  Rows
fill blocks: what lies beyond their last channel would count among the squares.
"""

from collections.abc import Callable

import numpy as np

from ....dtypes import DType
from ....graph.operators.integer.norm import RowNorm
from ....loops.expressions import BinaryFunction, Buffer, Cast, Constant, Expr, Load, Scope
from ....loops.ir import Allocate, Function, Stmt, Store, block
from ..finishes import requantized
from ..row_finishes import negated, over_root, widened
from .activation import Activation
from .definition import Array, LoweredLayer, Place, constant_buffer, nest, place_of
from .row_parameters import LESS, OVER, over_lanes, row_place, widened_rows

__all__ = ["WIDE", "lower_row_norm"]

WIDE = "wide"
"""The buffer of normalised values, which lies where the deviations were."""


def lower_row_norm(
    name: str, operator: RowNorm, x: Activation, output: Activation, bias: Array, scale: Array
) -> LoweredLayer:
    """The loop program of a normalisation of each pixel's channels.

    bias: int32[C], scale: float32[C]: of the operator.
    """
    centred, lanes = operator.about is None, x.lanes
    constants: dict[str, Array] = {
        "row_bias": np.full((1, lanes), -(operator.about or 0), np.int32),
        "row_scale": np.full((1, lanes), operator.factor(x.channels), np.float32),
        "bias": bias.astype(np.int32).reshape(x.blocks, lanes),
        "scale": scale.astype(np.float32).reshape(x.blocks, lanes),
    }
    given = {key: constant_buffer(key, array) for key, array in constants.items()}
    wide_rows = widened_rows(x, output)
    size, zero = (x.height, wide_rows.width, lanes), Constant(0, DType.INT64)
    less = Buffer(LESS, size, DType.INT32, Scope.PAR)
    over = Buffer(OVER, size, DType.FLOAT32, Scope.PAR)
    acc, wide = (Buffer(each, (x.blocks, *size), DType.INT32, Scope.ACC) for each in ("acc", WIDE))

    def scaled(target: Buffer, scale_of: Callable[[Place], Load]) -> Stmt:
        place = place_of(f"{target.name}.")
        value: Expr = Cast(DType.INT32, x.at(*place.indices))
        moved = Load(less, place.indices[1:])
        if centred:
            value = value * x.channels
        else:
            moved = Load(given["row_bias"], (zero, place.l))
        result = widened(value, moved, scale_of(place))
        return nest(wide_rows, Store(target, place.indices, result), f"{target.name}.")

    def total(target: Buffer, value: Expr, finish: Callable[[Expr], Expr]) -> Stmt:
        start = Constant(0, DType.INT32)
        return over_lanes(target, x.blocks, lanes, BinaryFunction.ADD, start, value, finish)

    def inverse_root(squares: Expr) -> Expr:
        return over_root(squares, operator.epsilon, Load(given["row_scale"], (zero, zero)))

    sum_ = total(less, Cast(DType.INT32, x.at(*row_place(LESS).indices)), negated)
    deviations = scaled(acc, lambda place: Load(given["row_scale"], (zero, place.l)))
    deviation = Load(acc, row_place(OVER).indices)
    root = total(over, deviation * deviation, inverse_root)
    normalised = scaled(wide, lambda place: Load(over, place.indices[1:]))
    place = place_of()
    move, factor = (Load(given[key], (place.c, place.l)) for key in ("bias", "scale"))
    y = requantized(Load(wide, place.indices), move, factor, operator.zero_point, -128, 127)
    last = nest(wide_rows, Store(output.buffer, output.place(*place.indices), y))
    body = block(*((sum_,) if centred else ()), deviations, root, normalised, last)
    for buffer in (wide, over, acc, *((less,) if centred else ())):
        body = Allocate(buffer, body)
    read = [given[key] for key in constants if not centred or key != "row_bias"]
    function = Function(name, (x.buffer, *read), (output.buffer,), body)
    return LoweredLayer(function, constants, (x,), output)
