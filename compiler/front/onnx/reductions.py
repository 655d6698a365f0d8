"""Converters of reductions, positions of extremes, and running totals."""

from collections.abc import Callable, Mapping
from math import prod

from ...dtypes import DType
from ...graph.operators.elementwise import UnaryFunction
from ...graph.operators.movement import Iota
from ...graph.operators.reductions import ArgReduce, Cumulative, Reduce, ReduceFunction
from .build import (
    add,
    cast,
    div,
    equal,
    exp,
    mul,
    normalise_axis,
    reshape,
    scalar,
    sqrt,
    sub,
    unary,
    where,
)
from .context import Converter, ImportContext, Tensor, required
from .movement import integers_at
from .node import OnnxNode

__all__ = ["REDUCTIONS", "reduce"]

Inputs = tuple[Tensor | None, ...]


def reduce(
    ctx: ImportContext, function: ReduceFunction, x: Tensor, axes: tuple[int, ...], keep: bool
) -> Tensor:
    """A reduction along ``axes``, which stay as dimensions of size 1 with ``keep``."""
    places = tuple(sorted({normalise_axis(axis, x.type.rank) for axis in axes}))
    return ctx.emit(Reduce(function, places, keep), x)


def convert_reduce(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The nine reductions: of what, by which function, and what becomes of the result."""
    (x,) = required(inputs[:1], 1)
    axes = integers_at(ctx, inputs, 1)
    if axes is None and "axes" in node.attributes:
        axes = node.integers("axes", ())
    if not axes:
        axes = () if node.integer("noop_with_empty_axes", 0) else tuple(range(x.type.rank))
    keep = bool(node.integer("keepdims", 1))
    total = ReduceFunction.SUM
    match node.kind:
        case "ReduceSum":
            result = reduce(ctx, total, x, axes, keep)
        case "ReduceMean":
            result = _mean(ctx, x, axes, keep)
        case "ReduceMin" | "ReduceMax":
            function = ReduceFunction.MIN if node.kind == "ReduceMin" else ReduceFunction.MAX
            result = reduce(ctx, function, x, axes, keep)
        case "ReduceProd":
            result = reduce(ctx, ReduceFunction.PRODUCT, x, axes, keep)
        case "ReduceL1":
            result = reduce(ctx, total, unary(ctx, UnaryFunction.ABS, x), axes, keep)
        case "ReduceL2":
            squares = reduce(ctx, total, mul(ctx, x, x), axes, keep)
            result = _in_float(ctx, sqrt, squares)
        case "ReduceSumSquare":
            result = reduce(ctx, total, mul(ctx, x, x), axes, keep)
        case "ReduceLogSum":
            result = _in_float(ctx, _log, reduce(ctx, total, x, axes, keep))
        case _:
            result = _log_sum_exp(ctx, x, axes, keep)
    return (result,)


def _mean(ctx: ImportContext, x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    total = reduce(ctx, ReduceFunction.SUM, x, axes, keep)
    count = prod(x.type.shape[axis] for axis in axes)
    return div(ctx, total, count)


def _log(ctx: ImportContext, x: Tensor) -> Tensor:
    return unary(ctx, UnaryFunction.LOG, x)


def _in_float(
    ctx: ImportContext, function: Callable[[ImportContext, Tensor], Tensor], x: Tensor
) -> Tensor:
    """A function of floats on any numbers: of integers by way of float64."""
    dtype = x.type.dtype
    wide = dtype if dtype.is_float else DType.FLOAT64
    return cast(ctx, function(ctx, cast(ctx, x, wide)), dtype)


def _log_sum_exp(ctx: ImportContext, x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    """max(x) + log(sum(exp(x - max(x)))), with 0 for an infinite maximum."""
    dtype = x.type.dtype
    wide = cast(ctx, x, dtype if dtype.is_float else DType.FLOAT64)
    largest = reduce(ctx, ReduceFunction.MAX, wide, axes, True)
    infinite = unary(ctx, UnaryFunction.ISINF, largest)
    shift = where(ctx, infinite, scalar(ctx, 0, wide), largest)
    total = reduce(ctx, ReduceFunction.SUM, exp(ctx, sub(ctx, wide, shift)), axes, True)
    result = add(ctx, _log(ctx, total), shift)
    if not keep:
        dropped = {normalise_axis(axis, x.type.rank) for axis in axes}
        shape = tuple(size for d, size in enumerate(x.type.shape) if d not in dropped)
        result = reshape(ctx, result, shape)
    return cast(ctx, result, dtype)


def convert_arg(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """ArgMax and ArgMin."""
    (x,) = required(inputs, 1)
    axis = normalise_axis(node.integer("axis", 0), x.type.rank)
    function = ReduceFunction.MAX if node.kind == "ArgMax" else ReduceFunction.MIN
    result = ctx.emit(ArgReduce(function, axis, bool(node.integer("select_last_index", 0))), x)
    if node.integer("keepdims", 1):
        result = reshape(ctx, result, (*x.type.shape[:axis], 1, *x.type.shape[axis + 1 :]))
    return (result,)


def convert_cumulative(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """CumSum and CumProd."""
    (x,) = required(inputs[:1], 1)
    (axis,) = integers_at(ctx, inputs, 1) or (0,)
    function = ReduceFunction.SUM if node.kind == "CumSum" else ReduceFunction.PRODUCT
    operator = Cumulative(
        function,
        normalise_axis(axis, x.type.rank),
        bool(node.integer("exclusive", 0)),
        bool(node.integer("reverse", 0)),
    )
    return (ctx.emit(operator, x),)


def convert_hardmax(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """1 at the first largest element along the axis, 0 elsewhere."""
    (x,) = required(inputs, 1)
    shape = x.type.shape
    axis = normalise_axis(node.integer("axis", -1 if ctx.opset >= 13 else 1), x.type.rank)
    last = axis + 1 if ctx.opset >= 13 else x.type.rank
    flat = reshape(ctx, x, (prod(shape[:axis]), prod(shape[axis:last]), prod(shape[last:])))
    best = ctx.emit(ArgReduce(ReduceFunction.MAX, 1), flat)
    rows, _, columns = flat.type.shape
    hot = equal(ctx, ctx.emit(Iota(flat.type.shape, 1)), reshape(ctx, best, (rows, 1, columns)))
    return (reshape(ctx, cast(ctx, hot, x.type.dtype), shape),)


KINDS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

REDUCTIONS: Mapping[str, Converter] = {
    **{f"Reduce{kind}": convert_reduce for kind in KINDS},
    "ArgMax": convert_arg,
    "ArgMin": convert_arg,
    "CumProd": convert_cumulative,
    "CumSum": convert_cumulative,
    "Hardmax": convert_hardmax,
}
