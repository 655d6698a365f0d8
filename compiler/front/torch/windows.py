"""Pooling."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term, concatenate, einsum, widened
from ...graph.operators.windows import WindowArgMax, WindowFunction, WindowReduce
from .context import Context, Converter
from .contractions import many

__all__ = ["WINDOWS"]

Sizes = int | Sequence[int]
Pads = tuple[tuple[int, int], ...]


def _pads(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
) -> Pads:
    """Before and after; ``ceil_mode`` adds what one window more needs, if it begins inside."""
    found = []
    for size, k, stride, dilation, pad in zip(
        sizes, kernel, strides, dilations, padding, strict=True
    ):
        room = size + 2 * pad - (k - 1) * dilation - 1
        more = -room % stride if ceil_mode else 0
        if more and (room + more) // stride * stride >= size + pad:
            more = 0
        found.append((pad, pad + more))
    return tuple(found)


def _batched(rank: int) -> Callable[[Converter], Converter]:
    """A converter for tensors without a batch too."""

    def decorate(convert: Converter) -> Converter:
        def converted(context: Context, x: Term, *rest: Any, **more: Any) -> Any:
            if x.rank != rank + 1:
                return convert(context, x, *rest, **more)
            found: Any = convert(context, x.unsqueeze(0), *rest, **more)
            if isinstance(found, tuple):
                return tuple(each.reshape(*each.shape[1:]) for each in found)
            return found.reshape(*found.shape[1:])

        return converted

    return decorate


def _max_pool(rank: int, indices: bool) -> Converter:
    @_batched(rank)
    def convert(
        context: Context,
        x: Term,
        kernel_size: Sizes,
        stride: Sizes = (),
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> Term | tuple[Term, ...]:
        """The maximum of each window; where it is in its plane too."""
        kernel = many(kernel_size, rank)
        strides, dilations = many(stride or kernel, rank), many(dilation, rank)
        pads = _pads(x.shape[2:], kernel, strides, dilations, many(padding, rank), ceil_mode)
        axes = tuple(range(2, 2 + rank))
        attributes = (axes, kernel, strides, dilations, pads)
        largest = context.emitted(WindowReduce(*attributes, WindowFunction.MAX), x)
        return (largest, context.emitted(WindowArgMax(*attributes), x)) if indices else largest

    return convert


def _average_pool(rank: int) -> Converter:
    @_batched(rank)
    def convert(
        context: Context,
        x: Term,
        kernel_size: Sizes,
        stride: Sizes = (),
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Term:
        """The mean of each window."""
        kernel, ones = many(kernel_size, rank), (1,) * rank
        strides, padding = many(stride or kernel, rank), many(padding, rank)
        pads = _pads(x.shape[2:], kernel, strides, ones, padding, ceil_mode)
        axes = tuple(range(2, 2 + rank))
        operator = WindowReduce(axes, kernel, strides, ones, pads, WindowFunction.ADD)
        sums = context.emitted(operator, widened(x))
        if divisor_override:
            return (sums / divisor_override).cast(x.dtype)
        context.require_room(*x.shape[2:])
        counted = np.ones((1, 1, *x.shape[2:]), np.float32)
        own = tuple((0, after - pad) for pad, (_, after) in zip(padding, pads, strict=True))
        if count_include_pad:
            around = [(0, 0), (0, 0), *((pad, pad) for pad in padding)]
            counted = np.pad(counted, around, constant_values=1)
            operator = WindowReduce(axes, kernel, strides, ones, own, WindowFunction.ADD)
        (counts,) = operator.evaluate([counted])
        if counts.size and counts.min() == counts.max():
            return (sums / float(counts.flat[0])).cast(x.dtype)
        return (sums / np.maximum(counts, 1)).cast(x.dtype)

    return convert


def _bins(size: int, count: int) -> list[tuple[int, int]]:
    """First and last of each bin of an adaptive pool."""
    return [(n * size // count, -(-(n + 1) * size // count)) for n in range(count)]


def _wanted(x: Term, output_size: Sequence[int | None], rank: int) -> tuple[int, ...]:
    given = many(output_size, rank)  # type: ignore[arg-type]
    return tuple(
        size if want is None else want for size, want in zip(x.shape[-rank:], given, strict=True)
    )


def _adaptive_average(rank: int) -> Converter:
    @_batched(rank)
    def convert(context: Context, x: Term, output_size: Sequence[int | None]) -> Term:
        """The means of so many bins."""
        wanted, axes = _wanted(x, output_size, rank), range(2, 2 + rank)
        sizes = x.shape[2:]
        if all(want == 1 for want in wanted):
            return widened(x).mean(*axes, keep=True).cast(x.dtype)
        if all(want and not size % want for size, want in zip(sizes, wanted, strict=True)):
            kernel = tuple(size // want for size, want in zip(sizes, wanted, strict=True))
            found: Any = _average_pool(rank)(context, x, kernel)
            return found
        result = widened(x)
        for axis, want in zip(axes, wanted, strict=True):
            context.require_room(want, x.shape[axis])
            matrix = np.zeros((want, x.shape[axis]))
            for row, (first, last) in enumerate(_bins(x.shape[axis], want)):
                matrix[row, first:last] = 1 / (last - first)
            labels = list(range(x.rank))
            output = [x.rank if n == axis else n for n in labels]
            weights = context.term(matrix, result.dtype)
            result = einsum([(result, labels), (weights, [x.rank, axis])], output, result.dtype)
        return result.cast(x.dtype)

    return convert


def _adaptive_max(rank: int) -> Converter:
    @_batched(rank)
    def convert(context: Context, x: Term, output_size: Sequence[int | None]) -> tuple[Term, Term]:
        """The maxima of so many bins, and where they are in their planes."""
        sizes = x.shape[2:]
        context.require_room(*sizes)
        places = context.term(np.arange(int(np.prod(sizes))).reshape(sizes), DType.INT64)
        result, where = x, places.expand(*x.shape)
        for axis, want in enumerate(_wanted(x, output_size, rank), 2):
            parts = []
            for first, last in _bins(result.shape[axis], want):
                piece = result.slice(axis, first, last)
                best = piece.max(axis, keep=True)
                numbers = where.slice(axis, first, last)
                most = int(np.prod(sizes))
                held = piece.equal(best).where(-numbers, -most, DType.INT64)
                parts.append((best, -held.max(axis, keep=True)))
            result = concatenate([best for best, _ in parts], axis)
            where = concatenate([place for _, place in parts], axis)
        return result, where

    return convert


WINDOWS: dict[str, Converter] = {
    "aten._adaptive_avg_pool2d": _adaptive_average(2),
    "aten._adaptive_avg_pool3d": _adaptive_average(3),
    **{f"aten.adaptive_avg_pool{n}d": _adaptive_average(n) for n in (1, 2, 3)},
    **{f"aten.adaptive_max_pool{n}d": _adaptive_max(n) for n in (1, 2, 3)},
    **{f"aten.avg_pool{n}d": _average_pool(n) for n in (1, 2, 3)},
    **{f"aten.max_pool{n}d": _max_pool(n, False) for n in (1, 2, 3)},
    **{f"aten.max_pool{n}d_with_indices": _max_pool(n, True) for n in (1, 2, 3)},
}
