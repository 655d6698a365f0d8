"""Converters of Fourier transforms, windows and mel filters: products with constant matrices."""

import numpy as np
import onnx

from ...dtypes import DType
from ...errors import ModelError
from ...graph.folding import NODE_WORK
from ...graph.formulas import Term, einsum
from ...graph.products import accumulator
from .context import Converter, ImportContext
from .inputs import Inputs, optional_term, term
from .node import OnnxNode

__all__ = ["SIGNAL"]

FLOATS: dict[int, DType] = {
    onnx.TensorProto.FLOAT: DType.FLOAT32,
    onnx.TensorProto.DOUBLE: DType.FLOAT64,
    onnx.TensorProto.FLOAT16: DType.FLOAT16,
    onnx.TensorProto.BFLOAT16: DType.BFLOAT16,
}


def _known(context: ImportContext, inputs: Inputs, place: int, default: float) -> float:
    value = optional_term(context, inputs, place)
    return default if value is None else context.value(value.tensor).item()


def _transform(x: Term, length: int, inverse: bool, onesided: bool) -> Term:
    """The discrete Fourier transform of x[..., time, 1 or 2], to [..., frequency, 2].

    ``length``: time is cut or filled with zeros.  Inverse and one-sided: the real signal.
    """
    computing = accumulator(x.dtype)
    size, parts = x.shape[-2], x.shape[-1]
    x = x.cast(computing)
    half = inverse and onesided
    given = length // 2 + 1 if half else length
    if size > given:
        x = x.slice(-2, 0, given)
    elif size < given:
        x = x.pad([(0, 0)] * (x.rank - 2) + [(0, given - size), (0, 0)])
    frequencies = length // 2 + 1 if onesided and not inverse else length
    angle = 2 * np.pi / length * np.outer(np.arange(given), np.arange(frequencies))
    real, imaginary = np.cos(angle), np.sin(angle) if inverse else -np.sin(angle)
    scale = np.full((given, 1), 1 / length if inverse else 1.0)
    if half:
        middle = slice(1, given - 1 if length % 2 == 0 else given)
        scale[middle] *= 2
    matrix = np.zeros((given, parts, frequencies, 1 if half else 2))
    matrix[:, 0, :, 0] = real * scale
    if not half:
        matrix[:, 0, :, 1] = imaginary * scale
    if parts == 2:
        matrix[:, 1, :, 0] = -imaginary * scale
        if not half:
            matrix[:, 1, :, 1] = real * scale
    rest = list(range(4, 4 + x.rank - 2))
    factors = x.constant(matrix, computing)
    return einsum([(x, [*rest, 0, 1]), (factors, [0, 1, 2, 3])], [*rest, 2, 3], computing)


def convert_dft(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Along one axis of real or complex numbers, whose parts are the last dimension."""
    x = term(context, node, inputs, 0)
    axis = node.integer("axis", 1)
    if context.opset >= 20:
        axis = int(_known(context, inputs, 2, -2))
    axis %= x.rank
    inverse, onesided = bool(node.integer("inverse", 0)), bool(node.integer("onesided", 0))
    if x.shape[-1] not in (1, 2) or axis == x.rank - 1:
        raise ModelError(f"{node}: {x.shape} along dimension {axis}")
    size = x.shape[axis] if not (inverse and onesided) else 2 * (x.shape[axis] - 1)
    length = int(_known(context, inputs, 1, size))
    context.require_room(length, x.shape[-1], length if inverse or not onesided else length // 2, 2)
    y = _transform(x.move_axis(axis, -2), length, inverse, onesided)
    return (y.move_axis(-2, axis).cast(x.dtype).tensor,)


def convert_stft(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Transforms of windows of a signal [batch, time, 1 or 2], to [batch, frames, ..., 2]."""
    x = term(context, node, inputs, 0)
    step = int(_known(context, inputs, 1, 1))
    window = optional_term(context, inputs, 2)
    length = int(_known(context, inputs, 3, window.shape[0] if window is not None else 0))
    if x.rank == 2:
        x = x.reshape(*x.shape, 1)
    if length < 1 or step < 1 or length > x.shape[1]:
        raise ModelError(f"{node}: frames of {length} every {step} of {x.shape[1]}")
    frames = (x.shape[1] - length) // step + 1
    context.require_room(max(frames, 4 * length), length)
    places = np.arange(frames)[:, None] * step + np.arange(length)
    pieces = x.take(places, 1)
    if window is not None:
        width = window.shape[0]
        before = (length - width) // 2
        window = window.pad([(before, length - width - before)])
        pieces = pieces * window.cast(x.dtype).reshape(length, 1)
    onesided = bool(node.integer("onesided", 1)) and x.shape[-1] == 1
    return (_transform(pieces, length, False, onesided).cast(x.dtype).tensor,)


def convert_window(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Sums of cosines: Hann, Hamming, Blackman."""
    size = int(_known(context, inputs, 0, 0))
    weights = {
        "HannWindow": (0.5, -0.5, 0.0),
        "HammingWindow": (25 / 46, -21 / 46, 0.0),
        "BlackmanWindow": (0.42, -0.5, 0.08),
    }[node.kind]
    context.require_room(size)
    period = size if node.integer("periodic", 1) else size - 1
    angle = 2 * np.pi * np.arange(size) / max(period, 1)
    values = sum(weight * np.cos(k * angle) for k, weight in enumerate(weights))
    dtype = FLOATS[node.integer("output_datatype", onnx.TensorProto.FLOAT)]
    return (context.constant(np.asarray(values).astype(dtype.numpy)),)


def convert_mel_weights(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Triangles over the bins of a transform, evenly spaced on the mel scale."""
    bins, length, rate, low, high = (_known(context, inputs, place, 0) for place in range(5))

    def mel(frequency: float) -> float:
        return float(2595 * np.log10(1 + frequency / 700))

    count, spectrum = int(bins), int(length) // 2 + 1
    context.require_room(spectrum, count)
    context.budget.compute(context.where, NODE_WORK * count)
    edges = mel(low) + np.arange(count + 2) * (mel(high) - mel(low)) / (count + 2)
    places = ((int(length) + 1) * 700 * (10 ** (edges / 2595) - 1) // rate).astype(np.int64)
    matrix = np.zeros((spectrum, count))
    for i in range(count):
        lower, centre, upper = (int(place) for place in places[i : i + 3])
        if centre == lower:
            matrix[centre, i] = 1
        if centre > lower:
            matrix[lower : centre + 1, i] = np.arange(centre + 1 - lower) / (centre - lower)
        if upper > centre:
            matrix[centre:upper, i] = np.arange(upper - centre, 0, -1) / (upper - centre)
    dtype = FLOATS[node.integer("output_datatype", onnx.TensorProto.FLOAT)]
    return (context.constant(matrix.astype(dtype.numpy)),)


SIGNAL: dict[str, Converter] = {
    "BlackmanWindow": convert_window,
    "DFT": convert_dft,
    "HammingWindow": convert_window,
    "HannWindow": convert_window,
    "MelWeightMatrix": convert_mel_weights,
    "STFT": convert_stft,
}
