"""Normalisation of rows that lie along channels: less their mean, over the root of their squares.

    less[y, x] = -(sum of x[:, y, x])                        to PAR, for all lanes
    acc[...] = rint((C * x[...] + less[y, x]) * step)        deviations, 16 bits
    kept[...] = acc[...] * taps[c]                           where channels do not fill blocks
    over[y, x] = 2^19 * step / sqrt(sum of kept[:, y, x]^2 + epsilon)       to PAR
    wide[...] = rint((C * x[...] + less[y, x]) * over[y, x]) 20 bits, where the deviations were
    y[...] = clip(rint((wide[...] + bias[c]) * scale[c]) + zero_point)

Without a mean to take away ``x + row_bias``, a constant, takes the place of ``C * x + less``.
Where channels do not fill blocks, taps of 0 keep what lies beyond the last out of both sums.
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

__all__ = ["KEPT", "WIDE", "lower_row_norm"]

KEPT, WIDE = "kept", "wide"
"""The buffers of the deviations that count, and of normalised values; both lie where the deviations
were.
"""


def lower_row_norm(
    name: str, operator: RowNorm, x: Activation, output: Activation, bias: Array, scale: Array
) -> LoweredLayer:
    """The loop program of a normalisation of each pixel's channels.

    bias: int32[C], scale: float32[C]: of the operator.
    """
    centred, lanes, filled = operator.about is None, x.lanes, x.channels % x.lanes == 0
    constants: dict[str, Array] = {
        "row_bias": np.full((1, lanes), -(operator.about or 0), np.int32),
        "row_scale": np.full((1, lanes), operator.factor(x.channels), np.float32),
        "bias": _blocked(bias.astype(np.int32), x),
        "scale": _blocked(scale.astype(np.float32), x),
    }
    if all((constants[key] == constants[key][:1]).all() for key in ("bias", "scale")):
        constants |= {key: constants[key][:1] for key in ("bias", "scale")}
    if not filled:
        constants["taps"] = _blocked(np.ones(x.channels, np.int8), x)[:, None]
    given = {key: constant_buffer(key, array) for key, array in constants.items()}
    wide_rows = widened_rows(x, output)
    size, zero = (x.height, wide_rows.width, lanes), Constant(0, DType.INT64)
    less = Buffer(LESS, size, DType.INT32, Scope.PAR)
    over = Buffer(OVER, size, DType.FLOAT32, Scope.PAR)
    acc, kept, wide = (
        Buffer(each, (x.blocks, *size), DType.INT32, Scope.ACC) for each in ("acc", KEPT, WIDE)
    )

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

    def weighted(value: Expr, place: Place) -> Expr:
        """``value``, or 0 beyond the last channel."""
        if filled:
            return value
        return value * Cast(DType.INT32, Load(given["taps"], (place.c, zero, place.l)))

    def inverse_root(squares: Expr) -> Expr:
        return over_root(squares, operator.epsilon, Load(given["row_scale"], (zero, zero)))

    row = row_place(LESS)
    sum_ = total(less, weighted(Cast(DType.INT32, x.at(*row.indices)), row), negated)
    deviations = scaled(acc, lambda place: Load(given["row_scale"], (zero, place.l)))
    place = place_of(f"{KEPT}.")
    counted = Store(kept, place.indices, weighted(Load(acc, place.indices), place))
    counts = () if filled else (nest(wide_rows, counted, f"{KEPT}."),)
    deviation = Load(acc if filled else kept, row_place(OVER).indices)
    root = total(over, deviation * deviation, inverse_root)
    normalised = scaled(wide, lambda place: Load(over, place.indices[1:]))
    place = place_of()
    block_of = place.c if len(constants["bias"]) > 1 else zero
    move, factor = (Load(given[key], (block_of, place.l)) for key in ("bias", "scale"))
    y = requantized(Load(wide, place.indices), move, factor, operator.zero_point, -128, 127)
    last = nest(wide_rows, Store(output.buffer, output.place(*place.indices), y))
    body = block(*((sum_,) if centred else ()), deviations, *counts, root, normalised, last)
    buffers = (wide, over, *(() if filled else (kept,)), acc, *((less,) if centred else ()))
    for buffer in buffers:
        body = Allocate(buffer, body)
    read = [given[key] for key in constants if not centred or key != "row_bias"]
    function = Function(name, (x.buffer, *read), (output.buffer,), body)
    return LoweredLayer(function, constants, (x,), output)


def _blocked(values: Array, x: Activation) -> Array:
    """One value a channel of ``x`` as [blocks, lanes], and 0 in lanes without a channel."""
    padded = np.zeros(x.blocks * x.lanes, values.dtype)
    padded[: x.channels] = values
    return padded.reshape(x.blocks, x.lanes)
