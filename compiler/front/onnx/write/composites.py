"""Patterns of several graph operators for which ONNX has one.

    1 / (exp(-x) + 1)                            ->  Sigmoid
    min(max(x, a), b), max(x, 0)                 ->  Clip, Relu
    x < 0 ? x * a : x                            ->  LeakyRelu, PRelu
    sum(x) / n, sums of windows / n              ->  ReduceMean, AveragePool
    convolution + a number for each channel      ->  Conv with a bias
    exp(x - max) / sum, x - max - log(sum(exp))  ->  Softmax, LogSoftmax

Each function takes the last of the nodes; None where it is none of these.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....dtypes import DType
from ....graph.ir import Array, Node
from ....graph.operators.contractions import Convolution
from ....graph.operators.elementwise import Binary, Unary, Where
from ....graph.operators.functions import BinaryFunction as B
from ....graph.operators.functions import UnaryFunction as U
from ....graph.operators.indexing import Gather
from ....graph.operators.reductions import Reduce, ReduceFunction
from ....graph.operators.windows import WindowFunction, WindowReduce
from .contractions import convolution
from .reductions import pool
from .resizes import linear_resize, nearest_resize
from .writing import Writing

__all__ = ["composite"]

Composite = Callable[[Writing], str | None]


def _made(w: Writing, name: str, function: B | U) -> tuple[str, ...] | None:
    """The operands of the function that computes ``name``."""
    node = w.graph.producer(name)
    operator = node.operator if node is not None else None
    found = isinstance(operator, Binary | Unary) and operator.function == function
    return node.inputs if node is not None and found else None


def _own(w: Writing, function: B | U) -> tuple[str, ...] | None:
    return _made(w, w.node.output, function)


def _number(w: Writing, name: str) -> float | None:
    """The value of a constant of one element."""
    value = w.value(name)
    return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None


def _with_number(w: Writing, inputs: tuple[str, ...] | None) -> tuple[str, float] | None:
    """A tensor and a number, in either order."""
    if inputs is None:
        return None
    for x, other in (inputs, inputs[::-1]):
        number = _number(w, other)
        if number is not None and w.value(x) is None and w.type(other).rank <= w.type(x).rank:
            return x, number
    return None


def _is_only(w: Writing, name: str) -> bool:
    """True if nothing else reads ``name``."""
    return len(w.graph.consumers(name)) == 1 and name not in w.graph.outputs


def sigmoid(w: Writing) -> str | None:
    """Sigmoid."""
    quotient = _own(w, B.DIV)
    if quotient is None or _number(w, quotient[0]) != 1:
        return None
    added = _with_number(w, _made(w, quotient[1], B.ADD))
    power = _made(w, added[0], U.EXP) if added is not None and added[1] == 1 else None
    negated = _made(w, power[0], U.NEG) if power is not None else None
    if negated is None or w.type(negated[0]).shape != w.type(w.node.output).shape:
        return None
    return w.emit("Sigmoid", negated[0])


def clip(w: Writing) -> str | None:
    """Clip, or Relu."""
    upper = _with_number(w, _own(w, B.MIN))
    if upper is not None:
        lower = _with_number(w, _made(w, upper[0], B.MAX))
        if lower is None or lower[1] > upper[1]:
            return None
        limits = (np.asarray(each, np.float32) for each in (lower[1], upper[1]))
        return w.emit("Clip", lower[0], *limits)
    lower = _with_number(w, _own(w, B.MAX))
    return w.emit("Relu", lower[0]) if lower is not None and lower[1] == 0 else None


def leaky_relu(w: Writing) -> str | None:
    """LeakyRelu, or PRelu of a constant."""
    if not isinstance(w.node.operator, Where):
        return None
    condition, first, second = w.node.inputs
    compared = _made(w, condition, B.LT)
    if compared is None:
        return None
    if _number(w, compared[1]) == 0:
        x, product, whole = compared[0], first, second
    elif _number(w, compared[0]) == 0:
        x, product, whole = compared[1], second, first
    else:
        return None
    factors = _made(w, product, B.MUL)
    if whole != x or factors is None or x not in factors:
        return None
    factor = factors[1] if factors[0] == x else factors[0]
    value = w.value(factor)
    if value is None or w.type(product).shape != w.type(x).shape:
        return None
    if value.size == 1:
        return w.emit("LeakyRelu", x, alpha=float(value.reshape(-1)[0]))
    return w.emit("PRelu", x, factor)


def mean(w: Writing) -> str | None:
    """ReduceMean."""
    given = _quotient(w)
    if given is None:
        return None
    total, count = given
    node = w.graph.producer(total)
    if node is None or not isinstance(node.operator, Reduce):
        return None
    operator, shape = node.operator, w.type(node.inputs[0]).shape
    own = prod(shape[axis] for axis in operator.axes)
    if operator.function is not ReduceFunction.SUM or not np.all(count == own) or not operator.axes:
        return None
    if count.size != 1:
        return None
    keep = int(operator.keep)
    return w.emit("ReduceMean", node.inputs[0], w.integers(operator.axes), keepdims=keep)


def average(w: Writing) -> str | None:
    """AveragePool, of all of each window or of what is inside."""
    given = _quotient(w)
    if given is None:
        return None
    total, counts = given
    node = w.graph.producer(total)
    if node is None or not isinstance(node.operator, WindowReduce):
        return None
    operator, (x,) = node.operator, node.inputs
    if operator.function is not WindowFunction.ADD:
        return None
    shape = w.type(x).shape
    if np.all(counts == prod(operator.kernel)):
        return pool(w, operator, x, shape, "AveragePool", count_include_pad=1)
    ones = np.ones((*(1,) * (len(shape) - len(operator.axes)), *shape[-len(operator.axes) :]))
    (inside,) = operator.evaluate([ones])
    if counts.ndim > inside.ndim or not np.array_equal(
        np.broadcast_to(counts, inside.shape), inside
    ):
        return None
    return pool(w, operator, x, shape, "AveragePool", count_include_pad=0)


def _quotient(w: Writing) -> tuple[str, Array] | None:
    """A tensor and the constant that it is divided by; the shape stays."""
    quotient = _own(w, B.DIV)
    count = w.value(quotient[1]) if quotient is not None else None
    if quotient is None or count is None:
        return None
    same = w.type(quotient[0]).shape == w.type(w.node.output).shape
    return (quotient[0], count) if same else None


def biased_convolution(w: Writing) -> str | None:
    """Conv with a bias."""
    for total, other in _both_ways(_own(w, B.ADD)):
        node, bias = w.graph.producer(total), w.value(other)
        if node is None or not isinstance(node.operator, Convolution) or bias is None:
            continue
        shape = w.type(total).shape
        wanted = (1,) * (len(shape) - bias.ndim) + bias.shape
        single = bias.ndim <= len(shape) and all(
            size == 1 for axis, size in enumerate(wanted) if axis != 1
        )
        if single and w.type(w.node.output).shape == shape and _is_only(w, total):
            values = np.broadcast_to(bias.reshape(-1), (shape[1],))
            x, weights = node.inputs
            return convolution(w, node.operator, x, weights, values)
    return None


def _both_ways(inputs: tuple[str, ...] | None) -> tuple[tuple[str, ...], ...]:
    return () if inputs is None else (inputs, inputs[::-1])


def softmax(w: Writing) -> str | None:
    """Softmax over another dimension than the last."""
    quotient = _own(w, B.DIV)
    power = _made(w, quotient[0], U.EXP) if quotient is not None else None
    if quotient is None or power is None:
        return None
    total = _reduced(w, quotient[1], ReduceFunction.SUM)
    shifted = _shifted(w, power[0])
    same = total is not None and total.inputs[0] == quotient[0] and shifted is not None
    if not same or total is None or shifted is None or total.operator.axes != shifted[1]:  # type: ignore[attr-defined]
        return None
    return w.emit("Softmax", shifted[0], axis=shifted[1][0])


def log_softmax(w: Writing) -> str | None:
    """LogSoftmax."""
    difference = _own(w, B.SUB)
    logarithm = _made(w, difference[1], U.LOG) if difference is not None else None
    if difference is None or logarithm is None:
        return None
    total = _reduced(w, logarithm[0], ReduceFunction.SUM)
    power = _made(w, total.inputs[0], U.EXP) if total is not None else None
    shifted = _shifted(w, difference[0])
    if total is None or power is None or shifted is None or power[0] != difference[0]:
        return None
    if total.operator.axes != shifted[1]:  # type: ignore[attr-defined]
        return None
    return w.emit("LogSoftmax", shifted[0], axis=shifted[1][0])


def _shifted(w: Writing, name: str) -> tuple[str, tuple[int, ...]] | None:
    """The tensor that ``name`` is, less its maximum over one dimension, and the dimension."""
    difference = _made(w, name, B.SUB)
    largest = _reduced(w, difference[1], ReduceFunction.MAX) if difference is not None else None
    if difference is None or largest is None or largest.inputs[0] != difference[0]:
        return None
    return difference[0], largest.operator.axes  # type: ignore[attr-defined]


def _reduced(w: Writing, name: str, function: ReduceFunction) -> Node | None:
    """The reduction of one dimension, which stays as 1, that computes ``name``."""
    node = w.graph.producer(name)
    operator: Any = node.operator if node is not None else None
    fits = isinstance(operator, Reduce) and operator.function is function and operator.keep
    return node if fits and len(operator.axes) == 1 else None


ALL: tuple[Composite, ...] = (
    *(sigmoid, softmax, log_softmax, mean, average),
    *(clip, leaky_relu, biased_convolution, linear_resize, nearest_resize),
)


def composite(w: Writing) -> str | None:
    """The result of the operator of ONNX that the node and those before it are, of float32."""
    if not isinstance(w.node.operator, Binary | Gather | Where):
        return None
    if w.type(w.node.output).dtype != DType.FLOAT32:
        return None
    for each in ALL:
        found = each(w)
        if found is not None:
            return found
    return None
