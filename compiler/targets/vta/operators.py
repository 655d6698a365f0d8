"""Operators that the accelerator runs alike, with the arithmetic of different runtimes."""

from ...graph.operators.integer.fixed_point import AddFixed, MultiplyFixed, RequantizeFixed
from ...graph.operators.integer.residual import RequantizeAdd
from ...graph.operators.integer.scaled_sum import ScaledSum
from ...graph.operators.integer.values import Add, Multiply, Requantize, WeightedAdd

__all__ = ["AnyAdd", "AnyFinish", "AnyMultiply", "AnyRequantize"]

AnyRequantize = Requantize | RequantizeFixed
AnyAdd = Add | AddFixed | WeightedAdd
AnyMultiply = Multiply | MultiplyFixed
AnyFinish = AnyRequantize | RequantizeAdd | ScaledSum
"""Operators that turn a convolution's sums into bytes."""
