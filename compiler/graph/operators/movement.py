"""Operators that move elements about."""

from collections.abc import Sequence
from enum import StrEnum
from math import prod
from typing import Literal

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import GraphError
from ..types import TensorType
from .protocol import Array, Elementwise, Movement, require, require_inputs

__all__ = [
    "Concatenate",
    "Expand",
    "Iota",
    "PadMode",
    "PadTensor",
    "Reshape",
    "Slice",
    "Transpose",
]


@frozen
class Reshape(Movement):
    """Same elements, another shape."""

    shape: tuple[int, ...]

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """As many elements."""
        (x,) = require_inputs(self, inputs, 1)
        require(self, x.elements == prod(self.shape), x, f"{prod(self.shape)} elements")
        return (TensorType(self.shape, x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``reshape``."""
        return (inputs[0].reshape(self.shape),)


@frozen
class Transpose(Movement):
    """Output dimension ``i`` is input dimension ``permutation[i]``."""

    permutation: tuple[int, ...]

    def __post_init__(self) -> None:
        if sorted(self.permutation) != list(range(len(self.permutation))):
            raise GraphError(f"{self}: required a permutation of 0, 1, ...")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The dimensions, permuted."""
        (x,) = require_inputs(self, inputs, 1)
        rank = len(self.permutation)
        require(self, len(x.shape) == rank, x, f"{rank} dimensions")
        return (TensorType(tuple(x.shape[axis] for axis in self.permutation), x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``transpose``."""
        return (np.asarray(inputs[0].transpose(self.permutation), order="C"),)


@frozen
class Expand(Elementwise):
    """``x`` broadcast to ``shape``."""

    shape: tuple[int, ...]

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """``shape``."""
        (x,) = require_inputs(self, inputs, 1)
        dims = x.shape[::-1]
        fits = len(dims) <= len(self.shape) and all(
            size in (1, wanted) for size, wanted in zip(dims, self.shape[::-1], strict=False)
        )
        require(self, fits, x, f"a shape that broadcasts to {list(self.shape)}")
        return (TensorType(self.shape, x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``broadcast_to``."""
        return (np.ascontiguousarray(np.broadcast_to(inputs[0], self.shape)).reshape(self.shape),)


@frozen
class Slice(Movement):
    """``x[starts[0] + i * steps[0], ...]`` for ``i`` below ``shape[0]``; a step may be negative."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    shape: tuple[int, ...]

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """``shape``."""
        (x,) = require_inputs(self, inputs, 1)
        ranks = {len(self.starts), len(self.steps), len(self.shape), len(x.shape)}
        require(self, len(ranks) == 1, x, f"{len(self.shape)} dimensions")
        for size, start, step, count in zip(
            x.shape, self.starts, self.steps, self.shape, strict=True
        ):
            last = start + step * (count - 1)
            inside = count == 0 or (0 <= start < size and 0 <= last < size)
            require(self, inside, x, f"elements {start} to {last} in a dimension of {size}")
        return (TensorType(self.shape, x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By index arrays."""
        axes = [
            start + step * np.arange(count)
            for start, step, count in zip(self.starts, self.steps, self.shape, strict=True)
        ]
        return (np.ascontiguousarray(inputs[0][np.ix_(*axes)]) if axes else inputs[0],)


@frozen
class Concatenate(Movement):
    """The operands one after the other along ``axis``."""

    axis: int

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The sum of the sizes along ``axis``."""
        require(self, len(inputs) >= 1, "no inputs", "at least 1")
        first = inputs[0]
        require(self, 0 <= self.axis < first.rank, first, f"dimension {self.axis}")
        for each in inputs:
            alike = (each.dtype, each.rank) == (first.dtype, first.rank)
            fits = alike and self._rest(each) == self._rest(first)
            require(self, fits, f"{first} and {each}", f"one type except for dimension {self.axis}")
        total = sum(each.shape[self.axis] for each in inputs)
        shape = (*first.shape[: self.axis], total, *first.shape[self.axis + 1 :])
        return (TensorType(shape, first.dtype),)

    def _rest(self, kind: TensorType) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return kind.shape[: self.axis], kind.shape[self.axis + 1 :]

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``concatenate``."""
        return (np.concatenate(list(inputs), axis=self.axis),)


class PadMode(StrEnum):
    """Elements beyond the edges of a tensor."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    """Mirrored at the centre of the last element."""
    WRAP = "wrap"


MODES: dict[PadMode, Literal["edge", "reflect", "wrap"]] = {
    PadMode.EDGE: "edge",
    PadMode.REFLECT: "reflect",
    PadMode.WRAP: "wrap",
}


@frozen
class PadTensor(Movement):
    """``before`` and ``after`` more elements in each dimension: ``value``, or as ``mode`` says.

    x: T[...], value: T[].
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    mode: PadMode = PadMode.CONSTANT

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", PadMode(self.mode))
        if any(size < 0 for size in (*self.before, *self.after)):
            raise GraphError(f"{self}: required sizes of at least 0")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The padded shape."""
        x, value = require_inputs(self, inputs, 2)
        require(self, value == TensorType((), x.dtype), value, f"{x.dtype}[]")
        fits = len(self.before) == len(self.after) == x.rank
        require(self, fits, x, f"{len(self.before)} dimensions")
        padded = zip(x.shape, self.before, self.after, strict=True)
        if self.mode is not PadMode.CONSTANT:
            fits = all(size or not low + high for size, low, high in padded)
            require(self, fits, x, "elements to repeat")
            padded = zip(x.shape, self.before, self.after, strict=True)
        shape = tuple(low + size + high for size, low, high in padded)
        return (TensorType(shape, x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``pad``."""
        x, value = inputs
        widths = tuple(zip(self.before, self.after, strict=True))
        if not widths:
            return (x,)
        if self.mode is PadMode.CONSTANT:
            return (np.pad(x, widths, constant_values=value),)
        return (np.asarray(np.pad(x, widths, mode=MODES[self.mode])),)


@frozen
class Iota(Movement):
    """Element ``[i0, i1, ...]`` is ``i_axis``, wrapped to ``dtype``; no operand."""

    shape: tuple[int, ...]
    axis: int
    dtype: DType = DType.INT64

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", DType(self.dtype))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """``shape``."""
        require_inputs(self, inputs, 0)
        require(self, 0 <= self.axis < len(self.shape), self.shape, f"dimension {self.axis}")
        return (TensorType(self.shape, self.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``arange``, broadcast."""
        line = np.arange(self.shape[self.axis]).astype(self.dtype.numpy)
        column = line.reshape([-1 if d == self.axis else 1 for d in range(len(self.shape))])
        return (np.ascontiguousarray(np.broadcast_to(column, self.shape)),)
