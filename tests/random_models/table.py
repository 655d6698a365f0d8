"""Operators that random models are made of, and how often each is drawn."""

from collections.abc import Callable

from .drawing import Drawing
from .elementwise import (
    chain,
    choose,
    clip,
    function,
    normalise,
    other_function,
    pair,
    with_constant,
)
from .moving import (
    depth,
    gather,
    join,
    pad,
    place,
    repeat,
    reshape,
    resize,
    slice_,
    split,
    transpose,
)
from .products import conv, conv_transpose, dense, pool, product, whole_pool

__all__ = ["GENERAL", "LAYERS", "MOVERS", "MOVING", "Layer"]

Layer = Callable[[Drawing, str], list[str]]
"""Adds an operator that reads a tensor; gives its float results, none where it does not apply."""

LAYERS: tuple[tuple[Layer, int], ...] = (
    (conv, 14), (conv_transpose, 2), (pool, 5), (whole_pool, 4), (dense, 5), (product, 1),
    (function, 5), (clip, 4), (chain, 5), (pair, 9), (with_constant, 4), (normalise, 2), (join, 5),
    (split, 3), (slice_, 4), (gather, 3), (transpose, 3), (reshape, 4), (pad, 3), (resize, 4),
    (depth, 3), (repeat, 2), (place, 1),
)  # fmt: skip
"""With weights: how often each is drawn in quantised models."""

GENERAL: tuple[tuple[Layer, int], ...] = (*LAYERS, (choose, 4), (other_function, 6))
"""In float models."""

MOVING = frozenset((
    "Concat", "Split", "Slice", "Gather", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze",
    "Pad", "DepthToSpace", "SpaceToDepth", "Tile", "Expand", "MaxPool", "Identity", "Resize",
))  # fmt: skip
"""Operators whose results keep their operand's scale, as quantisers write it."""

MOVERS = frozenset((join, split, slice_, gather, transpose, reshape, depth, pool, repeat))
"""Layers that may read bytes."""
