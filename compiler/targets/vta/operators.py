"""Operators that the accelerator runs alike, with the arithmetic of different runtimes."""

from ...graph.ir import Graph, Node
from ...graph.operators.integer.fixed_point import AddFixed, MultiplyFixed, RequantizeFixed
from ...graph.operators.integer.products import Conv2d
from ...graph.operators.integer.residual import RequantizeAdd
from ...graph.operators.integer.scaled_sum import ScaledSum
from ...graph.operators.integer.values import Add, Multiply, Requantize, WeightedAdd
from ...graph.operators.movement import Reshape

__all__ = ["AnyAdd", "AnyFinish", "AnyMultiply", "AnyRequantize", "is_pointwise", "maker_of_sums"]

AnyRequantize = Requantize | RequantizeFixed
AnyAdd = Add | AddFixed | WeightedAdd
AnyMultiply = Multiply | MultiplyFixed
AnyFinish = AnyRequantize | RequantizeAdd | ScaledSum
"""Operators that turn a convolution's sums into bytes."""


def maker_of_sums(graph: Graph, node: Node) -> Node | None:
    """The node whose sums ``node`` turns into bytes, perhaps after a Reshape; None for an input."""
    maker = graph.producer(node.inputs[0])
    if maker is not None and isinstance(maker.operator, Reshape):
        maker = graph.producer(maker.inputs[0])
    return maker


def is_pointwise(graph: Graph, node: Node) -> bool:
    """True for a convolution of 1x1 pixels, none of them left out."""
    conv = node.operator
    if not isinstance(conv, Conv2d):
        return False
    _, height, width, _ = graph.types[node.inputs[1]].shape
    return {height, width, *conv.strides} == {1} and not any(conv.pads)
