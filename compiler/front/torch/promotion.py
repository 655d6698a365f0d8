"""The common element type of operands.  Source: PyTorch, "Tensor Attributes", type promotion."""

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term
from .context import Context, Number

__all__ = ["as_term", "common_type", "promoted"]


def common_type(*operands: Term | Number) -> DType:
    """Type that operands are converted to: tensors decide, then tensors of no dimension, then
    numbers, unless one of the latter is of a higher category (bool, integer, float).
    """
    ranked: list[DType | None] = [None, None, None]
    for each in operands:
        place = 2 if not isinstance(each, Term) else 0 if each.rank else 1
        ranked[place] = _larger(ranked[place], _own(each))
    found: DType | None = None
    for own in ranked:
        if found is None or (own is not None and _category(own) > _category(found)):
            found = _larger(found, own)
    assert found is not None
    return found


def _own(operand: Term | Number) -> DType:
    if isinstance(operand, Term):
        return operand.dtype
    if isinstance(operand, bool):
        return DType.BOOL
    return DType.INT64 if isinstance(operand, int) else DType.FLOAT32


def _category(dtype: DType) -> int:
    return 2 if dtype.is_float else int(dtype != DType.BOOL)


def _larger(a: DType | None, b: DType | None) -> DType | None:
    if a is None or b is None or a == b:
        return a or b
    if _category(a) != _category(b):
        return max(a, b, key=_category)
    if a.is_float:
        return DType.FLOAT32 if a.bytes == b.bytes else max(a, b, key=lambda each: each.bytes)
    return DType(str(np.promote_types(a.numpy, b.numpy)))


def as_term(context: Context, value: Term | Number, dtype: DType) -> Term:
    """A tensor or a number as a tensor of ``dtype``."""
    if isinstance(value, Term):
        return value.cast(dtype)
    return context.term(value, dtype)


def promoted(context: Context, a: Term | Number, b: Term | Number) -> tuple[Term, Term]:
    """Two operands in their common type."""
    dtype = common_type(a, b)
    return as_term(context, a, dtype), as_term(context, b, dtype)
