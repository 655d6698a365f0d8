"""Converters of operators on sequences and optionals; both exist only during an import."""

from collections.abc import Mapping

import numpy as np

from ...errors import UnsupportedOperatorError
from ...graph.formulas import concatenate
from .context import Converter, ImportContext, OptionalValue, TensorSequence, Value, optional
from .control import stack
from .inputs import normalise_axis, terms
from .node import OnnxNode

__all__ = ["SEQUENCES"]

Values = tuple[Value | None, ...]

MOST_ELEMENTS = 10_000
"""Elements of a sequence at most: each is a tensor of its own."""


def _sequence(value: Value | None) -> TensorSequence:
    if isinstance(value, OptionalValue):
        value = value.value
    if not isinstance(value, TensorSequence):
        raise ValueError("input 0 is not a sequence")
    return value


def _position(ctx: ImportContext, inputs: Values, place: int, default: int) -> int:
    tensor = optional(inputs, place)
    return default if tensor is None else int(ctx.value(tensor).reshape(-1)[0])


def convert_construct(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """The inputs in order."""
    return (TensorSequence(tuple(each for each in inputs if each is not None)),)


def convert_at(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """One element."""
    return (_sequence(inputs[0]).elements[_position(ctx, inputs, 1, 0)],)


def convert_erase(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """All but one element, by default the last."""
    elements = list(_sequence(inputs[0]).elements)
    del elements[_position(ctx, inputs, 1, -1)]
    return (TensorSequence(tuple(elements)),)


def convert_insert(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """One more element, by default at the end."""
    elements = list(_sequence(inputs[0]).elements)
    added = inputs[1]
    if added is None:
        raise ValueError("input 1 is left out")
    if len(elements) == MOST_ELEMENTS:
        raise UnsupportedOperatorError(
            f"{node}: a sequence of more than {MOST_ELEMENTS} elements; required at most as many"
        )
    elements.insert(_position(ctx, inputs, 2, len(elements)), added)
    return (TensorSequence(tuple(elements)),)


def convert_length(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """A constant."""
    return (ctx.constant(np.asarray(len(_sequence(inputs[0]).elements), np.int64)),)


def convert_split_to_sequence(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """Slices along an axis: of one size, or as given; single ones may lose the dimension."""
    (x,) = terms(ctx, inputs[:1], 1)
    axis = normalise_axis(node.integer("axis", 0), x.rank)
    size, split = x.shape[axis], optional(inputs, 1)
    if split is None:
        sizes = [1] * min(size, MOST_ELEMENTS + 1)
    else:
        given = ctx.value(split)
        part = int(given.reshape(-1)[0]) if given.ndim == 0 else 0
        whole = [min(part, size - start) for start in range(0, size, part)] if part else []
        sizes = whole or [int(n) for n in given.reshape(-1)]
    if len(sizes) > MOST_ELEMENTS:
        raise UnsupportedOperatorError(
            f"{node}: a sequence of {len(sizes)} elements; required at most {MOST_ELEMENTS}"
        )
    elements, start = [], 0
    for own in sizes:
        each = x.slice(axis, start, start + own)
        if split is None and not node.integer("keepdims", 1):
            each = each.reshape(*x.shape[:axis], *x.shape[axis + 1 :])
        elements.append(each.tensor)
        start += own
    return (TensorSequence(tuple(elements)),)


def convert_concat_from_sequence(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """The elements along an axis, or along a new one."""
    elements = _sequence(inputs[0]).elements
    tensors = terms(ctx, elements, len(elements))
    if node.integer("new_axis", 0):
        axis = normalise_axis(node.integer("axis", 0), tensors[0].rank + 1)
        return (stack(ctx, [each.tensor for each in tensors], axis),)
    axis = normalise_axis(node.integer("axis", 0), tensors[0].rank)
    return (concatenate(tensors, axis).tensor,)


def convert_has_element(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """A constant."""
    value = inputs[0] if inputs else None
    present = value.value is not None if isinstance(value, OptionalValue) else value is not None
    return (ctx.constant(np.asarray(present)),)


def convert_get_element(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """The value of an optional."""
    value = inputs[0]
    found = value.value if isinstance(value, OptionalValue) else value
    if found is None:
        raise ValueError("the optional is empty")
    return (found,)


SEQUENCES: Mapping[str, Converter] = {
    "ConcatFromSequence": convert_concat_from_sequence,
    "Optional": lambda ctx, node, inputs: (OptionalValue(inputs[0] if inputs else None),),
    "OptionalGetElement": convert_get_element,
    "OptionalHasElement": convert_has_element,
    "SequenceAt": convert_at,
    "SequenceConstruct": convert_construct,
    "SequenceEmpty": lambda ctx, node, inputs: (TensorSequence(()),),
    "SequenceErase": convert_erase,
    "SequenceInsert": convert_insert,
    "SequenceLength": convert_length,
    "SplitToSequence": convert_split_to_sequence,
}
