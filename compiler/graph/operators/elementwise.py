"""Operators that work element by element, with NumPy's broadcasting."""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..types import TensorType
from .functions import (
    BITWISE,
    COMPARISONS,
    OF_INTEGERS,
    SHIFTS,
    TESTS,
    BinaryFunction,
    UnaryFunction,
    evaluate_binary,
    evaluate_unary,
)
from .protocol import Array, Elementwise, require, require_inputs

__all__ = [
    "Binary",
    "BinaryFunction",
    "Bitcast",
    "Cast",
    "MultiplyAdd",
    "Unary",
    "UnaryFunction",
    "Where",
    "broadcast_shape",
    "multiply_add",
]


def broadcast_shape(operator: object, inputs: Sequence[TensorType]) -> tuple[int, ...]:
    """The common shape.  Raises GraphError when there is none."""
    try:
        return np.broadcast_shapes(*(each.shape for each in inputs))
    except ValueError:
        found = ", ".join(map(str, inputs))
        require(operator, False, found, "shapes that broadcast")
        raise


@frozen
class Unary(Elementwise):
    """``function(x)`` of every element."""

    function: UnaryFunction

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", UnaryFunction(self.function))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Tests give bool."""
        (x,) = require_inputs(self, inputs, 1)
        if self.function is UnaryFunction.NOT:
            require(self, not x.dtype.is_float, x, "bool or integers for not")
        elif self.function in OF_INTEGERS:
            require(self, x.dtype != DType.BOOL, x, f"numbers for {self.function}")
        else:
            require(self, x.dtype.is_float, x, f"floats for {self.function}")
        return (TensorType(x.shape, DType.BOOL if self.function in TESTS else x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's function."""
        return (evaluate_unary(self.function, inputs[0]),)


@frozen
class Binary(Elementwise):
    """``function(a, b)`` of every pair of elements, broadcast; integers wrap."""

    function: BinaryFunction

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", BinaryFunction(self.function))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Comparisons give bool."""
        a, b = require_inputs(self, inputs, 2)
        require(self, a.dtype == b.dtype, f"{a} and {b}", "one dtype")
        if self.function in BITWISE:
            require(self, not a.dtype.is_float, a, "bool or integers")
        elif self.function in SHIFTS:
            require(self, not a.dtype.is_float and a.dtype != DType.BOOL, a, "integers")
        shape = broadcast_shape(self, inputs)
        return (TensorType(shape, DType.BOOL if self.function in COMPARISONS else a.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's function."""
        return (evaluate_binary(self.function, *inputs),)


@frozen
class Where(Elementwise):
    """``a if condition else b`` of every triple of elements, broadcast."""

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """condition: bool; a, b: of one dtype."""
        condition, a, b = require_inputs(self, inputs, 3)
        require(self, condition.dtype == DType.BOOL, condition, "a condition of bool")
        require(self, a.dtype == b.dtype, f"{a} and {b}", "one dtype")
        return (TensorType(broadcast_shape(self, inputs), a.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``where``."""
        condition, a, b = inputs
        return (np.where(condition, a, b).astype(a.dtype),)


@frozen
class MultiplyAdd(Elementwise):
    """``a * b + c`` of float32, broadcast, rounded once."""

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """float32, of the common shape."""
        require_inputs(self, inputs, 3)
        found = ", ".join(map(str, inputs))
        require(self, all(x.dtype == DType.FLOAT32 for x in inputs), found, "float32")
        return (TensorType(broadcast_shape(self, inputs), DType.FLOAT32),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By ``multiply_add``."""
        return (multiply_add(*inputs),)


@frozen
class Cast(Elementwise):
    """``x`` as ``dtype``: to bool is ``x != 0``, float to integer truncates, integers wrap.

    What a float outside an integer dtype's range, or NaN, becomes is left open.
    """

    dtype: DType

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", DType(self.dtype))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Same shape."""
        require_inputs(self, inputs, 1)
        return (TensorType(inputs[0].shape, self.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``astype``."""
        with np.errstate(all="ignore"):
            return (np.asarray(inputs[0].astype(self.dtype.numpy)),)


@frozen
class Bitcast(Elementwise):
    """The bits of ``x`` read as ``dtype``, of the same size."""

    dtype: DType

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", DType(self.dtype))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Same shape."""
        (x,) = require_inputs(self, inputs, 1)
        require(self, x.dtype.bytes == self.dtype.bytes, x, f"{self.dtype.bytes} bytes an element")
        return (TensorType(x.shape, self.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``view``."""
        return (np.ascontiguousarray(inputs[0]).reshape(inputs[0].shape).view(self.dtype.numpy),)


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of float32, rounded once.

    The product is exact in float64; the sum is rounded to the neighbour whose last bit is set, from
    which float32 rounds as from the exact sum.  Source: S. Boldo and G. Melquiond, "Emulation of a
    FMA and correctly rounded sums", 2008.
    """
    with np.errstate(all="ignore"):
        product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
        addend = np.asarray(c, np.float64)
        total = np.asarray(product + addend)
        part = total - product
        error = (product - (total - part)) + (addend - part)
        bits = total.view(np.int64)
        step = np.where(np.signbit(error) == np.signbit(total), 1, -1)
        inexact = (error != 0) & ~np.isnan(error) & (bits & 1 == 0)
        moved = np.where(inexact, bits + step, bits)
        return np.asarray(moved.view(np.float64).astype(np.float32))
