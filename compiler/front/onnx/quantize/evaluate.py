"""Runs a float model, for calibration.

Convolutions and pools are computed here, by matrix products over windows; all other operators by
the reference implementation of ONNX, one node at a time, or by their graphs where it is slow.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx.reference import ReferenceEvaluator

from ....errors import CompileLimitError, ModelError
from ....graph.interpreter import run as interpret
from ....graph.ir import Array
from ..node import OnnxNode
from .bounded import node_model
from .model import FloatModel

__all__ = ["Evaluator", "conv_windows"]

F32 = np.float32


class Evaluator:
    """Computes every tensor of ``model``."""

    def __init__(self, model: FloatModel) -> None:
        self._model = model
        self._references: dict[str, ReferenceEvaluator] = {}
        self._last = {name: place for place, n in enumerate(model.nodes) for name in n.inputs}

    def run(self, inputs: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
        """Each tensor with its value: the inputs, then what the nodes compute, in order.

        Raises ModelError when a node cannot be computed, CompileLimitError when it takes too much.
        """
        values: dict[str, Array] = {**self._model.constants, **inputs}
        yield from inputs.items()
        for place, node in enumerate(self._model.nodes):
            arguments = [values[name] if name else None for name in node.inputs]
            for name, array in zip(node.outputs, self._outputs(node, arguments), strict=False):
                values[name] = array
                yield name, array
            for name in node.inputs:
                if self._last[name] == place:
                    values.pop(name, None)

    def again(self, values: Mapping[str, Array], changed: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of the model with other values for some tensors.

        values: every tensor without the change.  Only what follows from it is computed.
        """
        now = dict(changed)
        for node in self._model.nodes:
            if node.outputs[0] not in changed and not now.keys().isdisjoint(node.inputs):
                now.update(zip(node.outputs, self.node(node, {**values, **now}), strict=False))
        return {name: now.get(name, values[name]) for name in self._model.outputs}

    def node(self, node: OnnxNode, values: Mapping[str, Array]) -> list[Array]:
        """Results of a node from ``values``, which include the constants."""
        return self._outputs(node, [values[name] if name else None for name in node.inputs])

    def _outputs(self, node: OnnxNode, arguments: list[Array | None]) -> list[Array]:
        try:
            graph = self._model.bounds.graph(node, arguments, self._model.opset)
            # Sums of masks may be -infinity.
            with np.errstate(over="ignore"):
                if _has_kernel(node, arguments):
                    return [KERNELS[node.kind](node, *arguments)]
                pairs = zip(node.inputs, arguments, strict=True)
                given = {name: each for name, each in pairs if each is not None}
                if graph is None or node.kind not in SLOW:
                    return self._reference(node, arguments, given)
                found = interpret(graph, {name: given[name] for name in graph.inputs})
                return [found[name] if name else np.zeros(0) for name in node.outputs]
        except CompileLimitError:
            raise
        except Exception as error:
            # The reference implementation raises errors of many unrelated classes.
            raise ModelError(f"{node} cannot be evaluated: {error}") from error

    def _reference(
        self, node: OnnxNode, arguments: list[Array | None], given: Mapping[str, Array]
    ) -> list[Array]:
        if node.outputs[0] not in self._references:
            none = [False] * len(arguments)
            model = node_model(node, arguments, none, self._model.opset)
            self._references[node.outputs[0]] = ReferenceEvaluator(model)
        return list(self._references[node.outputs[0]].run(None, dict(given)))


def _has_kernel(node: OnnxNode, arguments: list[Array | None]) -> bool:
    if node.kind not in WINDOWS:
        return node.kind in KERNELS and not node.integer("training_mode", 0)
    if node.kind == "AveragePool" and node.integer("ceil_mode", 0):
        return False
    images = [x for x in arguments[:2] if x is not None and x.ndim == 4]
    return len(node.outputs) == 1 and len(images) == len(arguments[:2])


