"""Nodes that compute with raised bytes: tensors of int8 kept as uint8, 128 more."""

from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from ....dtypes import DType
from ...ir import Array, GraphBuilder
from ...operators.contractions import contract
from ...operators.elementwise import Binary, BinaryFunction, Bitcast, Cast, Unary, UnaryFunction
from ...operators.movement import Slice
from ...operators.protocol import TensorOperator

__all__ = ["F32", "RAISE", "RaisedBytes"]

RAISE = 128
SAFE_IN_INT32 = 1 << 30
F32 = np.float32
Number = float | np.floating[Any]


@dataclass(slots=True)
class RaisedBytes:
    """Adds nodes to ``builder`` for the node of ``origin``; tensors go by their names there."""

    builder: GraphBuilder = field(default_factory=GraphBuilder)
    origin: str = ""

    def emit(self, operator: TensorOperator, *inputs: str) -> str:
        """Add a node."""
        return self.builder.node(operator, inputs, self.origin, self.origin)

    def constant(self, value: Array) -> str:
        """Add a constant."""
        return self.builder.constant(f"{self.origin}.constant", value)

    def binary(self, function: BinaryFunction, x: str, other: Number | str) -> str:
        """An element-wise operator; a number takes the dtype of ``x``."""
        if not isinstance(other, str):
            kind = self.builder.types[x].dtype
            other = self.constant(np.asarray(other).astype(kind.numpy))
        return self.emit(Binary(function), x, other)

    def cast(self, x: str, dtype: DType) -> str:
        """A conversion."""
        return self.emit(Cast(dtype), x)

    def centred(self, x: str, zero_point: int, dtype: DType) -> str:
        """Values of raised bytes, less ``zero_point``, in ``dtype``."""
        return self.moved(self.cast(x, dtype), -(zero_point + RAISE))

    def moved(self, x: str, offset: int) -> str:
        """``x + offset``."""
        return self.binary(BinaryFunction.ADD, x, offset) if offset else x

    def rounded(self, x: str, zero_point: int, low: int, high: int) -> str:
        """``clip(rint(x), low - zero_point, high - zero_point)``; limits first: they are whole."""
        x = self.binary(BinaryFunction.MAX, x, low - zero_point)
        x = self.binary(BinaryFunction.MIN, x, high - zero_point)
        return self.emit(Unary(UnaryFunction.RINT), x)

    def saturated(self, x: str, zero_point: int, low: int, high: int, bound: float = inf) -> str:
        """``clip(rint(x) + zero_point, low, high)``, raised.

        bound: of ``abs(x)``.  Below that of int32 the limits are those of an integer, which
        instructions that make bytes of integers have.
        """
        if bound < SAFE_IN_INT32:
            whole = self.cast(self.emit(Unary(UnaryFunction.RINT), x), DType.INT32)
            whole = self.moved(whole, zero_point + RAISE)
            whole = self.binary(BinaryFunction.MAX, whole, low + RAISE)
            whole = self.binary(BinaryFunction.MIN, whole, high + RAISE)
            return self.cast(whole, DType.UINT8)
        whole = self.cast(self.rounded(x, zero_point, low, high), DType.INT32)
        return self.cast(self.moved(whole, zero_point + RAISE), DType.UINT8)

    def raised(self, x: str) -> str:
        """int8 plus 128, as uint8."""
        return self.emit(Bitcast(DType.UINT8), self.binary(BinaryFunction.XOR, x, -128))

    def lowered(self, x: str) -> str:
        """uint8 less 128, as int8."""
        return self.binary(BinaryFunction.XOR, self.emit(Bitcast(DType.INT8), x), -RAISE)

    def leading(self, x: str, count: int) -> str:
        """The first ``count`` of the last dimension."""
        shape = (*self.builder.types[x].shape[:-1], count)
        return self.emit(Slice((0,) * len(shape), (1,) * len(shape), shape), x)

    def product(self, x: str, weights: Array, dtype: DType) -> str:
        """``x @ weights.T``, summed in ``dtype``."""
        w = self.constant(np.ascontiguousarray(weights.T))
        rank = len(self.builder.types[x].shape)
        leading = tuple(range(rank - 1))
        kinds = (self.builder.types[x], self.builder.types[w])
        labels = ((*leading, rank), (rank, rank + 1))
        product = contract(kinds, labels, (*leading, rank + 1), dtype)
        return self.emit(product, x, w)
