"""Normalisation of rows along channels: less their mean, over the root of their squares.

    less[y, x] = -(sum of x[:, y, x])                        to PAR, for all lanes
    acc[...] = rint((C * x[...] + less[y, x]) * step)        deviations, 16 bits
    kept[...] = acc[...] * taps[c]                           where channels do not fill blocks
    over[y, x] = 2^19 * step / sqrt(sum of kept[:, y, x]^2 + epsilon)       to PAR
    wide[...] = rint((C * x[...] + less[y, x]) * over[y, x]) 20 bits, where the deviations were
    y[...] = clip(rint((wide[...] + bias[c]) * scale[c]) + zero_point)

Where the operator has a share, the root is that of a byte, which is where the result will be:

    squares[y, x] = -(sum of kept[:, y, x]^2)                to PAR
    root_byte[y, x] = table[rint(squares[y, x] * share) + 127]
    over[y, x] = 2^shift * step / sqrt(root_byte[y, x, 0] + epsilon)

Without a mean to take away ``x + row_bias``, a constant, takes the place of ``C * x + less``.
Where channels do not fill blocks, taps of 0 keep what is beyond the last channel out of both
sums.
"""

from collections.abc import Callable, Mapping

import numpy as np

from ....dtypes import DType
from ....graph.operators.integer.norm import RowNorm
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
from ....loops.ir import Allocate, Function, Stmt, Store, block, loops
from ..finishes import requantized
from ..read_nests import BYTE
from ..row_finishes import negated, over_root, widened
from .activation import Activation
from .definition import Array, LoweredLayer, Place, constant_buffer, nest, place_of
from .row_parameters import LESS, OVER, SQUARES, over_lanes, row_place, widened_rows

__all__ = ["KEPT", "WIDE", "lower_row_norm"]

STEP, SHARE = range(2)
"""The scales of rows that are constants."""

KEPT, WIDE = "kept", "wide"
"""The buffers of the deviations that count, and of normalised values; both are where the deviations
were.
"""


def lower_row_norm(
    name: str,
    operator: RowNorm,
    x: Activation,
    output: Activation,
    bias: Array,
    scale: Array,
    table: Array | None = None,
) -> LoweredLayer:
    """The loop program of a normalisation of each pixel's channels.

    bias: int32[C], scale: float32[C], table: int8[256] where there is a share: of the operator.
    """
    centred, lanes, filled = operator.about is None, x.lanes, x.channels % x.lanes == 0
    factors = [operator.factor(x.channels)]
    if table is not None:
        factors.append(np.float32(operator.share))
    constants: dict[str, Array] = {
        "row_bias": np.full((len(factors), lanes), -(operator.about or 0), np.int32),
        "row_scale": np.repeat(np.array(factors, np.float32)[:, None], lanes, axis=1),
        "bias": _blocked(bias.astype(np.int32), x),
        "scale": _blocked(scale.astype(np.float32), x),
    }
    if all((constants[key] == constants[key][:1]).all() for key in ("bias", "scale")):
        constants |= {key: constants[key][:1] for key in ("bias", "scale")}
    if not filled or table is not None:
        constants["taps"] = _taps(x, none_and_first=table is not None)
    if table is not None:
        constants["table"] = np.repeat(table[:, None], lanes, axis=1)
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

    def row_scale(which: int, lane: Expr = zero) -> Load:
        return Load(given["row_scale"], (Constant(which, DType.INT64), lane))

    def inverse_root(squares: Expr) -> Expr:
        return over_root(squares, operator.epsilon, row_scale(STEP), operator.shift)

    row = row_place(LESS)
    sum_ = total(less, weighted(Cast(DType.INT32, x.at(*row.indices)), row), negated)
    deviations = scaled(acc, lambda place: row_scale(STEP, place.l))
    place = place_of(f"{KEPT}.")
    counted = Store(kept, place.indices, weighted(Load(acc, place.indices), place))
    counts = () if filled else (nest(wide_rows, counted, f"{KEPT}."),)
    deviation = acc if filled else kept
    if table is None:
        taken = Load(deviation, row_place(OVER).indices)
        roots: tuple[Stmt, ...] = (total(over, taken * taken, inverse_root),)
    else:
        taken = Load(deviation, row_place(SQUARES).indices)
        squares = Buffer(SQUARES, size, DType.INT32, Scope.PAR)
        byte = Buffer(BYTE, (1, *size), DType.INT8, Scope.ACT)
        first = row_place(OVER)
        tap = Load(given["taps"], (Constant(x.blocks + 1, DType.INT64), zero, first.l))
        read_byte = Cast(DType.INT32, Load(byte, first.indices)) * Cast(DType.INT32, tap)
        roots = (
            total(squares, taken * taken, negated),
            _byte_of(byte, deviation, squares, given, x.blocks),
            over_lanes(
                over,
                1,
                lanes,
                BinaryFunction.ADD,
                Constant(0, DType.INT32),
                read_byte,
                inverse_root,
            ),
        )
    normalised = scaled(wide, lambda place: Load(over, place.indices[1:]))
    place = place_of()
    block_of = place.c if len(constants["bias"]) > 1 else zero
    move, factor = (Load(given[key], (block_of, place.l)) for key in ("bias", "scale"))
    y = requantized(Load(wide, place.indices), move, factor, operator.zero_point, -128, 127)
    last = nest(wide_rows, Store(output.buffer, output.place(*place.indices), y))
    body = block(*((sum_,) if centred else ()), deviations, *counts, *roots, normalised, last)
    inside = () if table is None else (byte, squares)
    kept_too = () if filled else (kept,)
    buffers = (wide, over, *inside, *kept_too, acc, *((less,) if centred else ()))
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


def _byte_of(
    byte: Buffer, acc: Buffer, squares: Buffer, given: Mapping[str, Buffer], blocks: int
) -> Stmt:
    """Stores the byte that a row is divided by the root of: of its squares, and of nothing of
    ``acc``.
    """
    _, height, width, lanes = byte.shape
    y, x, lane = (Variable(f"{BYTE}.{axis}") for axis in ("y", "x", "l"))
    zero, none = Constant(0, DType.INT64), Constant(blocks, DType.INT64)
    nothing = Load(acc, (zero, y, x, lane)) * Cast(
        DType.INT32, Load(given["taps"], (none, zero, lane))
    )
    share = Load(given["row_scale"], (Constant(SHARE, DType.INT64), lane))
    index = requantized(nothing, Load(squares, (y, x, lane)), share, 127, -128, 127)
    row = Cast(DType.INT64, index) + 128
    sizes = (("y", height), ("x", width), ("l", lanes))
    store = Store(byte, (zero, y, x, lane), Load(given["table"], (row, lane)))
    return loops(tuple((f"{BYTE}.{axis}", size) for axis, size in sizes), store)


def _taps(x: Activation, *, none_and_first: bool) -> Array:
    """1 for each channel that there is; then none, and 1 in the first lane alone."""
    taps = _blocked(np.ones(x.channels, np.int8), x)
    if none_and_first:
        first = np.eye(1, x.lanes, dtype=np.int8)
        taps = np.concatenate([taps, np.zeros_like(first), first])
    return taps[:, None]
