"""Stored tensors repeated along dimensions of size 1: for sums and products, and by Expand."""

from dataclasses import replace

import numpy as np

from ...operators.indexing import Gather
from ...operators.integer.windows import Upsample2d
from ...operators.movement import Reshape
from .layouts import model_shape, permuted, to_model_order
from .state import State, UnrecognisedError
from .values import NCHW_TO_NHWC, Integer, identity_order

__all__ = ["repeated"]

MATRICES_RANK = 3
"""Dimensions of matrices of a batch, to which a mask may be added."""


def repeated(
    state: State,
    tensor: Integer,
    shape: tuple[int, ...],
    origin: str,
    order: tuple[int, ...] = NCHW_TO_NHWC,
) -> Integer:
    """``tensor`` repeated to ``shape``, as the model has it; itself where it has that shape.

    order: of what is stored, the batch first.  Raises UnrecognisedError for what is not an image.
    """
    builder, found = state.builder, model_shape(state.builder, tensor)
    if found == shape:
        return tensor
    if len(shape) == MATRICES_RANK and found[-1:] == shape[-1:]:
        return _repeated_rows(state, tensor, found, shape, origin)
    if len(found) == len(shape) > 4:
        return _repeated_neighbours(state, tensor, found, shape, origin)
    if len(found) != 4 or len(shape) != 4 or found[0] != shape[0]:
        raise UnrecognisedError(
            f"repeats shape {list(found)} to {list(shape)}; required images of one batch"
        )
    if shape[0] > 1:
        return _repeated_in_batch(state, tensor, found, shape, origin)
    name, last = permuted(builder, tensor, order, origin), order[3]
    if found[last] != shape[last]:
        firsts = builder.constant(f"{name}/firsts", np.zeros(shape[last], np.int64))
        name = builder.node(Gather(3), (name, firsts), f"{name}/channels", origin)
    rows, columns = (shape[axis] // found[axis] for axis in order[1:3])
    steps = ((rows, 1), (1, columns))
    for factors in steps if order == NCHW_TO_NHWC else steps[::-1]:
        # Of matrices, rows are repeated within each, and then all of it.
        if factors != (1, 1):
            name = builder.node(Upsample2d(factors), (name,), f"{name}/repeated", origin)
    return replace(tensor, name=name, permutation=order)


def _repeated_in_batch(
    state: State, tensor: Integer, found: tuple[int, ...], shape: tuple[int, ...], origin: str
) -> Integer:
    """Repeats a part of each of several rows or images, by picking it again and again."""
    builder = state.builder
    name = to_model_order(builder, tensor, origin)
    for axis, (size, wanted) in enumerate(zip(found, shape, strict=True)):
        if size != wanted:
            again = builder.constant(f"{name}/again", np.zeros(wanted, np.int64))
            name = builder.node(Gather(axis), (name, again), f"{name}/repeated", origin)
    return replace(tensor, name=name, permutation=identity_order(len(shape)))


def _repeated_neighbours(
    state: State, tensor: Integer, found: tuple[int, ...], shape: tuple[int, ...], origin: str
) -> Integer:
    """Each part of the dimension before repeated, as the heads of keys that groups of queries
    share: picked again and again.
    """
    builder = state.builder
    name = to_model_order(builder, tensor, origin)
    for axis in (n for n, size in enumerate(shape) if size != found[n]):
        if axis == 0:
            raise UnrecognisedError(f"repeats a batch of {list(found)}; required one image")
        before = builder.types[name].shape
        again = np.repeat(np.arange(before[axis - 1]), shape[axis])
        picked = builder.constant(f"{name}/again", again)
        name = builder.node(
            Reshape((*before[:axis], *before[axis + 1 :])), (name,), f"{name}/parts", origin
        )
        name = builder.node(Gather(axis - 1), (name, picked), f"{name}/repeated", origin)
        whole = (*before[:axis], shape[axis], *before[axis + 1 :])
        name = builder.node(Reshape(whole), (name,), f"{name}/apart", origin)
    return replace(tensor, name=name, permutation=identity_order(len(shape)))


def _repeated_rows(
    state: State, tensor: Integer, found: tuple[int, ...], shape: tuple[int, ...], origin: str
) -> Integer:
    """Rows, or one matrix, repeated to matrices of ``shape``."""
    builder = state.builder
    whole = (1,) * (MATRICES_RANK - len(found)) + found
    name = to_model_order(builder, tensor, origin)
    name = builder.node(Reshape((1, *whole)), (name,), f"{name}/matrix", origin)
    for axis, factors in ((0, (shape[0], 1)), (1, (1, shape[1]))):
        if whole[axis] != shape[axis]:
            name = builder.node(Upsample2d(factors), (name,), f"{name}/repeated", origin)
    name = builder.node(Reshape(shape), (name,), f"{name}/matrices", origin)
    return replace(tensor, name=name, permutation=identity_order(MATRICES_RANK))
