"""Computations of the host around a launch: a NumPy function for each step.

The graph interpreter of the compiler uses the same functions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError

__all__ = [
    "dequantize",
    "exponentials",
    "pack",
    "pack_rows",
    "quantize",
    "shift128",
    "softmax",
    "unpack",
]

Array = NDArray[Any]
F32 = np.float32


def quantize(x: Array, scale: float, zero_point: int) -> Array:
    """``clip(rint(x / scale) + zero_point, -128, 127)``: float32 to int8, ``rint`` half to even.

    Infinities saturate.  Raises InputError for NaN, which has no int8.
    """
    if np.isnan(x).any():
        raise InputError(f"{np.isnan(x).sum()} of {x.size} values are NaN; required numbers")
    return np.clip(np.rint(x / F32(scale)) + zero_point, -128, 127).astype(np.int8)


def dequantize(x: Array, scale: float, zero_point: int) -> Array:
    """``(x - zero_point) * scale``: int8 to float32."""
    return (x.astype(np.int32) - zero_point).astype(F32) * F32(scale)


def softmax(x: Array, x_scale: float, x_zero_point: int, scale: float, zero_point: int) -> Array:
    """Softmax over the last dimension of dequantised ``x``, quantised: int8 to int8.

    With a table of exponentials of the 256 differences to the largest element, summed in float32
    from left to right, and ``floor(1 / scale)`` steps.  ``x_zero_point`` cancels.
    Source: ONNX Runtime's QLinearSoftmax on x86-64.
    """
    table = exponentials(x.shape[-1], x_scale, scale)
    top = x.max(axis=-1, keepdims=True).astype(np.int16)
    values = table[x.astype(np.int16) - top + 255]
    total = np.add.accumulate(values, axis=-1, dtype=F32)[..., -1:]
    steps = np.rint(values * np.floor(F32(1) / F32(scale)) / total)
    return np.clip(steps + zero_point, -128, 127).astype(np.int8)


def exponentials(size: int, x_scale: float, scale: float) -> Array:
    """The table of ``softmax`` for rows of ``size``: float32[256], of differences -255 to 0.

    Its numbers are as large as their sum may be, as ONNX Runtime's are.  For scales so small that
    their products with the steps of 1 are infinite there, they are as large as those may be.
    """
    step, largest = float(F32(x_scale)), float(np.finfo(F32).max)
    steps = float(np.floor(F32(1) / F32(scale)))
    room = np.log(float(F32(largest) / F32(size))) - 5
    if steps >= size * np.exp(5):
        room = np.log(largest / steps) - 1
    shift = max(0.0, room) / step
    with np.errstate(under="ignore"):
        return np.exp((np.arange(256) - 255 + shift) * step).astype(F32)


def shift128(x: Array, to: str) -> Array:
    """uint8 to int8 by subtracting 128 (``to`` "int8"), or back by adding it."""
    return (x.astype(np.int16) + (-128 if to == "int8" else 128)).astype(to)


def pack(x: Array, lanes: int, fill: int = 0) -> Array:
    """int8[1, H, W, C] or [1, C] to int8[blocks, H, W, lanes]; channels beyond C are ``fill``."""
    image = x.reshape(1, 1, -1) if x.ndim == 2 else x[0]
    height, width, channels = image.shape
    blocks = -(-channels // lanes)
    padded = np.full((height, width, blocks * lanes), fill, np.int8)
    padded[:, :, :channels] = image
    return np.ascontiguousarray(padded.reshape(height, width, blocks, lanes).transpose(2, 0, 1, 3))


def pack_rows(x: Array, pitch: int, transposed: bool, pixel_bytes: int = 0, fill: int = 0) -> Array:
    """int8[1, H, W, C] as rows of W pixels, ``pitch`` bytes apart: int8[H, pitch].

    transposed: columns as rows of H pixels, int8[W, pitch].  pixel_bytes: of a pixel; C where that
    is more.  Bytes without a channel are ``fill``.  An image that needs none is not copied.
    """
    image = x[0].swapaxes(0, 1) if transposed else x[0]
    return _filled(_filled(image, pixel_bytes, fill).reshape(len(image), -1), pitch, fill)


def pack_windows(
    x: Array,
    pitch: int,
    transposed: bool,
    window: tuple[int, int, int],
    windows: tuple[int, int],
    fill: int,
) -> Array:
    """int8[1, H, W, C] as rows of windows that share no bytes: int8[H, pitch]; as ``pack_rows``.

    window: pixels of a row in each, from one window's first to the next's, and before the image's
    first.  windows: how many, and bytes from one to the next.  Pixels outside the image, and bytes
    without a channel, are ``fill``.
    """
    image = x[0].swapaxes(0, 1) if transposed else x[0]
    (size, stride, before), (count, step) = window, windows
    places = np.arange(count)[:, None] * stride + np.arange(size)
    after = max(0, int(places.max()) + 1 - before - image.shape[1])
    wide = np.pad(image, ((0, 0), (before, after), (0, 0)), constant_values=fill)
    cut = wide[:, places].reshape(len(image), count, -1)
    return _filled(_filled(cut, step, fill).reshape(len(image), -1), pitch, fill)


def _filled(x: Array, size: int, fill: int) -> Array:
    """``x`` with a last dimension of ``size``, or of its own where that is more."""
    lacking = size - x.shape[-1]
    if lacking <= 0:
        return x
    return np.pad(x, (*((0, 0),) * (x.ndim - 1), (0, lacking)), constant_values=fill)


def unpack(x: Array, shape: Sequence[int]) -> Array:
    """int8[blocks, H, W, lanes] to int8 of ``shape``, [1, H, W, C] or [1, C]."""
    blocks, height, width, lanes = x.shape
    image = x.transpose(1, 2, 0, 3).reshape(height, width, blocks * lanes)
    return np.ascontiguousarray(image[:, :, : shape[-1]]).reshape(shape)
