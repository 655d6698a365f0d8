"""Gather of images, rows and tables, and one index of a dimension, in integer layers."""

from dataclasses import replace

import numpy as np

from ...ir import Node
from ...operators.indexing import Gather
from ...operators.integer.windows import Upsample2d
from ...operators.movement import Reshape, Slice
from .constant_tensors import as_tensor
from .kept import in_model_form
from .layouts import model_shape, to_model_order, to_nhwc
from .movement import with_tensor
from .resampling import picked
from .state import State, UnrecognisedError
from .values import NCHW_TO_NHWC, Integer, Real, RealConstant, Value, identity_order

__all__ = ["recognise_gather"]


def recognise_gather(state: State, node: Node) -> Value:
    """Rows, columns or channels of an image: each a whole number of times, or any of them; or rows
    of a constant table.
    """
    operator = node.operator
    assert isinstance(operator, Gather)
    table = state.values.get(node.inputs[0])
    if isinstance(table, RealConstant):
        return _looked_up(state, node, table)
    indices = state.constant(node.inputs[1], "the index")
    found = picked(state.value(node.inputs[0]), operator.axis, indices)
    if found is not None:
        return found
    value, tensor = state.integer(node.inputs[0])
    shape = model_shape(state.builder, tensor)
    if indices.ndim == 0:
        return _one(state, node, operator.axis, int(indices))
    if len(shape) >= 4 and indices.shape == (1,):
        part = _part(state, node, tensor, operator.axis, int(indices[0]))
        return with_tensor(value, part)
    if len(shape) != 4 or operator.axis == 0 or indices.ndim != 1:
        raise UnrecognisedError(
            f"picks {list(indices.shape)} of dimension {operator.axis} of {list(shape)}; required "
            "whole rows or columns of an image, its channels, or one element"
        )
    size, builder = shape[operator.axis], state.builder
    factor = max(indices.size // size, 1)
    name = to_nhwc(builder, tensor, node.origin)
    if operator.axis > 1 and np.array_equal(indices, np.repeat(np.arange(size), factor)):
        factors = (factor, 1) if operator.axis == 2 else (1, factor)
        name = builder.node(Upsample2d(factors), (name,), node.output, node.origin)
    else:
        places = np.clip(np.where(indices < 0, indices + size, indices), 0, size - 1)
        constant = builder.constant(f"{node.output}/places", places.astype(np.int64))
        gather = Gather(NCHW_TO_NHWC.index(operator.axis))
        name = builder.node(gather, (name, constant), node.output, node.origin)
    if operator.axis > 1:
        state.picked[name] = value, operator.axis, indices
    return with_tensor(value, replace(tensor, name=name, permutation=NCHW_TO_NHWC))


def _one(state: State, node: Node, axis: int, index: int) -> Value:
    """The elements at one index of a dimension, which is removed."""
    value, tensor = state.integer(node.inputs[0])
    shape, builder = model_shape(state.builder, tensor), state.builder
    part = _part(state, node, tensor, axis, index)
    name = to_model_order(builder, part, node.origin)
    less = (*shape[:axis], *shape[axis + 1 :])
    name = builder.node(Reshape(less), (name,), node.output, node.origin)
    return with_tensor(value, replace(tensor, name=name, permutation=identity_order(len(less))))


def _part(state: State, node: Node, tensor: Integer, axis: int, index: int) -> Integer:
    """The elements at one index of a dimension, which stays, of size 1."""
    shape, order = model_shape(state.builder, tensor), tensor.permutation
    if not -shape[axis] <= index < shape[axis]:
        raise UnrecognisedError(f"picks element {index} of {shape[axis]}")
    if shape[axis] == 1:
        return tensor
    starts = tuple(index % shape[axis] if place == axis else 0 for place in order)
    kept = tuple(1 if place == axis else shape[place] for place in order)
    part = Slice(starts, (1,) * len(shape), kept)
    name = state.builder.node(part, (tensor.name,), f"{node.output}/part", node.origin)
    return replace(tensor, name=name)


def _looked_up(state: State, node: Node, table: RealConstant) -> Real:
    """Bytes of a table, picked by an index that is computed."""
    shape = state.source.types[node.output].shape
    held = as_tensor(state, table, f"{node.output}/table")
    if not isinstance(held, Real):
        raise UnrecognisedError(
            f"picks {list(shape)} of a constant with {table.scales.size} scales; required bytes of "
            "one scale"
        )
    inputs = (held.tensor.name, in_model_form(state, node.inputs[1]))
    name = state.builder.node(node.operator, inputs, node.output, node.origin)
    order = identity_order(len(shape))
    return replace(held, tensor=replace(held.tensor, name=name, permutation=order))
