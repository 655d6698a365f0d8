"""Tensors with Python's operators, for writing decompositions as formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dovetail.isa.frozen import frozen

from ..dtypes import DType
from .emitter import Emitter, Tensor
from .operators.contractions import contract
from .operators.elementwise import Binary, Cast, Unary, Where
from .operators.elementwise import BinaryFunction as B
from .operators.elementwise import UnaryFunction as U
from .operators.indexing import Gather, GatherElements, ScatterElements, ScatterFunction
from .operators.movement import Concatenate, Expand, PadTensor, Reshape, Slice, Transpose
from .operators.reductions import Reduce, ReduceFunction
from .operators.rows import SoftmaxRows

__all__ = ["Term", "concatenate", "einsum", "saturated", "standardized", "widened"]

if TYPE_CHECKING:
    from .operators.protocol import Array

Scalar = int | float | bool


def _unary(function: U) -> Callable[[Term], Term]:
    """The method that applies ``function``."""

    def method(self: Term) -> Term:
        return self.unary(function)

    return method


def _binary(function: B) -> Callable[[Term, Term | Scalar | Array], Term]:
    """The method that applies ``function``, broadcast."""

    def method(self: Term, other: Term | Scalar | Array) -> Term:
        return self.binary(function, other)

    return method


@frozen
class Term:
    """A tensor of the graph being built; numbers in formulas take its dtype."""

    context: Emitter
    tensor: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.tensor.type.shape

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.tensor.type.dtype

    def lift(self, value: Term | Scalar | Array) -> Term:
        """``value`` as a tensor of this dtype."""
        if isinstance(value, Term):
            return value
        return Term(self.context, self.context.constant(np.asarray(value, self.dtype.numpy)))

    def binary(self, function: B, other: Term | Scalar | Array) -> Term:
        """``function(self, other)``, broadcast."""
        right = self.lift(other)
        return Term(self.context, self.context.emit(Binary(function), self.tensor, right.tensor))

    def unary(self, function: U) -> Term:
        """``function(self)``."""
        return Term(self.context, self.context.emit(Unary(function), self.tensor))

    __add__ = _binary(B.ADD)
    __sub__ = _binary(B.SUB)
    __mul__ = _binary(B.MUL)
    __truediv__ = _binary(B.DIV)
    __mod__ = _binary(B.MOD)
    __lt__ = _binary(B.LT)
    __le__ = _binary(B.LE)
    __and__ = _binary(B.AND)
    __or__ = _binary(B.OR)
    __lshift__ = _binary(B.SHL)
    __rshift__ = _binary(B.SHR)
    equal = _binary(B.EQ)
    minimum = _binary(B.MIN)
    maximum = _binary(B.MAX)
    power = _binary(B.POW)
    __neg__ = _unary(U.NEG)
    __invert__ = _unary(U.NOT)
    exp = _unary(U.EXP)
    log = _unary(U.LOG)
    sqrt = _unary(U.SQRT)
    tanh = _unary(U.TANH)
    abs = _unary(U.ABS)
    floor = _unary(U.FLOOR)
    ceil = _unary(U.CEIL)
    rint = _unary(U.RINT)

    def __radd__(self, other: Scalar | Array) -> Term:
        return self.lift(other) + self

    def __rsub__(self, other: Scalar | Array) -> Term:
        return self.lift(other) - self

    def __rmul__(self, other: Scalar | Array) -> Term:
        return self.lift(other) * self

    def __rtruediv__(self, other: Scalar | Array) -> Term:
        return self.lift(other) / self

    def __gt__(self, other: Term | Scalar) -> Term:
        return self.lift(other).binary(B.LT, self)

    def __ge__(self, other: Term | Scalar) -> Term:
        return self.lift(other).binary(B.LE, self)

    def sigmoid(self) -> Term:
        """``1 / (1 + exp(-x))``."""
        return 1.0 / ((-self).exp() + 1.0)

    def softplus(self) -> Term:
        """``log(1 + exp(x))``, without overflow; exact where that is small.

        Source: W. Kahan: ``log(1 + e)`` is ``log(u) * e / (u - 1)``, u = 1 + e.
        """
        e = (-self.abs()).exp()
        u = e + 1.0
        log = u.equal(1.0).where(e, u.log() * e / (u - 1.0), e.dtype)
        return self.maximum(0.0) + log

    def clip(self, low: Term | Scalar, high: Term | Scalar) -> Term:
        """``min(max(x, low), high)``."""
        return self.maximum(low).minimum(high)

    def where(self, chosen: Term | Scalar, other: Term | Scalar, dtype: DType) -> Term:
        """``chosen`` where this bool tensor holds, else ``other``; numbers become ``dtype``."""
        pair = [
            each if isinstance(each, Term) else self.constant(each, dtype)
            for each in (chosen, other)
        ]
        emitted = self.context.emit(Where(), self.tensor, pair[0].tensor, pair[1].tensor)
        return Term(self.context, emitted)

    def constant(self, value: Scalar | Array, dtype: DType) -> Term:
        """A constant in the same graph."""
        return Term(self.context, self.context.constant(np.asarray(value, dtype.numpy)))

    def cast(self, dtype: DType) -> Term:
        """Converted, unless it is ``dtype`` already."""
        if dtype == self.dtype:
            return self
        return Term(self.context, self.context.emit(Cast(dtype), self.tensor))

    def reshape(self, *shape: int) -> Term:
        """The same elements; one size may be -1."""
        if -1 in shape:
            known = -int(np.prod(shape))
            rest = self.tensor.type.elements // known if known else 0
            shape = tuple(rest if size == -1 else size for size in shape)
        if shape == self.shape:
            return self
        return Term(self.context, self.context.emit(Reshape(shape), self.tensor))

    def unsqueeze(self, *axes: int) -> Term:
        """A dimension of 1 at each of ``axes`` of the result, none negative."""
        sizes, rank = iter(self.shape), self.rank + len(axes)
        return self.reshape(*(1 if axis in axes else next(sizes) for axis in range(rank)))

    def transpose(self, *permutation: int) -> Term:
        """Result dimension i is dimension ``permutation[i]``."""
        if permutation == tuple(range(self.rank)):
            return self
        return Term(self.context, self.context.emit(Transpose(permutation), self.tensor))

    def move_axis(self, source: int, destination: int) -> Term:
        """One dimension moved, the others in order."""
        order = [axis for axis in range(self.rank) if axis != source % self.rank]
        order.insert(destination % self.rank, source % self.rank)
        return self.transpose(*order)

    def expand(self, *shape: int) -> Term:
        """Broadcast to ``shape``."""
        if shape == self.shape:
            return self
        return Term(self.context, self.context.emit(Expand(shape), self.tensor))

    def tile(self, *repeats: int) -> Term:
        """Repeated ``repeats[i]`` times along each dimension ``i``: as targets see it, a dimension
        of size 1 that is broadcast.

        Raises ValueError unless there are as many repeats as dimensions.
        """
        if len(repeats) != self.rank:
            raise ValueError(f"{len(repeats)} repeats of {list(self.shape)}; required {self.rank}")
        apart: list[tuple[int, int]] = []
        for size, count in zip(self.shape, repeats, strict=True):
            apart += [(1, count), (size, size)] if count != 1 != size else [(size, size * count)]
        before, after = zip(*apart, strict=True) if apart else ((), ())
        whole = (size * count for size, count in zip(self.shape, repeats, strict=True))
        return self.reshape(*before).expand(*after).reshape(*whole)

    def slice(self, axis: int, start: int, stop: int, step: int = 1) -> Term:
        """Indices ``range(start, stop, step)`` of one dimension."""
        axis %= self.rank
        starts, steps, shape = [0] * self.rank, [1] * self.rank, list(self.shape)
        starts[axis], steps[axis], shape[axis] = start, step, len(range(start, stop, step))
        if tuple(shape) == self.shape and step == 1:
            return self
        operator = Slice(tuple(starts), tuple(steps), tuple(shape))
        return Term(self.context, self.context.emit(operator, self.tensor))

    def flip(self, *axes: int) -> Term:
        """The elements along ``axes`` in reverse order."""
        starts = tuple(size - 1 if axis in axes else 0 for axis, size in enumerate(self.shape))
        steps = tuple(-1 if axis in axes else 1 for axis in range(self.rank))
        operator = Slice(starts, steps, self.shape)
        return Term(self.context, self.context.emit(operator, self.tensor))

    def pad(self, widths: Sequence[tuple[int, int]], value: Term | Scalar = 0) -> Term:
        """``widths``: elements of ``value`` before and after, of each dimension."""
        if not any(before or after for before, after in widths):
            return self
        befores, afters = (tuple(each) for each in zip(*widths, strict=True))
        fill = self.lift(value)
        operator = PadTensor(befores, afters)
        return Term(self.context, self.context.emit(operator, self.tensor, fill.tensor))

    def take(self, indices: Term | Array, axis: int) -> Term:
        """Index ``axis`` by an integer tensor, whose dimensions take the place of it."""
        if not isinstance(indices, Term):
            indices = self.constant(indices, DType.INT64)
        emitted = self.context.emit(Gather(axis % self.rank), self.tensor, indices.tensor)
        return Term(self.context, emitted)

    def take_elements(self, indices: Term, axis: int) -> Term:
        """``result[i, j] = x[i, indices[i, j]]`` along ``axis``."""
        operator = GatherElements(axis % self.rank)
        return Term(self.context, self.context.emit(operator, self.tensor, indices.tensor))

    def scatter(self, axis: int, indices: Term, updates: Term, add: bool = False) -> Term:
        """``result[i, indices[i, j]] = updates[i, j]``, or that added, along ``axis``."""
        function = ScatterFunction.ADD if add else ScatterFunction.REPLACE
        operands = (self.tensor, indices.tensor, updates.tensor)
        return Term(self.context, self.context.emit(ScatterElements(axis, function), *operands))

    def reduce(self, function: ReduceFunction, axes: Sequence[int], keep: bool = False) -> Term:
        """Over ``axes``, none of them negative; dimensions stay as 1 with ``keep``."""
        operator = Reduce(function, tuple(sorted(axes)), keep)
        return Term(self.context, self.context.emit(operator, self.tensor))

    def sum(self, *axes: int, keep: bool = False) -> Term:
        """The sum over ``axes``."""
        return self.reduce(ReduceFunction.SUM, [axis % self.rank for axis in axes], keep)

    def max(self, *axes: int, keep: bool = False) -> Term:
        """The maximum over ``axes``."""
        return self.reduce(ReduceFunction.MAX, [axis % self.rank for axis in axes], keep)

    def mean(self, *axes: int, keep: bool = False) -> Term:
        """The mean over ``axes``."""
        count = int(np.prod([self.shape[axis] for axis in axes]))
        return self.sum(*axes, keep=keep) / count

    def softmax(self, axis: int) -> Term:
        """``exp(x - max) / sum(exp(x - max))`` along ``axis``."""
        if axis % self.rank == self.rank - 1 and self.dtype.bytes >= 4 and self.shape[-1]:
            return Term(self.context, self.context.emit(SoftmaxRows(), self.tensor))
        weights = (self - self.max(axis, keep=True)).exp()
        return weights / weights.sum(axis, keep=True)


def concatenate(values: Sequence[Term], axis: int) -> Term:
    """One after the other along ``axis``, which may be negative; empty ones are left out."""
    first = values[0]
    axis %= first.rank
    if len({(*each.shape[:axis], *each.shape[axis + 1 :]) for each in values}) == 1:
        values = [each for each in values if each.shape[axis]] or values[:1]
    if len(values) == 1:
        return values[0]
    tensors = (each.tensor for each in values)
    return Term(first.context, first.context.emit(Concatenate(axis), *tensors))


def einsum(
    operands: Sequence[tuple[Term, Sequence[int]]], output: Sequence[int], dtype: DType
) -> Term:
    """``contract`` of values with their labels; the sum is of ``dtype``, so is the result."""
    types = tuple(value.tensor.type for value, _ in operands)
    operator = contract(types, [labels for _, labels in operands], output, dtype)
    context = operands[0][0].context
    return Term(context, context.emit(operator, *(value.tensor for value, _ in operands)))


def saturated(x: Term, dtype: DType) -> Term:
    """Rounded half to even, clipped to the range of an integer type, converted.

    NaN becomes the smallest value, as ONNX Runtime has it: no comparison with NaN holds.
    """
    limits = np.iinfo(str(dtype))
    low, high = float(limits.min), float(limits.max)
    x = x.rint()
    x = (x >= low).where(x, low, x.dtype)
    return (x <= high).where(x, high, x.dtype).cast(dtype)


def standardized(x: Term, axes: Sequence[int], epsilon: float) -> tuple[Term, Term, Term]:
    """``(x - mean) / sqrt(variance + epsilon)`` over ``axes``; the mean; the inverse deviation."""
    mean = x.mean(*axes, keep=True)
    centred = x - mean
    inverse = 1.0 / ((centred * centred).mean(*axes, keep=True) + epsilon).sqrt()
    return centred * inverse, mean, inverse


def widened(x: Term) -> Term:
    """In float32, where it is a narrower float."""
    return x.cast(DType.FLOAT32) if x.dtype in (DType.FLOAT16, DType.BFLOAT16) else x
