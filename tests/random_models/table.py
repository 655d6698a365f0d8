"""Operators that random models are made of, and how often each is drawn."""

from collections.abc import Callable, Mapping

from .bodies import branched, counted
from .broad import (
    compared,
    fused_attention,
    integers,
    recurrent,
    sampled,
    scattered,
    signal,
    summed,
    unusual_function,
)
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
from .networks import classified, inverted, perceptron
from .products import conv, conv_transpose, dense, pool, product, whole_pool, wide_depthwise
from .rare import alias, masked, picked, rare_norm, rare_pool, rare_resize, several
from .rows import attention, cached_rows, narrow_dense, row_norm

__all__ = ["BLOCKS", "GENERAL", "LAYERS", "MOVERS", "MOVING", "ROWS", "Layer"]

Layer = Callable[[Drawing, str], list[str]]
"""Adds an operator that reads a tensor; gives its float results, none where it does not apply."""

LAYERS: tuple[tuple[Layer, int], ...] = (
    (conv, 14), (conv_transpose, 2), (pool, 5), (whole_pool, 4), (dense, 5), (product, 1),
    (function, 5), (clip, 4), (chain, 5), (pair, 9), (with_constant, 4), (normalise, 2), (join, 5),
    (split, 3), (slice_, 4), (gather, 3), (transpose, 3), (reshape, 4), (pad, 3), (resize, 4),
    (depth, 3), (repeat, 2), (place, 1), (attention, 3), (row_norm, 3), (narrow_dense, 2),
    (cached_rows, 1), (alias, 2), (several, 2), (rare_pool, 1), (rare_norm, 1), (rare_resize, 1),
    (picked, 1), (masked, 1), (unusual_function, 1), (summed, 1), (compared, 1), (scattered, 1),
    (integers, 1), (branched, 1), (counted, 1), (wide_depthwise, 2),
)  # fmt: skip
"""With weights: how often each is drawn in quantised models."""

GENERAL: tuple[tuple[Layer, int], ...] = (
    *LAYERS,
    (choose, 4),
    (other_function, 6),
    (rare_norm, 2),
    (rare_resize, 2),
    (picked, 3),
    (masked, 2),
    (rare_pool, 2),
    (unusual_function, 4),
    (summed, 3),
    (compared, 2),
    (scattered, 4),
    (integers, 2),
    (branched, 3),
    (counted, 3),
    (recurrent, 4),
    (sampled, 3),
    (signal, 2),
    (fused_attention, 4),
)
"""In float models."""

ROWS: tuple[tuple[Layer, int], ...] = (
    (attention, 6), (row_norm, 5), (dense, 4), (function, 2), (chain, 2), (pair, 3), (join, 1),
    (with_constant, 2), (cached_rows, 1), (narrow_dense, 2), (transpose, 1), (reshape, 1),
    (slice_, 1), (gather, 1), (product, 1), (masked, 1), (split, 1), (alias, 1),
    (fused_attention, 2),
)  # fmt: skip
"""In quantised networks of rows, as transformers are."""

BLOCKS: Mapping[bool, tuple[tuple[Layer, int], ...]] = {
    False: (
        (inverted, 8), (classified, 2), (conv, 5), (pool, 2), (pair, 2), (function, 1), (clip, 1),
        (join, 1), (slice_, 1), (split, 1), (wide_depthwise, 1),
    ),
    True: (
        (attention, 5), (row_norm, 6), (perceptron, 5), (dense, 2), (function, 1), (chain, 1),
        (pair, 2), (cached_rows, 1),
    ),
}  # fmt: skip
"""In networks that run whole: of images, and of rows."""

MOVING = frozenset((
    "Concat", "Split", "Slice", "Gather", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze",
    "Pad", "DepthToSpace", "SpaceToDepth", "Tile", "Expand", "MaxPool", "Identity", "Resize",
))  # fmt: skip
"""Operators whose results keep their operand's scale, as quantisers write it."""

MOVERS = frozenset((join, split, slice_, gather, transpose, reshape, depth, pool, repeat))
"""Layers that may read bytes."""
