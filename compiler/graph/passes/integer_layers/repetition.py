"""Stored tensors repeated along dimensions of size 1: for sums and products, and by Expand."""

from dataclasses import replace

import numpy as np

from ...operators.indexing import Gather
from ...operators.integer.windows import Upsample2d
from .layouts import model_shape, to_nhwc
from .state import State, UnrecognisedError
from .values import NCHW_TO_NHWC, Integer

__all__ = ["repeated"]


def repeated(state: State, tensor: Integer, shape: tuple[int, ...], origin: str) -> Integer:
    """``tensor`` repeated to ``shape``, as the model has it; itself where it has that shape.

    Raises UnrecognisedError for what is not an image.
    """
    builder, found = state.builder, model_shape(state.builder, tensor)
    if found == shape:
        return tensor
    if len(found) != 4 or len(shape) != 4 or found[0] != shape[0]:
        raise UnrecognisedError(
            f"repeats shape {list(found)} to {list(shape)}; required images of one batch"
        )
    name, order = to_nhwc(builder, tensor, origin), NCHW_TO_NHWC
    if found[1] != shape[1]:
        firsts = builder.constant(f"{name}/firsts", np.zeros(shape[1], np.int64))
        name = builder.node(Gather(order.index(1)), (name, firsts), f"{name}/channels", origin)
    for factors in ((shape[2] // found[2], 1), (1, shape[3] // found[3])):
        if factors != (1, 1):
            name = builder.node(Upsample2d(factors), (name,), f"{name}/repeated", origin)
    return replace(tensor, name=name, permutation=order)
