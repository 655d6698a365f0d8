"""Softmax of rows along channels: their largest element, two bytes of each exponential,
the sum.

    less[y, x] = -max of x[:, y, x]                       to PAR, for all lanes
    low[...] = table_low[max(x[...] + less[y, x], first) + 255]     int8, where the result will be
    high[...] = table_high[...]                           int8, where x was: nobody else reads it
    acc[...] = 256 * high[...] + low[...]
    over[y, x] = steps / (sum of acc[:, y, x])            to PAR, as a float32 scale
    y[...] = clip(rint(acc[...] * over[y, x]) + zero_point)

Rows of a table before ``first`` hold 0, as row ``first`` does; LOAD need not bring them.
Lanes beyond the last channel hold the least byte, so that they are never the largest; a tap of 0
keeps them out of the sum.
"""

import numpy as np

from ....dtypes import DType
from ....graph.operators.integer.softmax import RowSoftmax, exponential_table
from ....loops.expressions import (
    Binary,
    BinaryFunction,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    Scope,
)
from ....loops.ir import Allocate, Function, Stmt, Store, block
from ..finishes import scaled_by
from ..read_nests import HIGH, LOW
from ..row_finishes import negated, over_sum
from .activation import Activation
from .definition import Array, LoweredLayer, constant_buffer, nest, place_of
from .row_parameters import LESS, OVER, over_lanes, row_place, widened_rows

__all__ = ["lower_row_softmax"]


def lower_row_softmax(
    name: str, operator: RowSoftmax, x: Activation, output: Activation
) -> LoweredLayer:
    """The loop program of a softmax of each pixel's channels."""
    constants = _constants(operator, x)
    buffers = {key: constant_buffer(key, array) for key, array in constants.items()}
    rows, lanes = widened_rows(x, output), x.lanes
    size = (x.height, rows.width, lanes)
    inner = (x.blocks, *size)
    less = Buffer(LESS, size, DType.INT32, Scope.PAR)
    over = Buffer(OVER, size, DType.FLOAT32, Scope.PAR)
    low, high = (Buffer(each, inner, DType.INT8, Scope.ACT) for each in (LOW, HIGH))
    acc = Buffer("acc", inner, DType.INT32, Scope.ACC)

    def exponential(target: Buffer, table: Buffer) -> Stmt:
        place = place_of(f"{target.name}.")
        moved = Cast(DType.INT32, x.at(*place.indices)) + Load(less, place.indices[1:])
        first = Constant(_first(constants[table.name]) - 255, DType.INT32)
        row = Cast(DType.INT64, Binary(BinaryFunction.MAX, moved, first)) + 255
        looked_up = Load(table, (row, place.l))
        return nest(rows, Store(target, place.indices, looked_up), f"{target.name}.")

    place = place_of("acc.")
    upper, lower = (Cast(DType.INT32, Load(each, place.indices)) for each in (high, low))
    joined = nest(rows, Store(acc, place.indices, upper * 256 + lower * 1), "acc.")

    row = row_place(LESS)
    least = Constant(-128, DType.INT8)
    every = x.blocks, lanes
    most = over_lanes(less, *every, BinaryFunction.MAX, least, x.at(*row.indices), negated)
    row = row_place(OVER)
    zero = Constant(0, DType.INT64)
    tap = Load(buffers["taps"], (row.c, zero, row.l))
    weighted = Load(acc, row.indices) * Cast(DType.INT32, tap)

    def divided(total: Expr) -> Expr:
        bias, scale = (Load(buffers[key], (zero, zero)) for key in ("bias", "scale"))
        return over_sum(total, bias, scale)

    start = Constant(0, DType.INT32)
    total = over_lanes(over, *every, BinaryFunction.ADD, start, weighted, divided)
    place = place_of()
    scale = Load(over, place.indices[1:])
    value = scaled_by(Load(acc, place.indices), scale, operator.zero_point, -128, 127)
    last = nest(rows, Store(output.buffer, output.place(*place.indices), value))
    parts = (
        *(most, exponential(low, buffers["table_low"]), exponential(high, buffers["table_high"])),
        *(joined, total, last),
    )
    body = block(*parts)
    for buffer in (over, acc, high, low, less):
        body = Allocate(buffer, body)
    inputs = (x.buffer, *buffers.values())
    assert lanes == output.lanes
    return LoweredLayer(Function(name, inputs, (output.buffer,), body), constants, (x,), output)


def _first(table: Array) -> int:
    """The last row of those at the beginning that hold 0."""
    return max(int(np.flatnonzero(table.any(1))[0]) - 1, 0)


def _constants(operator: RowSoftmax, x: Activation) -> dict[str, Array]:
    """The table's bytes in all lanes; 1 for each channel there is; what is divided by the sum."""
    table = exponential_table(operator.x_scale)
    upper = (table + 128) >> 8
    taps = np.zeros((x.blocks * x.lanes), np.int8)
    taps[: x.channels] = 1
    halves = {"table_low": table - 256 * upper, "table_high": upper}
    return {
        **{
            key: np.repeat(half.astype(np.int8)[:, None], x.lanes, axis=1)
            for key, half in halves.items()
        },
        "taps": taps.reshape(x.blocks, 1, x.lanes),
        "bias": np.zeros((1, x.lanes), np.int32),
        "scale": np.full((1, x.lanes), operator.steps, np.float32),
    }
