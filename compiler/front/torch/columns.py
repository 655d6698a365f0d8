"""Windows of pictures as columns, and back."""

from collections.abc import Sequence
from math import prod

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term
from .context import Context, Converter
from .contractions import many

__all__ = ["COLUMNS"]


def _columns(
    sizes: Sequence[int], kernel: Sequence[int], dilation: Sequence[int], stride: Sequence[int]
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], tuple[int, ...]]:
    """Places in a plane of the elements of each window: [elements, windows]; windows by axis."""
    lines, counts = [], []
    for size, k, d, s in zip(sizes, kernel, dilation, stride, strict=True):
        count = (size - (k - 1) * d - 1) // s + 1
        lines.append((np.arange(k) * d)[:, None] + np.arange(count) * s)
        counts.append(count)
    rows, columns = lines
    places = rows[:, None, :, None] * sizes[1] + columns[None, :, None, :]
    return places.reshape(prod(kernel), prod(counts)), tuple(counts)


def im2col(
    context: Context,
    x: Term,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Term:
    """Each window of a picture as a column."""
    if x.rank == 3:
        one = im2col(context, x.unsqueeze(0), kernel_size, dilation, padding, stride)
        return one.reshape(*one.shape[1:])
    kernel, dilation, padding, stride = (
        many(each, 2) for each in (kernel_size, dilation, padding, stride)
    )
    x = x.pad([(0, 0), (0, 0), *((n, n) for n in padding)])
    context.require_room(*kernel, *x.shape[2:])
    places, _ = _columns(x.shape[2:], kernel, dilation, stride)
    batch, channels = x.shape[:2]
    found = x.reshape(batch, channels, -1).take(places, 2)
    return found.reshape(batch, channels * places.shape[0], places.shape[1])


def col2im(
    context: Context,
    x: Term,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Term:
    """Windows, a column each, added up to a picture."""
    if x.rank == 2:
        one = col2im(context, x.unsqueeze(0), output_size, kernel_size, dilation, padding, stride)
        return one.reshape(*one.shape[1:])
    size, kernel, dilation, padding, stride = (
        many(each, 2) for each in (output_size, kernel_size, dilation, padding, stride)
    )
    padded = [n + 2 * pad for n, pad in zip(size, padding, strict=True)]
    context.require_room(*kernel, *padded)
    places, _ = _columns(padded, kernel, dilation, stride)
    planes = x.shape[0] * x.shape[1] // prod(kernel)
    flat = x.reshape(planes, -1)
    indices = context.term(places.reshape(1, -1), DType.INT64).expand(*flat.shape)
    zeros = x.constant(0, x.dtype).expand(planes, prod(padded))
    summed = zeros.scatter(1, indices, flat, add=True)
    result = summed.reshape(x.shape[0], -1, *padded)
    for axis, (pad, n) in enumerate(zip(padding, size, strict=True), 2):
        result = result.slice(axis, pad, pad + n)
    return result


COLUMNS: dict[str, Converter] = {"aten.col2im": col2im, "aten.im2col": im2col}
