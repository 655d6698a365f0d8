"""Inputs of a model's node as terms of formulas."""

from collections.abc import Sequence

import numpy as np

from ...dtypes import DType
from ...errors import ModelError
from ...graph.emitter import Tensor
from ...graph.formulas import Term
from .context import ImportContext, Value, required
from .node import OnnxNode

__all__ = [
    "Inputs",
    "finite_term",
    "normalise_axis",
    "optional_term",
    "require_one",
    "scalar",
    "term",
    "terms",
]

Inputs = tuple[Tensor | None, ...]
"""The inputs of a node; None for those left out."""


def term(context: ImportContext, node: OnnxNode, inputs: Inputs, place: int) -> Term:
    """The input at ``place``.  Raises ModelError when it is left out."""
    found = inputs[place] if place < len(inputs) else None
    if found is None:
        raise ModelError(f"{node}: input {place} is left out; it is required")
    return Term(context, found)


def terms(context: ImportContext, inputs: Sequence[Value | None], count: int) -> tuple[Term, ...]:
    """The first ``count`` inputs.  Raises ValueError when one of them is left out."""
    return tuple(Term(context, each) for each in required(inputs, count))


def optional_term(context: ImportContext, inputs: Inputs, place: int) -> Term | None:
    """The input at ``place``, or None when it is left out."""
    found = inputs[place] if place < len(inputs) else None
    return None if found is None else Term(context, found)


def finite_term(context: ImportContext, node: OnnxNode, inputs: Inputs, place: int) -> Term:
    """The input at ``place``, a scale or what is quantised.

    Raises ModelError for a constant with NaN or infinities.
    """
    found = term(context, node, inputs, place)
    if found.dtype.is_float and found.tensor.narrow is None and context.known(found.tensor):
        values = context.value(found.tensor)
        wrong = values[~np.isfinite(values)]
        if wrong.size:
            raise ModelError(
                f"{node}: input {place}, {node.inputs[place]!r}, has a value {wrong.flat[0]}; "
                "required finite numbers"
            )
    return found


def scalar(context: ImportContext, value: float, dtype: DType) -> Term:
    """A constant of no dimension."""
    return Term(context, context.constant(np.asarray(value).astype(dtype.numpy)))


def normalise_axis(axis: int, rank: int) -> int:
    """``axis`` counted from 0.

    Raises ValueError when there is no such dimension.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis}; required -{rank} to {rank - 1}")
    return axis + rank if axis < 0 else axis


def require_one(node: OnnxNode, what: str, *given: Term | None) -> None:
    """Raise ModelError unless each, if it is there, is one number."""
    for each in given:
        if each is not None and each.tensor.type.elements != 1:
            raise ModelError(f"{node}: {what} of shape {list(each.shape)}; required one number")
