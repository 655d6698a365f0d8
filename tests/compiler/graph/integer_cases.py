"""Nodes of integer operators and of images put together: one of each that no random model draws."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.operators.assembly import Append, Assemble, Halves
from dovetail.compiler.graph.operators.integer.fixed_point import (
    AddFixed,
    AverageFixed,
    MultiplyFixed,
    RequantizeFixed,
    RequantizeReal,
)
from dovetail.compiler.graph.operators.integer.residual import RequantizeAdd
from dovetail.compiler.graph.operators.integer.scaled_sum import ScaledSum, ScalesOfWords
from dovetail.compiler.graph.operators.integer.values import Multiply, Softmax, WeightedAdd
from dovetail.compiler.graph.operators.integer.windows import Pad
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.operators.quantization import DequantizeLinear, QuantizeLinear
from dovetail.compiler.graph.operators.transposed import TransposedConvolution

__all__ = ["INTEGER_CASES"]

HALF = 1 << 30


def some(shape: Iterable[int], dtype: str = "int8") -> NDArray[np.generic]:
    shape = tuple(shape)
    return (np.arange(np.prod(shape)) * 37 % 23 - 11).reshape(shape).astype(dtype)


IMAGE, BYTES, SUMS = some((1, 3, 4, 2)), some((2, 3)), some((2, 3), "int32")
SCALE, ZERO = np.float32([0.5, 0.25, 2]), np.int8([1, 0, -3])
INTEGER_CASES: tuple[tuple[TensorOperator, list[NDArray[np.generic]]], ...] = (
    (Assemble((3, 8), ((0, 0), (0, 1)), (1, 2), (1,)), [IMAGE, IMAGE]),
    (Append(2, 3), [IMAGE, some((1, 3, 2, 2))]),
    (Append(3, 1), [IMAGE, some((1, 3, 4, 5))]),
    (Halves(2, 1, 2, 5), [IMAGE]),
    (RequantizeFixed(3, -100, 90), [SUMS, np.int32([HALF, 3, 7]), np.int32([0, -31, 31])]),
    (RequantizeReal(3, -100, 90), [SUMS, np.float64([0.5, 2, 1e9])]),
    (AddFixed(1, HALF, -1, -2, -HALF, 0, HALF, -20, 4, -128, 127), [BYTES, some((1, 3))]),
    (MultiplyFixed(1, -2, HALF, -3, 4, -128, 127), [BYTES, some((2, 1))]),
    (AverageFixed((2, 3), (1, 2), (1, 0, 0, 2), -128, 127), [IMAGE]),
    (RequantizeAdd(700, 0.001, 3, -5, -90, 100), [SUMS * 99, SCALE * 50, BYTES]),
    (ScaledSum(3, 2, 2), [some((2, 6), "int32"), some((2, 12), "float32")]),
    (ScalesOfWords(4, 2), [some((1, 1, 32, 4))]),
    (WeightedAdd(3, -5, 100, 0.25, 1, -128, 127), [BYTES, BYTES]),
    (Multiply(0.25, 1, -2, 3, -128, 127), [BYTES, some((1, 3))]),
    (Softmax(0.1, 3, 1 / 256, -128), [BYTES]),
    (Pad((1, 0, 2, 3), -7), [IMAGE]),
    (QuantizeLinear(1), [some((2, 3), "float32"), SCALE, ZERO]),
    (DequantizeLinear(1), [BYTES, SCALE, ZERO]),
    (
        TransposedConvolution((2,), (1,), ((1, 0),), (1,), 2, DType.INT32),
        [some((1, 4, 3)), some((4, 3, 3))],
    ),
)
