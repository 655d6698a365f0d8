"""Elements of operators that move elements about."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from ..dtypes import DType
from ..graph.operators import movement
from ..graph.operators.movement import PadMode
from ..loops.expressions import Binary, BinaryFunction, Cast, Constant, Expr, Select
from .operand import Element, Indices, Operand, index, zero

__all__ = ["MOVEMENT"]


def reshape(operator: movement.Reshape, operands: Sequence[Operand], indices: Indices) -> Expr:
    """Indices are recomputed only within the runs of dimensions that differ."""
    return operands[0][reshaped(indices, operator.shape, operands[0].type.shape)]


def transpose(operator: movement.Transpose, operands: Sequence[Operand], indices: Indices) -> Expr:
    """The indices, permuted back."""
    places = {axis: place for place, axis in enumerate(operator.permutation)}
    return operands[0][tuple(indices[places[axis]] for axis in range(len(indices)))]


def expand(operator: movement.Expand, operands: Sequence[Operand], indices: Indices) -> Expr:
    """The element that is repeated."""
    return operands[0].broadcast(indices)


def slice_(operator: movement.Slice, operands: Sequence[Operand], indices: Indices) -> Expr:
    """``start + index * step``."""
    moved = zip(indices, operator.starts, operator.steps, strict=True)
    return operands[0][tuple(_affine(each, step, start) for each, start, step in moved)]


def concatenate(
    operator: movement.Concatenate, operands: Sequence[Operand], indices: Indices
) -> Expr:
    """A choice by the index along the axis; anything where there are no elements."""
    axis, sizes = operator.axis, [each.type.shape[operator.axis] for each in operands]
    present = [(each, size) for each, size in zip(operands, sizes, strict=True) if size]
    if not present:
        return Constant(0, operands[0].type.dtype)
    if len(present) == 1:
        return present[0][0][indices]
    place = indices[axis]
    first = sum(size for _, size in present[:-1])
    result = present[-1][0].guarded(_replaced(indices, axis, place - first))
    for number in range(len(present) - 2, -1, -1):
        operand, size = present[number]
        first -= size
        own = _replaced(indices, axis, place - first if first else place)
        result = operand.where(place < first + size, own, result)
    return result


def pad(operator: movement.PadTensor, operands: Sequence[Operand], indices: Indices) -> Expr:
    """The value outside, or an index that is led back inside."""
    x, value = operands
    if operator.mode is not PadMode.CONSTANT:
        led = zip(indices, x.type.shape, operator.before, operator.after, strict=True)
        return x[tuple(_led_back(operator.mode, *each) for each in led)]
    moved, conditions = [], []
    for each, size, before, after in zip(
        indices, x.type.shape, operator.before, operator.after, strict=True
    ):
        own = each - before if before else each
        moved.append(own)
        if before:
            conditions.append(index(0) <= own)
        if after:
            conditions.append(own < size)
    if not conditions:
        return x[tuple(moved)]
    condition = conditions[0]
    for other in conditions[1:]:
        condition = condition & other
    if not x.type.elements:
        return value[()]
    return x.where(condition, tuple(moved), value[()])


def iota(operator: movement.Iota, operands: Sequence[Operand], indices: Indices) -> Expr:
    """The index itself."""
    place = indices[operator.axis]
    return place if operator.dtype == DType.INT64 else Cast(operator.dtype, place)


def reshaped(indices: Indices, shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[Expr, ...]:
    """The indices in ``other`` of the element at ``indices`` in ``shape``."""
    if 0 in shape:
        return tuple(zero() for _ in other)
    result: list[Expr] = []
    i = j = 0
    while i < len(shape) or j < len(other):
        first, second = i, j
        size, size_other = 1, 1
        while True:
            if size == size_other and (i > first or j > second):
                break
            if size <= size_other and i < len(shape):
                size, i = size * shape[i], i + 1
            elif j < len(other):
                size_other, j = size_other * other[j], j + 1
            else:
                size, i = size * shape[i], i + 1
        result += _regrouped(indices[first:i], shape[first:i], other[second:j])
    return tuple(result)


def _regrouped(indices: Indices, shape: tuple[int, ...], other: tuple[int, ...]) -> list[Expr]:
    significant = [(each, size) for each, size in zip(indices, shape, strict=True) if size != 1]
    flat: Expr = zero()
    for place, (each, size) in enumerate(significant):
        flat = each if place == 0 else flat * size + each
    result: list[Expr] = []
    leading = next((d for d, size in enumerate(other) if size != 1), None)
    for d, size in enumerate(other):
        rest = prod(other[d + 1 :])
        if size == 1:
            result.append(zero())
            continue
        own = flat if rest == 1 else flat // rest
        result.append(own if d == leading else _modulo(own, size))
    return result


def _affine(place: Expr, step: int, start: int) -> Expr:
    scaled = place if step == 1 else place * step
    return scaled + start if start else scaled


def _modulo(place: Expr, size: int) -> Expr:
    return zero() if size == 1 else place % size


def _led_back(mode: PadMode, place: Expr, size: int, before: int, after: int) -> Expr:
    if not before and not after:
        return place
    own = place - before
    match mode:
        case PadMode.WRAP:
            return own % size
        case PadMode.REFLECT:
            if size == 1:
                return zero()
            period = own % (2 * size - 2)
            return Select(period < size, period, index(2 * size - 2) - period)
        case _:
            low = Binary(BinaryFunction.MAX, own, Constant(0, DType.INT64))
            return Binary(BinaryFunction.MIN, low, Constant(size - 1, DType.INT64))


def _replaced(indices: Indices, axis: int, place: Expr) -> Indices:
    return (*indices[:axis], place, *indices[axis + 1 :])


MOVEMENT: Mapping[type[Any], Element] = {
    movement.Reshape: reshape,
    movement.Transpose: transpose,
    movement.Expand: expand,
    movement.Slice: slice_,
    movement.Concatenate: concatenate,
    movement.PadTensor: pad,
    movement.Iota: iota,
}