def _conv(node: OnnxNode, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Conv, float32[N, C, H, W]."""
    groups, windows = node.integer("group", 1), conv_windows(node, x, w)
    batch, channels, height, width, *kernel = windows.shape
    if groups == channels == len(w):
        out = np.zeros((batch, channels, height, width), F32)
        for row, column in np.ndindex(*kernel):
            out += windows[..., row, column] * w[:, 0, row, column, None, None]
    else:
        parts = windows.reshape(batch, groups, channels // groups, height, width, *kernel)
        weights = w.reshape(groups, len(w) // groups, -1)
        results = []
        for group in range(groups):
            columns = parts[:, group].transpose(0, 1, 4, 5, 2, 3)
            columns = columns.reshape(batch, weights.shape[2], height * width)
            results.append(weights[group] @ columns)
        out = np.concatenate(results, axis=1).reshape(batch, len(w), height, width)
    return out if bias is None else out + bias[:, None, None]


def conv_windows(node: OnnxNode, x: Array, w: Array) -> Array:
    """The inputs of each output of a Conv: a view, [N, C, H', W', kernel height, kernel width]."""
    kernel, strides, dilations = _window(node, w.shape[2:])
    windows = _windows(_padded(node, x, kernel, strides, dilations, F32(0)), kernel, dilations)
    return windows[:, :, :: strides[0], :: strides[1]]


def _max_pool(node: OnnxNode, x: Array) -> Array:
    """MaxPool without indices."""
    kernel, strides, dilations = _window(node, ())
    padded = _padded(node, x, kernel, strides, dilations, F32(-np.inf))
    return _fold(np.maximum, padded, kernel, strides, dilations)


def _average_pool(node: OnnxNode, x: Array) -> Array:
    """AveragePool; padding counts or not, by ``count_include_pad``."""
    kernel, strides, dilations = _window(node, ())
    total = _fold(np.add, _padded(node, x, kernel, strides, dilations, F32(0)), kernel, strides)
    if node.integer("count_include_pad", 0):
        return total / F32(np.prod(kernel))
    ones = _padded(node, np.ones_like(x[:1, :1]), kernel, strides, dilations, F32(0))
    return total / _fold(np.add, ones, kernel, strides)


def _fold(
    function: Callable[[Array, Array], Array],
    padded: Array,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...] = (1, 1),
) -> Array:
    """``function`` over the elements of each window."""
    windows = _windows(padded, kernel, dilations)[:, :, :: strides[0], :: strides[1]]
    result = windows[..., 0, 0].copy()
    for place in range(1, kernel[0] * kernel[1]):
        result = function(result, windows[..., place // kernel[1], place % kernel[1]])
    return result


def _windows(x: Array, kernel: tuple[int, ...], dilations: tuple[int, ...]) -> Array:
    """A view, [N, C, H', W', kernel height, kernel width]."""
    reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    view = sliding_window_view(x, reach, axis=(2, 3))
    return view[..., :: dilations[0], :: dilations[1]]


def _window(node: OnnxNode, kernel: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Kernel, strides, dilations."""
    kernel = tuple(kernel) or node.integers("kernel_shape", ())
    return kernel, node.integers("strides", (1, 1)), node.integers("dilations", (1, 1))


def _padded(
    node: OnnxNode,
    x: Array,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    value: np.float32,
) -> Array:
    """``x`` with the border that ``pads``, ``auto_pad`` and ``ceil_mode`` ask for."""
    mode, pads = node.text("auto_pad", "NOTSET"), node.integers("pads", (0, 0, 0, 0))
    sides = []
    for axis in range(2):
        size, reach = x.shape[2 + axis], (kernel[axis] - 1) * dilations[axis] + 1
        before, after = pads[axis], pads[axis + 2]
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            total = max((-(-size // strides[axis]) - 1) * strides[axis] + reach - size, 0)
            before = total // 2 if mode == "SAME_UPPER" else total - total // 2
            after = total - before
        elif mode == "VALID":
            before = after = 0
        if node.integer("ceil_mode", 0):
            rest = (size + before + after - reach) % strides[axis]
            # A window may begin in the border before the image, never in the one after it.
            if rest and size + before + after - reach - rest + strides[axis] < size + before:
                after += strides[axis] - rest
        sides.append((before, after))
    if not any(map(any, sides)):
        return x
    return np.pad(x, ((0, 0), (0, 0), *sides), constant_values=value)


def _batch_norm(
    node: OnnxNode, x: Array, scale: Array, bias: Array, mean: Array, variance: Array
) -> Array:
    """BatchNormalization of a trained model, channels in dimension 1.

    ONNX's reference implementation takes opset 13's for one in training.
    """
    factor = scale / np.sqrt(variance + F32(node.real("epsilon", 1e-5)))
    shape = (-1, *(1,) * (x.ndim - 2))
    return x * factor.reshape(shape) + (bias - mean * factor).reshape(shape)


def _quantize(node: OnnxNode, x: Array, scale: Array, zero: Array) -> Array:
    """QuantizeLinear to int8 or uint8, one scale."""
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(zero.dtype)


def _hard_sigmoid(node: OnnxNode, x: Array) -> Array:
    """HardSigmoid; ONNX's reference implementation gives float64."""
    alpha, beta = F32(node.real("alpha", 0.2)), F32(node.real("beta", 0.5))
    return np.clip(x * alpha + beta, F32(0), F32(1))


def _dequantize(node: OnnxNode, x: Array, scale: Array, zero: Array) -> Array:
    """DequantizeLinear, one scale or one a channel."""
    shape = [1] * x.ndim
    if scale.size > 1:
        shape[node.integer("axis", 1)] = -1
    difference = x.astype(np.int32) - zero.astype(np.int32).reshape(shape)
    return difference.astype(F32) * scale.reshape(shape)


def _gather_elements(node: OnnxNode, x: Array, indices: Array) -> Array:
    """GatherElements; ONNX's reference implementation takes at most 64 along its dimension."""
    axis = node.integer("axis", 0) % x.ndim
    kept = (slice(None) if d == axis else slice(size) for d, size in enumerate(indices.shape))
    return np.take_along_axis(x[tuple(kept)], indices.astype(np.int64), axis)


WINDOWS = ("AveragePool", "Conv", "MaxPool")
KERNELS: dict[str, Callable[..., Array]] = {
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Conv": _conv,
    "DequantizeLinear": _dequantize,
    "GatherElements": _gather_elements,
    "HardSigmoid": _hard_sigmoid,
    "MaxPool": _max_pool,
    "QuantizeLinear": _quantize,
}
"""Operators that the reference implementation is slow at, or lacks at older opsets."""

SLOW = frozenset((
    "AveragePool", "Col2Im", "ConvTranspose", "DeformConv", "GatherND", "GlobalMaxPool",
    "GridSample", "Loop", "LpPool", "LRN", "MaxPool", "MaxUnpool", "NonMaxSuppression", "Resize",
    "RoiAlign", "STFT", "ScatterElements", "ScatterND", "Upsample",
))  # fmt: skip
"""Operators whose reference implementation takes microseconds for each element."""
