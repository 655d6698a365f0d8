"""Operators on each element: sums of tensors, biases, clips, and functions of one tensor."""

from dataclasses import replace

import numpy as np

from ...ir import Node
from ...operators.elementwise import Binary, BinaryFunction
from .contractions import with_bias
from .functions import is_common, recognise_function
from .layouts import model_shape
from .state import State, UnrecognisedError
from .values import (
    Accumulated,
    Foreign,
    Integer,
    Multiplied,
    Real,
    RealConstant,
    Sum,
    Totals,
    Value,
    WindowSums,
)
from .windows import divided

__all__ = ["recognise_elementwise"]


Clipped = Accumulated | Sum | Multiplied
"""What is clipped before it is quantised."""


def recognise_elementwise(state: State, node: Node) -> Value:
    """Any element-wise operator, as far as one of the forms above is what it computes."""
    values = [state.values.get(name) for name in node.inputs]
    if isinstance(node.operator, Binary):
        found = _pair(state, node, node.operator.function)
        if found is not None:
            return found
    for value in values:
        if isinstance(value, Foreign):
            raise UnrecognisedError(value.reason)
    return recognise_function(state, node)


def _pair(state: State, node: Node, function: BinaryFunction) -> Value | None:
    """A sum, a product, a clip or a mean; None for all else."""
    left, right = node.inputs
    a, b = state.values.get(left), state.values.get(right)
    if isinstance(a, Real) and isinstance(b, Real) and function is BinaryFunction.ADD:
        return None if is_common(state, a.tensor, b.tensor) else _sum(state, a, b)
    if function is BinaryFunction.MUL:
        found = _product(state, node, a, b)
        if found is not None:
            return found
    if function is BinaryFunction.DIV and isinstance(a, WindowSums | Totals):
        return divided(state, a, state.constant(right, "the number of elements"), node.origin)
    if isinstance(b, Clipped):
        a, b, left, right = b, a, right, left
    if not isinstance(a, Clipped):
        return None
    if function in (BinaryFunction.MAX, BinaryFunction.MIN):
        limit = state.array(right)
        if limit is None or limit.size != 1:
            return None
        return _clipped(a, function, float(limit.reshape(-1)[0]))
    constant = b if isinstance(b, RealConstant) else state.array(right)
    if function is BinaryFunction.ADD and isinstance(a, Accumulated) and constant is not None:
        return with_bias(state, node, a, constant)
    raise UnrecognisedError(
        f"{function.value} of the result of node {a.origin!r} and another; required that it is "
        "quantised first"
        if isinstance(a, Accumulated)
        else f"{function.value} of a sum or product; required that it is quantised first"
    )


def _clipped(value: Clipped, function: BinaryFunction, limit: float) -> Clipped:
    """The later of two limits holds where they contradict each other."""
    pick = max if function is BinaryFunction.MAX else min
    return replace(value, low=pick(value.low, limit), high=pick(value.high, limit))


def _sum(state: State, a: Real, b: Real) -> Sum:
    shapes = [model_shape(state.builder, each.tensor) for each in (a, b)]
    if shapes[0] != shapes[1]:
        raise UnrecognisedError(
            f"adds shapes {list(shapes[0])} and {list(shapes[1])}; required equal shapes"
        )
    return Sum(a, b)


def _product(state: State, node: Node, a: Value | None, b: Value | None) -> Multiplied | None:
    """The product of a tensor with another, or with a constant of several numbers; None for else.

    The smaller one is repeated to the shape of the other.
    """
    if isinstance(a, RealConstant):
        a, b = b, a
    if not isinstance(a, Real):
        return None
    if isinstance(b, RealConstant) and b.values.size > 1 and b.scales.size == 1:
        b = _stored(state, node, b, a.tensor)
    if not isinstance(b, Real) or is_common(state, a.tensor, b.tensor):
        return None
    shapes = [model_shape(state.builder, each.tensor) for each in (a, b)]
    if np.prod(shapes[0]) < np.prod(shapes[1]):
        a, b, shapes = b, a, shapes[::-1]
    whole, part = shapes
    if len(whole) != len(part) or any(
        size not in (1, of) for size, of in zip(part, whole, strict=True)
    ):
        raise UnrecognisedError(
            f"multiplies shapes {list(whole)} and {list(part)}; required one that is repeated to "
            "the other"
        )
    return Multiplied(a, b)


def _stored(state: State, node: Node, constant: RealConstant, beside: Integer) -> Real:
    """A constant as a tensor of the new graph, in the order of dimensions of ``beside``."""
    values, zero_point = constant.values, int(constant.zero_points[0])
    unsigned = values.dtype == np.uint8
    if unsigned:
        values, zero_point = (values ^ np.uint8(128)).view(np.int8), zero_point - 128
    rank = len(beside.permutation)
    if values.dtype != np.int8 or values.ndim > rank:
        raise UnrecognisedError(f"a factor of {values.dtype}{list(values.shape)}; required bytes")
    values = values.reshape((1,) * (rank - values.ndim) + values.shape)
    stored = np.ascontiguousarray(values.transpose(beside.permutation))
    name = state.builder.constant(f"{node.output}/factor", stored)
    return Real(Integer(name, beside.permutation, unsigned), constant.scales[0], zero_point)
