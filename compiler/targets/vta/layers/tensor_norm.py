"""Normalisation of an image: all of it less its mean, over the root of its squares.

    sums, less = -(sum of x)                                 to PAR, for all lanes
    squares, rest = -(sum of x^2)                            to PAR
    digits[...] = what t of the operator is made of          words of ACC, which count in one lane
    over = 2^19 * scale / sqrt(sum of digits[j] * digits[j + 3] + epsilon)      to PAR
    y[...] = clip(rint((n * x[...] + less) * over) + zero_point)

A number of a row has one scale beside it in PAR, so what is scaled twice is summed twice.  All of
the image is one tile: each of its sums is over all pixels.
"""

from collections.abc import Callable

import numpy as np

from ....dtypes import DType
from ....graph.operators.integer.tensor_norm import NormSteps, TensorNorm
from ....loops.expressions import (
    Binary,
    BinaryFunction,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    Scope,
    Variable,
)
from ....loops.ir import Allocate, Function, Stmt, Store, Update, block, loops
from ..finishes import requantized
from ..row_finishes import negated, over_root, widened
from .activation import Activation
from .definition import Array, LoweredLayer, constant_buffer, nest, place_of

__all__ = ["DIGITS", "lower_tensor_norm"]

DIGITS = "digits"
"""The buffer of words of ACC whose products are the variance."""

PARTS, REST, SCALED, OF_PARTS, OF_REST, OF_MEAN, MEAN = range(7)
"""Words of ``DIGITS``: three factors, what they are multiplied by, and what makes the last."""

COUNT = 3


def lower_tensor_norm(
    name: str, operator: TensorNorm, x: Activation, output: Activation
) -> LoweredLayer:
    """The loop program of a normalisation of all elements of an image of whole blocks."""
    lanes, steps = x.lanes, NormSteps(x.channels * x.height * x.width)
    rows: dict[str, tuple[Array, Array]] = {}

    def constant(key: str, scale: float | np.float32, bias: int = 0, *, first: bool = False) -> int:
        """The number of a word of PAR; first: of its first lane alone."""
        alone = np.eye(1, lanes)[0] if first else np.ones(lanes)
        rows[key] = (alone * bias).astype(np.int32), (alone * scale + 0.0).astype(np.float32)
        return len(rows) - 1

    of_sums, of_less = constant("sums", steps.sum_scale), constant("less", operator.scale)
    of_squares, of_rest = constant("squares", 1 / steps.part), constant("rest", 1)
    of_mean = constant("mean", -steps.mean_scale, first=True)
    per_part = constant("per part", 1, -steps.factor * steps.part, first=True)
    per_rest = constant("per rest", 1, -steps.factor, first=True)
    bias, scale = (np.stack(each) for each in zip(*rows.values(), strict=True))
    constants: dict[str, Array] = {"row_bias": bias, "row_scale": scale}
    given = {key: constant_buffer(key, array) for key, array in constants.items()}
    zero = Constant(0, DType.INT64)
    digits = Buffer(DIGITS, (2 * COUNT + 1, 1, 1, lanes), DType.INT32, Scope.ACC)

    def row(name: str, dtype: DType = DType.INT32) -> Buffer:
        return Buffer(name, (1, 1, lanes), dtype, Scope.PAR)

    def of_row(key: str, which: int, lane: Expr = zero) -> Load:
        return Load(given[key], (Constant(which, DType.INT64), lane))

    def digit(which: int | Expr, lane: Expr) -> Load:
        index = Constant(which, DType.INT64) if isinstance(which, int) else which
        return Load(digits, (index, zero, zero, lane))

    def total(target: Buffer, value: Callable[[Expr], Expr]) -> Stmt:
        """The sum of ``value`` of all elements, negated."""
        axes = [Variable(f"{target.name}.{axis}") for axis in ("k", "ky", "kx", "i")]
        element = Cast(DType.INT32, x.at(*axes))
        sizes = zip(axes, (x.blocks, x.height, x.width, lanes), strict=True)
        return _folded(target, [(axis.name, size) for axis, size in sizes], value(element), negated)

    def made(which: int, value: Callable[[Expr], Expr], bias: Buffer | int, scale: int) -> Stmt:
        """A word of ``DIGITS``: ``value`` of a lane and the number of a row, scaled.

        bias: that number, or the constant beside the scale.
        """
        lane = Variable(f"{DIGITS}.{which}.l")
        moved = (
            of_row("row_bias", bias, lane)
            if isinstance(bias, int)
            else Load(bias, (zero, zero, lane))
        )
        result = widened(value(lane), moved, of_row("row_scale", scale, lane))
        store = Store(digits, (Constant(which, DType.INT64), zero, zero, lane), result)
        return loops(((lane.name, lanes),), store)

    def nothing(lane: Expr) -> Expr:
        element = Cast(DType.INT32, x.at(zero, zero, zero, lane))
        return Binary(BinaryFunction.MUL, element, Constant(0, DType.INT32))

    def low(digit: Expr) -> Expr:
        return Cast(DType.INT32, Cast(DType.INT16, digit))

    sums, less, squares, rest = map(row, ("sums", "less_all", "squares_all", "rest"))
    over = row("over_all", DType.FLOAT32)
    j, i = Variable(f"{over.name}.j"), Variable(f"{over.name}.i")
    root = _folded(
        over,
        [(j.name, COUNT), (i.name, lanes)],
        digit(j, i) * digit(j + COUNT, i),
        lambda each: over_root(each, operator.epsilon, of_row("row_scale", of_less)),
    )
    place = place_of()
    value = Cast(DType.INT32, x.at(*place.indices)) * steps.elements
    word = (zero, zero, place.l)
    y = requantized(value, Load(less, word), Load(over, word), operator.zero_point, -128, 127)
    body = block(
        total(sums, lambda element: element),
        total(less, lambda element: element),
        total(squares, lambda element: element * element),
        total(rest, lambda element: element * element),
        made(PARTS, nothing, per_part, per_part),
        made(REST, nothing, per_rest, per_rest),
        made(OF_PARTS, nothing, squares, of_squares),
        made(OF_REST, lambda lane: low(digit(OF_PARTS, lane)) * -steps.part, rest, of_rest),
        made(MEAN, nothing, sums, of_sums),
        made(OF_MEAN, lambda lane: digit(MEAN, lane), of_mean, of_mean),
        made(SCALED, lambda lane: low(digit(OF_MEAN, lane)) * (steps.mean // 2), sums, of_sums),
        root,
        nest(output, Store(output.buffer, output.place(*place.indices), y)),
    )
    for buffer in (over, digits, rest, squares, less, sums):
        body = Allocate(buffer, body)
    function = Function(name, (x.buffer, *given.values()), (output.buffer,), body)
    return LoweredLayer(function, constants, (x,), output)


def _folded(
    target: Buffer, axes: list[tuple[str, int]], value: Expr, finish: Callable[[Expr], Expr]
) -> Stmt:
    """A number of a row, for all lanes: ``finish`` of the sum of ``value`` over all ``axes``."""
    total, lane = Buffer("total", (), DType.INT32, Scope.REGISTER), Variable(f"{target.name}.l")
    zero = Constant(0, DType.INT64)
    folded = loops(tuple(axes), Update(total, (), BinaryFunction.ADD, value))
    store = Store(target, (zero, zero, lane), finish(Load(total, ())))
    body = block(Store(total, (), Constant(0, DType.INT32)), folded, store)
    return loops(((lane.name, target.shape[-1]),), Allocate(total, body))
