"""Operators on each element: sums of tensors, biases, clips, and functions of one tensor."""

from dataclasses import replace

import numpy as np

from ....dtypes import DType
from ...ir import Node
from ...operators.elementwise import Binary, BinaryFunction
from .contractions import with_bias
from .layouts import model_shape
from .quantize import code_points
from .state import State, UnrecognisedError
from .values import (
    Accumulated,
    Array,
    Foreign,
    Function,
    Real,
    RealConstant,
    Sum,
    Totals,
    Value,
    WindowSums,
)
from .windows import divided

__all__ = ["recognise_elementwise"]


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
    return _function(state, node)


def _pair(state: State, node: Node, function: BinaryFunction) -> Value | None:
    """A sum, a clip or a mean; None for all else."""
    left, right = node.inputs
    a, b = state.values.get(left), state.values.get(right)
    if isinstance(a, Real) and isinstance(b, Real) and function is BinaryFunction.ADD:
        return _sum(state, a, b)
    if function is BinaryFunction.DIV and isinstance(a, WindowSums | Totals):
        return divided(state, a, state.constant(right, "the number of elements"), node.origin)
    if isinstance(b, Accumulated | Sum):
        a, b, left, right = b, a, right, left
    if not isinstance(a, Accumulated | Sum):
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
        else f"{function.value} of a sum; required that it is quantised first"
    )


def _clipped(value: Accumulated | Sum, function: BinaryFunction, limit: float) -> Accumulated | Sum:
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


def _function(state: State, node: Node) -> Function:
    """What the operator gives for each of the 256 values of the one tensor it reads."""
    real: Real | None = None
    operands: list[Array] = []
    for name in node.inputs:
        constant = state.array(name)
        if constant is not None:
            if constant.size != 1:
                raise UnrecognisedError(
                    f"{name!r} is a constant of shape {list(constant.shape)}; required one number"
                )
            operands.append(constant.reshape(()))
            continue
        value = state.value(name)
        own = Function(value, code_points(value)) if isinstance(value, Real) else value
        if not isinstance(own, Function):
            raise UnrecognisedError(
                f"its input {name!r} is not quantised; required a convolution, a matrix product, "
                "a sum, or QuantizeLinear and DequantizeLinear in front of it"
            )
        if real is not None and own.real != real:
            raise UnrecognisedError("required functions of one dequantised int8 tensor")
        real = own.real
        operands.append(own.values)
    assert real is not None
    if state.source.types[node.output].shape != model_shape(state.builder, real.tensor):
        raise UnrecognisedError("a constant of more dimensions than the tensor; required at most")
    (values,) = node.operator.evaluate(operands)
    if values.dtype not in (DType.FLOAT32.numpy, np.bool_):
        raise UnrecognisedError(f"gives {values.dtype}; required float32")
    return Function(real, values)
