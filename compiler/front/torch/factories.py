"""Tensors made of numbers, and conversions."""

from collections.abc import Sequence
from math import ceil

import numpy as np

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term
from ...graph.operators.movement import Iota
from .context import Context, Converter, Number
from .promotion import as_term

__all__ = ["FACTORIES"]


def full(context: Context, size: Sequence[int] = (), fill_value: Number = 0, **_: object) -> Term:
    """One number everywhere."""
    return as_term(context, fill_value, context.dtype).expand(*size)


def _filled(value: Number) -> Converter:
    def convert(context: Context, size: Sequence[int] = (), **_: object) -> Term:
        return full(context, size, value)

    return convert


def _filled_like(value: Number) -> Converter:
    def convert(context: Context, x: Term, **_: object) -> Term:
        return full(context, x.shape, value)

    return convert


def _new_filled(value: Number) -> Converter:
    def convert(context: Context, x: Term, size: Sequence[int] = (), **_: object) -> Term:
        return full(context, size, value)

    return convert


def fill(context: Context, x: Term, value: Term | Number = 0) -> Term:
    """One number in place of a tensor's."""
    return as_term(context, value, x.dtype).reshape().expand(*x.shape)


def arange(
    context: Context, end: Number = 0, start: Number = 0, step: Number = 1, **_: object
) -> Term:
    """Numbers at equal distances."""
    count = max(ceil((end - start) / step), 0)
    context.require_room(count)
    return context.term(np.arange(count) * np.asarray(step) + np.asarray(start), context.dtype)


def linspace(context: Context, start: Number, end: Number, steps: int, **_: object) -> Term:
    """So many numbers at equal distances."""
    context.require_room(steps)
    return context.term(np.linspace(start, end, steps), context.dtype)


def eye(context: Context, n: int, m: int | None = None, **_: object) -> Term:
    """1 on the diagonal."""
    columns = n if m is None else m
    context.require_room(n, columns)
    return context.term(np.eye(n, columns), context.dtype)


def _triangle(lower: bool) -> Converter:
    """One side of a diagonal, 0 elsewhere."""

    def convert(context: Context, x: Term, diagonal: int = 0) -> Term:
        rows, columns = x.shape[-2:]
        row = context.emitted(Iota((rows, columns), 0))
        column = context.emitted(Iota((rows, columns), 1))
        kept = column - row <= diagonal if lower else column - row >= diagonal
        return kept.where(x, 0, x.dtype)

    return convert


def tril_indices(context: Context, row: int, col: int, offset: int = 0, **_: object) -> Term:
    """Rows and columns of what is not above a diagonal."""
    context.require_room(row, col)
    return context.term(np.stack(np.tril_indices(row, offset, col)), context.dtype)


def triu_indices(context: Context, row: int, col: int, offset: int = 0, **_: object) -> Term:
    """Rows and columns of what is not below a diagonal."""
    context.require_room(row, col)
    return context.term(np.stack(np.triu_indices(row, offset, col)), context.dtype)


def one_hot(context: Context, x: Term, num_classes: int = -1) -> Term:
    """1 at the place that each number says."""
    if num_classes < 0:
        num_classes = int(context.known_value(x).max(initial=-1)) + 1
    context.require_room(num_classes)
    places = context.term(np.arange(num_classes), x.dtype)
    return x.unsqueeze(x.rank).equal(places).cast(DType.INT64)


def convert_type(context: Context, x: Term, *_: object, **__: object) -> Term:
    """In the declared type."""
    return x.cast(context.dtype)


def native_dropout(
    context: Context, x: Term, p: float, train: bool | None = None
) -> tuple[Term, Term]:
    """The tensor itself; in training there is no code for it."""
    if train:
        raise UnsupportedOperatorError(f"{context.where}: dropout in training; use model.eval()")
    return x, x.constant(True, DType.BOOL).expand(*x.shape)


FACTORIES: dict[str, Converter] = {
    "aten._to_copy": convert_type,
    "aten.arange": arange,
    "aten.copy": lambda context, x, src, non_blocking=False: src.cast(x.dtype).expand(*x.shape),
    "aten.empty": _filled(0),
    "aten.empty_like": _filled_like(0),
    "aten.empty_permuted": _filled(0),
    "aten.empty_strided": _filled(0),
    "aten.eye": eye,
    "aten.fill": fill,
    "aten.full": full,
    "aten.full_like": lambda context, x, fill_value=0, **_: full(context, x.shape, fill_value),
    "aten.linspace": linspace,
    "aten.native_dropout": native_dropout,
    "aten.new_empty": _new_filled(0),
    "aten.new_empty_strided": _new_filled(0),
    "aten.new_full": lambda context, x, size=(), fill_value=0, **_: full(context, size, fill_value),
    "aten.new_ones": _new_filled(1),
    "aten.new_zeros": _new_filled(0),
    "aten.one_hot": one_hot,
    "aten.ones": _filled(1),
    "aten.ones_like": _filled_like(1),
    "aten.scalar_tensor": lambda context, s, **_: as_term(context, s, context.dtype),
    "aten.to": convert_type,
    "aten.tril": _triangle(True),
    "aten.tril_indices": tril_indices,
    "aten.triu": _triangle(False),
    "aten.triu_indices": triu_indices,
    "aten.type_as": convert_type,
    "aten.zero": lambda context, x: fill(context, x, 0),
    "aten.zeros": _filled(0),
    "aten.zeros_like": _filled_like(0),
    "prims.convert_element_type": convert_type,
}
