"""Reductions of dimensions, rows and windows; sorting."""

from math import prod

import numpy as np

from ....dtypes import DType
from ....graph.operators.reductions import ArgReduce, Cumulative, Reduce, ReduceFunction
from ....graph.operators.rows import SoftmaxRows
from ....graph.operators.sorting import Sort
from ....graph.operators.windows import WindowFunction, WindowReduce
from .elementwise import WIDE
from .writing import Writing

__all__ = [
    "pool",
    "write_arg_reduce",
    "write_cumulative",
    "write_reduce",
    "write_softmax",
    "write_sort",
    "write_windows",
]

KINDS = {
    ReduceFunction.SUM: "ReduceSum",
    ReduceFunction.PRODUCT: "ReduceProd",
    ReduceFunction.MIN: "ReduceMin",
    ReduceFunction.MAX: "ReduceMax",
}


def write_reduce(w: Writing, operator: Reduce) -> str:
    """Over whole dimensions."""
    (x,) = w.node.inputs
    dtype = w.type(x).dtype
    wide = w.cast(x, WIDE[dtype]) if dtype in WIDE else x
    axes = w.integers(operator.axes)
    found = w.emit(
        KINDS[operator.function], wide, axes, keepdims=int(operator.keep), noop_with_empty_axes=1
    )
    return w.cast(found, dtype) if dtype in WIDE else found


def write_arg_reduce(w: Writing, operator: ArgReduce) -> str:
    """The place of the largest or smallest."""
    (x,) = w.node.inputs
    dtype = w.type(x).dtype
    wide = w.cast(x, WIDE[dtype]) if dtype in WIDE else x
    kind = "ArgMax" if operator.function is ReduceFunction.MAX else "ArgMin"
    last = int(operator.last)
    return w.emit(kind, wide, axis=operator.axis, keepdims=0, select_last_index=last)


def write_cumulative(w: Writing, operator: Cumulative) -> str:
    """Running sums."""
    (x,) = w.node.inputs
    if operator.function is not ReduceFunction.SUM:
        raise w.unsupported(f"running {operator.function}")
    dtype = w.type(x).dtype
    wide = w.cast(x, WIDE[dtype]) if dtype in WIDE else x
    found = w.emit(
        "CumSum",
        *(wide, np.array(operator.axis)),
        exclusive=int(operator.exclusive),
        reverse=int(operator.reverse),
    )
    return w.cast(found, dtype) if dtype in WIDE else found


def write_softmax(w: Writing, operator: SoftmaxRows) -> str:
    """Softmax, or its logarithm, over the last dimension."""
    return w.emit("LogSoftmax" if operator.logarithm else "Softmax", w.node.inputs[0], axis=-1)


def write_sort(w: Writing, operator: Sort) -> tuple[str, ...]:
    """The first elements in order."""
    (x,) = w.node.inputs
    dtype = w.type(x).dtype
    wide = w.cast(x, WIDE[dtype]) if dtype in WIDE else x
    count, largest = w.integers([operator.count]), int(operator.descending)
    values, places = w.emit_many(2, "TopK", wide, count, axis=-1, largest=largest, sorted=1)
    return (w.cast(values, dtype) if dtype in WIDE else values), places


def write_windows(w: Writing, operator: WindowReduce) -> str:
    """The maximum or the sum of each window."""
    (x,) = w.node.inputs
    dtype = w.type(x).dtype
    computed = dtype if dtype in (DType.FLOAT32, DType.FLOAT64) else DType.FLOAT64
    wide = w.cast(x, computed) if computed != dtype else x
    shape = w.type(x).shape
    if operator.function is WindowFunction.MAX:
        found = pool(w, operator, wide, shape, "MaxPool")
    else:
        means = pool(w, operator, wide, shape, "AveragePool", count_include_pad=1)
        found = w.emit("Mul", means, np.asarray(prod(operator.kernel), computed.numpy))
    return w.cast(found, dtype) if computed != dtype else found


def pool(
    w: Writing, operator: WindowReduce, x: str, shape: tuple[int, ...], kind: str, **attributes: int
) -> str:
    """A pool over the last dimensions of ``x``, which has that shape."""
    result, count = operator.shape(shape), len(operator.axes)
    if operator.axes != tuple(range(len(shape) - count, len(shape))):
        raise w.unsupported(f"windows over dimensions {operator.axes}")
    image = (1, prod(shape[:-count]), *shape[-count:])
    plain = len(shape) == count + 2
    given = x if plain else w.reshaped(x, image, shape)
    found = w.emit(
        kind,
        given,
        kernel_shape=list(operator.kernel),
        strides=list(operator.strides),
        dilations=list(operator.dilations),
        pads=[first for first, _ in operator.pads] + [last for _, last in operator.pads],
        **attributes,
    )
    return found if plain else w.reshaped(found, result, (*image[:2], *result[-count:]))
