"""Pools, borders, and repeated pixels of images of raised bytes, in NCHW."""

from typing import assert_never

import numpy as np

from ....dtypes import DType
from ...operators.elementwise import BinaryFunction
from ...operators.integer.windows import AveragePool2d, MaxPool2d, Pad, Upsample2d
from ...operators.movement import Expand, PadTensor, Reshape, Slice
from ...operators.windows import WindowFunction, WindowReduce
from .raised_bytes import F32, RAISE, RaisedBytes

__all__ = ["window"]


def window(
    new: RaisedBytes,
    x: str,
    operator: MaxPool2d | AveragePool2d | Pad | Upsample2d,
    count: tuple[int, ...],
) -> str:
    """The operator on ``x``; of a pool, ``count`` windows down and across."""
    match operator:
        case Pad(pads=(top, left, bottom, right), value=value):
            fill = new.constant(np.asarray(value + RAISE, np.uint8))
            return new.emit(PadTensor((0, 0, top, left), (0, 0, bottom, right)), x, fill)
        case Upsample2d(factors=(down, across)):
            _, channels, height, width = new.builder.types[x].shape
            apart = new.emit(Reshape((1, channels, height, 1, width, 1)), x)
            wide = new.emit(Expand((1, channels, height, down, width, across)), apart)
            return new.emit(Reshape((1, channels, height * down, width * across)), wide)
        case MaxPool2d(kernel=kernel, strides=strides, pads=(top, left, bottom, right)):
            pads = ((top, bottom), (left, right))
            return new.emit(
                WindowReduce((2, 3), kernel, strides, (1, 1), pads, WindowFunction.MAX), x
            )
        case AveragePool2d(kernel=kernel, strides=strides):
            x = _windows(new, x, operator, count)
            wide = new.centred(x, operator.x_zero_point, DType.INT32)
            pool = WindowReduce(
                (2, 3), kernel, strides, (1, 1), ((0, 0), (0, 0)), WindowFunction.ADD
            )
            total = new.cast(new.emit(pool, wide), DType.FLOAT32)
            scaled = new.binary(BinaryFunction.MUL, total, F32(operator.scale))
            return new.saturated(scaled, operator.zero_point, -128, 127)
        case _:
            assert_never(operator)


def _windows(new: RaisedBytes, x: str, operator: AveragePool2d, count: tuple[int, ...]) -> str:
    """The part of an image that a pool's windows are in, ``count`` down and across."""
    if operator.size is None and not any(operator.start):
        return x
    size = (
        (each - 1) * stride + taps
        for each, stride, taps in zip(count, operator.strides, operator.kernel, strict=True)
    )
    shape = (1, new.builder.types[x].shape[1], *size)
    return new.emit(Slice((0, 0, *operator.start), (1, 1, 1, 1), shape), x)
