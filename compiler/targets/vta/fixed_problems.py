"""Why the accelerator does not give the bytes of a layer of TensorFlow Lite, if it does not."""

from ...errors import UnsupportedOperatorError
from ...graph.ir import Graph, Node
from ...graph.operators.integer.fixed_point import AddFixed, MultiplyFixed
from ...graph.operators.integer.products import Conv2d
from ...graph.types import TensorType
from .layers.fixed_point_add import find_fixed_point
from .layers.fixed_sums import shift_problem, sums_problem

__all__ = ["finish_problem", "product_problem", "sum_problem"]

WITHOUT = "the configuration has no fixed_rounding, which these bytes need"


def sum_problem(add: AddFixed, a: TensorType, b: TensorType) -> str | None:
    """A residual sum is found by search, and needs no fixed rounding."""
    if a != b:
        return f"adds {b} to {a}; required tensors of one shape"
    try:
        wrong = find_fixed_point(add).inexact_pairs
    except UnsupportedOperatorError as error:
        return str(error)
    return f"no sum of the vector unit is right for {wrong} of 65,536 pairs" if wrong else None


def product_problem(product: MultiplyFixed, fixed_rounding: bool) -> str | None:
    """A product of two tensors has at most 17 bits."""
    return shift_problem(product.shift) if fixed_rounding else WITHOUT


def finish_problem(graph: Graph, total: Node, finish: Node, fixed_rounding: bool) -> str | None:
    """The sums of ``total`` go through ``finish``."""
    if not fixed_rounding:
        return WITHOUT
    constants = [graph.constants.get(name) for name in (*total.inputs[1:3], *finish.inputs[1:])]
    known = [each for each in constants if each is not None]
    if len(known) < len(constants):
        return "required constant weights, biases and scales"
    if not isinstance(total.operator, Conv2d):
        return f"a {type(total.operator).__name__} in fixed point; required a convolution"
    return sums_problem(total.operator, *known)
