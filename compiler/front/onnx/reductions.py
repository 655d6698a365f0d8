"""Converters of reductions, positions of extremes, and running totals."""

from collections.abc import Mapping
from math import prod

from ...dtypes import DType
from ...graph.formulas import Term
from ...graph.operators.elementwise import UnaryFunction
from ...graph.operators.movement import Iota
from ...graph.operators.reductions import ArgReduce, Cumulative, ReduceFunction
from .context import Converter, ImportContext
from .inputs import Inputs, normalise_axis, terms
from .movement import integers_at
from .node import OnnxNode

__all__ = ["REDUCTIONS"]


def convert_reduce(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The ten reductions: of what, by which function, and what becomes of the result."""
    (x,) = terms(ctx, inputs[:1], 1)
    axes = integers_at(ctx, inputs, 1)
    if axes is None and "axes" in node.attributes:
        axes = node.integers("axes", ())
    if not axes:
        axes = () if node.integer("noop_with_empty_axes", 0) else tuple(range(x.rank))
    places = sorted({normalise_axis(axis, x.rank) for axis in axes})
    keep = bool(node.integer("keepdims", 1))
    match node.kind:
        case "ReduceSum":
            result = x.sum(*places, keep=keep)
        case "ReduceMean":
            count = prod(x.shape[axis] for axis in axes)
            result = x.sum(*places, keep=keep) / count
        case "ReduceMin" | "ReduceMax" | "ReduceProd":
            result = x.reduce(FUNCTIONS[node.kind], places, keep)
        case "ReduceL1":
            result = x.abs().sum(*places, keep=keep)
        case "ReduceL2":
            squares = (x * x).sum(*places, keep=keep)
            result = _in_floats(squares).sqrt().cast(x.dtype)
        case "ReduceSumSquare":
            result = (x * x).sum(*places, keep=keep)
        case "ReduceLogSum":
            result = _in_floats(x.sum(*places, keep=keep)).log().cast(x.dtype)
        case _:
            result = _log_sum_exp(x, places, keep)
    return (result.tensor,)


def _in_floats(x: Term) -> Term:
    """Integers as float64."""
    return x if x.dtype.is_float else x.cast(DType.FLOAT64)


def _log_sum_exp(x: Term, axes: list[int], keep: bool) -> Term:
    """max(x) + log(sum(exp(x - max(x)))), with 0 for an infinite maximum."""
    wide = _in_floats(x)
    largest = wide.reduce(ReduceFunction.MAX, axes, True)
    shift = largest.unary(UnaryFunction.ISINF).where(0, largest, wide.dtype)
    result = (wide - shift).exp().sum(*axes, keep=True).log() + shift
    if not keep:
        result = result.reshape(*(size for d, size in enumerate(x.shape) if d not in axes))
    return result.cast(x.dtype)


def convert_arg(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """ArgMax and ArgMin."""
    (x,) = terms(ctx, inputs, 1)
    axis = normalise_axis(node.integer("axis", 0), x.rank)
    function = ReduceFunction.MAX if node.kind == "ArgMax" else ReduceFunction.MIN
    operator = ArgReduce(function, axis, bool(node.integer("select_last_index", 0)))
    result = Term(ctx, ctx.emit(operator, x.tensor))
    if node.integer("keepdims", 1):
        result = result.reshape(*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return (result.tensor,)


def convert_cumulative(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """CumSum and CumProd."""
    (x,) = terms(ctx, inputs[:1], 1)
    (axis,) = integers_at(ctx, inputs, 1) or (0,)
    function = ReduceFunction.SUM if node.kind == "CumSum" else ReduceFunction.PRODUCT
    operator = Cumulative(
        function,
        normalise_axis(axis, x.rank),
        bool(node.integer("exclusive", 0)),
        bool(node.integer("reverse", 0)),
    )
    return (ctx.emit(operator, x.tensor),)


def convert_hardmax(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """1 at the first largest element along the axis, 0 elsewhere."""
    (x,) = terms(ctx, inputs, 1)
    axis = normalise_axis(node.integer("axis", -1 if ctx.opset >= 13 else 1), x.rank)
    last = axis + 1 if ctx.opset >= 13 else x.rank
    flat = x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:last]), prod(x.shape[last:]))
    best = Term(ctx, ctx.emit(ArgReduce(ReduceFunction.MAX, 1), flat.tensor))
    rows, _, columns = flat.shape
    places = Term(ctx, ctx.emit(Iota(flat.shape, 1)))
    hot = places.equal(best.reshape(rows, 1, columns))
    return (hot.cast(x.dtype).reshape(*x.shape).tensor,)


FUNCTIONS = {
    "ReduceMax": ReduceFunction.MAX,
    "ReduceMin": ReduceFunction.MIN,
    "ReduceProd": ReduceFunction.PRODUCT,
}
KINDS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

REDUCTIONS: Mapping[str, Converter] = {
    **{f"Reduce{kind}": convert_reduce for kind in KINDS},
    "ArgMax": convert_arg,
    "ArgMin": convert_arg,
    "CumProd": convert_cumulative,
    "CumSum": convert_cumulative,
    "Hardmax": convert_hardmax,
}
