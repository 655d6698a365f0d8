"""Resizing.  Source: PyTorch, aten/src/ATen/native/UpSample.h and UpSampleKernel.cpp."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...dtypes import DType
from ...graph.formulas import Term, einsum, widened
from ...graph.taps import along
from .context import Context, Converter

__all__ = ["RESIZE"]

Floats = NDArray[np.float64]


def _sizes(
    x: Term, output_size: Sequence[int] | None, factors: Sequence[float | None]
) -> list[tuple[int, float]]:
    """Size and step of each spatial dimension; a step is in elements of ``x``."""
    rank = x.rank - 2
    scales = [*factors, *(None,) * rank][:rank]
    if not output_size:
        output_size = [
            int(n * scale) for n, scale in zip(x.shape[2:], scales, strict=True) if scale
        ]
    return [
        (size, 1 / scale if scale else n / size)
        for n, size, scale in zip(x.shape[2:], output_size, scales, strict=True)
    ]


def _factors(given: Sequence[float] | None, *named: float | None) -> Sequence[float | None]:
    return given if given else [each for each in named if each is not None]


def _nearest(exact: bool) -> Converter:
    def convert(
        context: Context,
        x: Term,
        output_size: Sequence[int] | None = None,
        scale_factors: Sequence[float] | None = None,
        scales: float | None = None,
        scales_d: float | None = None,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Term:
        """The nearest element before, or the nearest."""
        factors = _factors(scale_factors, scales, scales_d, scales_h, scales_w)
        result = x
        for axis, (size, step) in reversed(list(enumerate(_sizes(x, output_size, factors), 2))):
            context.require_room(size)
            at = (np.arange(size, dtype=np.float32) + 0.5 * exact) * np.float32(step)
            places = np.minimum(np.floor(at).astype(np.int64), x.shape[axis] - 1)
            if not np.array_equal(places, np.arange(x.shape[axis])):
                result = result.take(places, axis)
        return result

    return convert


Taps = Callable[[Floats, int], tuple[NDArray[np.int64], Floats]]


def _linear_taps(at: Floats, length: int) -> tuple[NDArray[np.int64], Floats]:
    at = np.maximum(at, 0)
    low = np.minimum(np.floor(at).astype(np.int64), length - 1)
    part = np.clip(at - low, 0, 1)
    return np.stack([low, np.minimum(low + 1, length - 1)]), np.stack([1 - part, part])


def _cubic_taps(at: Floats, length: int) -> tuple[NDArray[np.int64], Floats]:
    low = np.floor(at).astype(np.int64)
    indices = low + np.arange(-1, 3)[:, None]
    return np.clip(indices, 0, length - 1), _cubic(np.abs(indices - at), -0.75)


def _cubic(t: Floats, a: float) -> Floats:
    """Source: R. Keys, "Cubic convolution interpolation", 1981."""
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _blending(taps: Taps) -> Converter:
    def convert(
        context: Context,
        x: Term,
        output_size: Sequence[int] | None = None,
        align_corners: bool = False,
        scale_factors: Sequence[float] | None = None,
        scales: float | None = None,
        scales_d: float | None = None,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Term:
        """Weighted sums of neighbours."""
        factors = _factors(scale_factors, scales, scales_d, scales_h, scales_w)
        result = widened(x) if x.dtype.is_float else x.cast(DType.FLOAT32)
        for axis, (size, step) in enumerate(_sizes(x, output_size, factors), 2):
            context.require_room(size)
            length, numbers = x.shape[axis], np.arange(size, dtype=np.float64)
            if align_corners:
                at = numbers * ((length - 1) / (size - 1) if size > 1 else 0.0)
            else:
                at = (numbers + 0.5) * step - 0.5
            if size != length or not np.array_equal(at, numbers):
                result = along(result, axis, *taps(at, length))
        return _rounded(result, x.dtype)

    return convert


def _rounded(result: Term, dtype: DType) -> Term:
    if dtype.is_float:
        return result.cast(dtype)
    limits = np.iinfo(str(dtype))
    return (result + 0.5).floor().clip(float(limits.min), float(limits.max)).cast(dtype)


def _smooth(reach: float, weigh: Callable[[Floats], Floats]) -> Converter:
    def convert(
        context: Context,
        x: Term,
        output_size: Sequence[int] | None = None,
        align_corners: bool = False,
        scale_factors: Sequence[float] | None = None,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Term:
        """Weighted sums of all that a smaller picture's element covers."""
        factors = _factors(scale_factors, scales_h, scales_w)
        result = widened(x) if x.dtype.is_float else x.cast(DType.FLOAT32)
        for axis, (size, step) in enumerate(_sizes(x, output_size, factors), 2):
            length = x.shape[axis]
            context.require_room(size, length)
            if align_corners:
                step = (length - 1) / (size - 1) if size > 1 else 0.0
            stretch = max(step, 1.0)
            centre = (np.arange(size) + 0.5)[:, None] * step
            first = np.maximum(np.trunc(centre - reach * stretch + 0.5), 0)
            last = np.minimum(np.trunc(centre + reach * stretch + 0.5), length)
            place = np.arange(length)
            weights = weigh(np.abs((place - centre + 0.5) / stretch))
            weights = np.where((place >= first) & (place < last), weights, 0)
            weights /= weights.sum(axis=1, keepdims=True)
            labels = list(range(x.rank))
            output = [x.rank if n == axis else n for n in labels]
            matrix = (context.term(weights, result.dtype), [x.rank, axis])
            result = einsum([(result, labels), matrix], output, result.dtype)
        return _rounded(result, x.dtype)

    return convert


RESIZE: dict[str, Converter] = {
    **{f"aten.upsample_nearest{n}d": _nearest(False) for n in (1, 2, 3)},
    **{f"aten._upsample_nearest_exact{n}d": _nearest(True) for n in (1, 2, 3)},
    "aten._upsample_bicubic2d_aa": _smooth(2, lambda t: _cubic(t, -0.5)),
    "aten._upsample_bilinear2d_aa": _smooth(1, lambda t: np.maximum(1 - t, 0)),
    "aten.upsample_bicubic2d": _blending(_cubic_taps),
    "aten.upsample_bilinear2d": _blending(_linear_taps),
    "aten.upsample_linear1d": _blending(_linear_taps),
    "aten.upsample_trilinear3d": _blending(_linear_taps),
}
