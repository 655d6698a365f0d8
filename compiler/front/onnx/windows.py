"""Converters of pooling, and of what undoes it."""

import numpy as np

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.formulas import Term, concatenate
from ...graph.operators.windows import WindowArgMax, WindowFunction, WindowReduce
from .context import Converter, ImportContext
from .inputs import Inputs, optional_term, term
from .node import OnnxNode
from .windowing import Pads, same_pads

__all__ = ["WINDOWS", "average_pool"]


def _window(
    node: OnnxNode, x: Term
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], Pads]:
    """Kernel, strides, dilations, pads; the last pad grows where ceil_mode wants one window more.

    A window that would begin in the padding after the tensor is left out.
    """
    kernel = node.integers("kernel_shape", ())
    rank = len(kernel)
    if rank != x.rank - 2 or rank < 1 or min(kernel) < 1:
        raise ModelError(f"{node}: kernel {kernel} on {x.rank} dimensions")
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    pads = same_pads(node, x.shape[2:], kernel, strides, dilations)
    if node.integer("ceil_mode", 0):
        grown = []
        for size, k, stride, dilation, (first, last) in zip(
            x.shape[2:], kernel, strides, dilations, pads, strict=True
        ):
            room = first + size + last - (k - 1) * dilation - 1
            windows = -(-room // stride) + 1
            if (windows - 1) * stride >= size + first:
                windows -= 1
            grown.append((first, last + max((windows - 1) * stride - room, 0)))
        pads = tuple(grown)
    return kernel, strides, dilations, pads


def convert_max_pool(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The maximum of each window, and where it is in the whole tensor."""
    x = term(context, node, inputs, 0)
    kernel, strides, dilations, pads = _window(node, x)
    axes = tuple(range(2, x.rank))
    operator = WindowReduce(axes, kernel, strides, dilations, pads, WindowFunction.MAX)
    values = context.emit(operator, x.tensor)
    if len(node.outputs) < 2 or not node.outputs[1]:
        return (values,)
    found = context.emit(WindowArgMax(axes, kernel, strides, dilations, pads), x.tensor)
    indices = Term(context, found)
    if node.integer("storage_order", 0):
        indices = _column_major(indices, x.shape[2:])
    planes, size = x.shape[0] * x.shape[1], int(np.prod(x.shape[2:]))
    context.require_room(planes)
    starts = np.arange(planes, dtype=np.int64) * size
    starts = starts.reshape(*x.shape[:2], *(1 for _ in axes))
    return values, (indices + starts).tensor


def _column_major(indices: Term, sizes: tuple[int, ...]) -> Term:
    result, rest, step = indices * 0, indices, int(np.prod(sizes))
    for size in reversed(sizes):
        step //= size
        digit = rest % size
        rest = (rest - digit) / size
        result = result + digit * step
    return result


def average_pool(
    context: ImportContext,
    x: Term,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: Pads,
    counted: Pads,
) -> Term:
    """Sums of windows over the number of their elements; ``counted``: pads that count."""
    axes = tuple(range(2, x.rank))
    operator = WindowReduce(axes, kernel, strides, dilations, pads, WindowFunction.ADD)
    sums = Term(x.context, x.context.emit(operator, x.tensor))
    context.require_room(*sums.shape[2:])
    counts = np.ones(())
    for axis, own in enumerate(zip(kernel, strides, dilations, pads, counted, strict=True)):
        line = _counts(x.shape[2 + axis], sums.shape[2 + axis], *own)
        counts = np.multiply.outer(counts, line)
    if counts.size and counts.min() == counts.max():
        return sums / float(counts.flat[0])
    return sums / np.maximum(counts, 1)


def _counts(
    size: int,
    windows: int,
    kernel: int,
    stride: int,
    dilation: int,
    pads: tuple[int, int],
    counted: tuple[int, int],
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Elements of a dimension, and of the pads that count, in each window."""
    start = np.arange(windows) * stride - pads[0]
    first = np.maximum(-((start + counted[0]) // dilation), 0)
    last = np.minimum((size + counted[1] - 1 - start) // dilation, kernel - 1)
    return np.maximum(last - first + 1, 0)


def convert_average_pool(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The mean of each window."""
    x = term(context, node, inputs, 0)
    kernel, strides, dilations, pads = _window(node, x)
    none = ((0, 0),) * len(kernel)
    counted = none
    if node.integer("count_include_pad", 0):
        counted = same_pads(node, x.shape[2:], kernel, strides, dilations)
    wide = x.cast(DType.FLOAT32) if x.dtype in (DType.FLOAT16, DType.BFLOAT16) else x
    return (
        average_pool(context, wide, kernel, strides, dilations, pads, counted).cast(x.dtype).tensor,
    )


def convert_lp_pool(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``sum(|x| ** p) ** (1 / p)`` of each window."""
    x = term(context, node, inputs, 0)
    kernel, strides, dilations, pads = _window(node, x)
    powers = _power(x.abs(), node.integer("p", 2))
    axes = tuple(range(2, x.rank))
    operator = WindowReduce(axes, kernel, strides, dilations, pads, WindowFunction.ADD)
    sums = Term(context, context.emit(operator, powers.tensor))
    return (_root(sums, node.integer("p", 2)).tensor,)


def _power(x: Term, p: int) -> Term:
    return x if p == 1 else x * x if p == 2 else x.power(float(p))


def _root(x: Term, p: int) -> Term:
    return x if p == 1 else x.sqrt() if p == 2 else x.power(1.0 / p)


def convert_global_pool(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """GlobalAveragePool, GlobalMaxPool, GlobalLpPool: over all spatial dimensions."""
    x = term(context, node, inputs, 0)
    axes = tuple(range(2, x.rank))
    match node.kind:
        case "GlobalMaxPool":
            return (x.max(*axes, keep=True).tensor,)
        case "GlobalLpPool":
            p = node.integer("p", 2)
            return (_root(_power(x.abs(), p).sum(*axes, keep=True), p).tensor,)
        case _:
            return (x.mean(*axes, keep=True).tensor,)


def convert_max_unpool(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Each value at its index, zeros elsewhere."""
    x, indices = (term(context, node, inputs, place) for place in range(2))
    kernel = node.integers("kernel_shape", ())
    rank = len(kernel)
    strides = node.integers("strides", (1,) * rank)
    pads = node.integers("pads", (0,) * 2 * rank)
    sizes = tuple(
        (x.shape[2 + i] - 1) * strides[i] - pads[i] - pads[rank + i] + kernel[i]
        for i in range(rank)
    )
    shape = (*x.shape[:2], *sizes)
    given = optional_term(context, inputs, 2)
    if given is not None:
        wanted = tuple(int(size) for size in context.value(given.tensor))
        indices = _moved(indices, sizes, wanted[2:])
        shape = wanted
    zeros = x.constant(0, x.dtype).expand(int(np.prod(shape)))
    result = zeros.scatter(0, indices.reshape(-1), x.reshape(-1))
    return (result.reshape(*shape).tensor,)


def _moved(indices: Term, sizes: tuple[int, ...], wanted: tuple[int, ...]) -> Term:
    """Indices of planes of ``sizes`` as those of larger planes."""
    size = int(np.prod(sizes))
    place, result, step = indices % size, indices * 0, 1
    plane = (indices - place) / size
    for old, new in zip(reversed(sizes), reversed(wanted), strict=True):
        digit = place % old
        place = (place - digit) / old
        result, step = result + digit * step, step * new
    return result + plane * step


def convert_col2im(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Overlapping blocks, a column each, added up to an image."""
    x = term(context, node, inputs, 0)
    image, kernel = (
        tuple(int(size) for size in context.value(term(context, node, inputs, place).tensor))
        for place in (1, 2)
    )
    rank = len(image)
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    pads = node.integers("pads", (0,) * 2 * rank)
    padded = tuple(size + pads[i] + pads[rank + i] for i, size in enumerate(image))
    blocks = tuple(
        (padded[i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(rank)
    )
    context.require_room(*kernel, *blocks)
    lines = [
        (np.arange(kernel[i]) * dilations[i])[:, None] + np.arange(blocks[i]) * strides[i]
        for i in range(rank)
    ]
    places = np.zeros((1,) * 2 * rank, np.int64)
    for i, line in enumerate(lines):
        shape = [1] * 2 * rank
        shape[i], shape[rank + i] = line.shape
        places = places * padded[i] + line.reshape(shape)
    batch, channels = x.shape[0], x.shape[1] // int(np.prod(kernel))
    columns = x.reshape(batch * channels, -1)
    indices = x.constant(places.reshape(1, -1), DType.INT64).expand(*columns.shape)
    zeros = x.constant(0, x.dtype).expand(batch * channels, int(np.prod(padded)))
    result = zeros.scatter(1, indices, columns, add=True).reshape(batch, channels, *padded)
    for i in range(rank):
        result = result.slice(2 + i, pads[i], pads[i] + image[i])
    return (result.tensor,)


def convert_max_roi_pool(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The maxima of a grid of bins over each region, whose corners must be known.

    Corners are rounded as ONNX Runtime does: half away from zero.
    """
    x, rois = (term(context, node, inputs, place) for place in range(2))
    rows, columns = node.integers("pooled_shape", ())
    scale = node.real("spatial_scale", 1.0)
    results = []
    for roi in context.value(rois.tensor):
        moved = np.float32(scale) * roi[1:]
        left, top, right, bottom = map(int, moved + np.copysign(np.float32(0.5), moved))
        height, width = max(bottom - top + 1, 1), max(right - left + 1, 1)
        image = x.slice(0, int(roi[0]), int(roi[0]) + 1)
        for row in range(rows):
            band = _bins(row, height / rows, top, x.shape[2])
            for column in range(columns):
                bar = _bins(column, width / columns, left, x.shape[3])
                if band[0] >= band[1] or bar[0] >= bar[1]:
                    results.append(x.constant(np.zeros((1, x.shape[1])), x.dtype))
                    continue
                results.append(image.slice(2, *band).slice(3, *bar).max(2, 3))
    if not results:
        raise UnsupportedOperatorError(f"{node}: no region")
    stacked = concatenate(results, 0).reshape(-1, rows, columns, x.shape[1])
    return (stacked.transpose(0, 3, 1, 2).tensor,)


def _bins(index: int, size: float, start: int, limit: int) -> tuple[int, int]:
    first, last = int(np.floor(index * size)) + start, int(np.ceil((index + 1) * size)) + start
    return min(max(first, 0), limit), min(max(last, 0), limit)


WINDOWS: dict[str, Converter] = {
    "AveragePool": convert_average_pool,
    "Col2Im": convert_col2im,
    "GlobalAveragePool": convert_global_pool,
    "GlobalLpPool": convert_global_pool,
    "GlobalMaxPool": convert_global_pool,
    "LpPool": convert_lp_pool,
    "MaxPool": convert_max_pool,
    "MaxRoiPool": convert_max_roi_pool,
    "MaxUnpool": convert_max_unpool,
}
