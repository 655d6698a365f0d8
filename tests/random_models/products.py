"""Sums of products and of windows: convolutions, matrix products, pools, reductions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .drawing import Drawing

__all__ = [
    "conv",
    "conv_transpose",
    "dense",
    "pool",
    "product",
    "whole_pool",
    "wide_depthwise",
]

INT64, F32 = np.int64, np.float32


def conv(d: Drawing, x: str) -> list[str]:
    """Conv, with a bias or without."""
    shape = d.shape(x)
    if len(shape) < 3:
        return []
    channels = shape[1]
    groups = d.random.choice([1, 1, channels, *(n for n in (2, 4) if channels % n == 0)])
    out = groups * d.random.choice((1, 1, 2, 3) if groups > 1 else (1, 3, 8, 9, 16, 20))
    kernel = [min(d.random.choice((1, 1, 2, 3, 3, 5)), n + 1) for n in shape[2:]]
    if d.chance(0.05):
        kernel = list(shape[2:])
    weights = (out, channels // groups, *kernel)
    bias = out if d.chance(0.7) else 0
    given = [x, *d.weights(weights, 0, x, bias)]
    return d.node("Conv", given, group=groups, **_windows(d, shape, weights[2:]))


def conv_transpose(d: Drawing, x: str) -> list[str]:
    """ConvTranspose."""
    shape = d.shape(x)
    if len(shape) < 3:
        return []
    channels = shape[1]
    groups = d.random.choice((1, 1, 1, channels))
    kernel = [d.random.choice((1, 2, 3, 4)) for _ in shape[2:]]
    weights = (channels, d.random.choice((1, 2, 5)), *kernel)
    attributes = _windows(d, shape, kernel, dilated=0.1)
    if any(k < n for k, n in zip(kernel, attributes["strides"], strict=True)):
        attributes.pop("auto_pad", None)  # ONNX Runtime has other shapes than ONNX then
    if "auto_pad" not in attributes and d.chance(0.3):
        attributes["output_padding"] = [d.random.randrange(n) for n in attributes["strides"]]
    bias = weights[1] * groups if d.chance(0.5) and not d.quantized else 0
    return d.node("ConvTranspose", [x, *d.weights(weights, 1, x, bias)], group=groups, **attributes)


def _windows(
    d: Drawing, shape: Sequence[int], kernel: Sequence[int], dilated: float = 0.25
) -> dict[str, Any]:
    space = len(shape) - 2
    found: dict[str, Any] = {
        "strides": [d.random.choice((1, 1, 1, 1, 2, 3, 7)) for _ in range(space)]
    }
    if d.chance(dilated):
        found["dilations"] = [d.random.choice((1, 2, 3)) for _ in range(space)]
    steps = found.get("dilations", [1] * space)
    spans = [(k - 1) * n + 1 for k, n in zip(kernel, steps, strict=True)]
    # Where strides are longer, ONNX Runtime leaves out what is before the first window.
    within = all(span >= n for span, n in zip(spans, found["strides"], strict=True))
    if within and d.chance(0.15):
        found["auto_pad"] = d.random.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif d.chance(0.6):
        found["pads"] = [d.random.randrange((k + 1) // 2 + 1) for k in (*kernel, *kernel)]
    return {**found, "kernel_shape": list(kernel)}


def pool(d: Drawing, x: str) -> list[str]:
    """MaxPool or AveragePool."""
    shape = d.shape(x)
    if len(shape) < 3:
        return []
    kernel = [min(d.random.choice((1, 2, 2, 3, 3, 5)), n) for n in shape[2:]]
    kind = d.random.choice(("MaxPool", "AveragePool"))
    attributes = _windows(
        d, shape, kernel, dilated=0.15 if kind == "MaxPool" or d.opset > 18 else 0
    )
    if "auto_pad" in attributes:  # ONNX Runtime leaves dilations out of such pads
        attributes.pop("dilations", None)
    else:
        attributes["ceil_mode"] = d.random.choice((0, 0, 1))
    if kind == "AveragePool":
        attributes["count_include_pad"] = d.random.choice((0, 1))
    return d.node(kind, [x], **attributes)


def whole_pool(d: Drawing, x: str) -> list[str]:
    """GlobalAveragePool, GlobalMaxPool or a reduction."""
    rank = len(d.shape(x))
    if rank > 2 and d.chance(0.5):
        return d.node(d.random.choice(("GlobalAveragePool", "GlobalMaxPool")), [x])
    kind = d.random.choice(("ReduceMean", "ReduceMean", "ReduceMax", "ReduceSum", "ReduceMin"))
    axes = [n for n in range(rank) if d.chance(0.5)] or [rank - 1]
    if rank == 4 and d.chance(0.5):
        axes = [2, 3]
    keep = d.random.choice((0, 1, 1))
    axes = [n - rank if d.chance(0.5) else n for n in axes]
    if kind == "ReduceSum" or d.opset >= 18:
        return d.node(kind, [x, d.constant(np.array(axes, INT64))], keepdims=keep)
    return d.node(kind, [x], axes=axes, keepdims=keep)


def dense(d: Drawing, x: str) -> list[str]:
    """Gemm or MatMul with constant weights."""
    shape, out = d.shape(x), d.random.choice((1, 3, 8, 10, 17))
    if len(shape) == 2 and d.chance(0.6):
        flipped = d.random.choice((0, 1))
        weights = (out, shape[1]) if flipped else (shape[1], out)
        given = [x, *d.weights(weights, 1 - flipped, x, out if d.chance(0.7) else 0)]
        if not d.quantized and d.chance(0.3):
            factors = {"alpha": d.random.choice((0.5, -1.5)), "beta": d.random.choice((0.0, 0.5))}
            return d.node("Gemm", given, transB=flipped, **factors)
        return d.node("Gemm", given, transB=flipped)
    found = d.node("MatMul", [x, *d.weights((shape[-1], out), 1, x)])
    if found and d.chance(0.5):
        return d.node("Add", [*found, d.constant(d.rng.normal(0, 0.3, out).astype(F32))])
    return found


def wide_depthwise(d: Drawing, x: str) -> list[str]:
    """Conv of each channel by itself, with a window of up to 15 rows or columns."""
    shape = d.shape(x)
    if len(shape) < 3:
        return []
    kernel = [d.random.choice((1, 3, 7, 9, 11, 15)) for _ in shape[2:]]
    steps = [d.random.choice((1, 1, 1, 2)) for _ in kernel]
    pads = [k // 2 * n for k, n in zip(kernel, steps, strict=True)] * 2
    bias = shape[1] if d.chance(0.7) else 0
    given = [x, *d.weights((shape[1], 1, *kernel), 0, x, bias)]
    strides = [d.random.choice((1, 1, 2)) for _ in kernel]
    sizes = {"kernel_shape": kernel, "dilations": steps, "pads": pads, "strides": strides}
    return d.node("Conv", given, group=shape[1], **sizes)


def product(d: Drawing, x: str) -> list[str]:
    """MatMul of two tensors, one perhaps repeated over matrices."""
    rank = len(d.shape(x))
    fitting = [n for n in d.floats if len(d.shape(n)) > 1 and d.shape(n)[-2] == d.shape(x)[-1]]
    if fitting and d.chance(0.4):
        return d.node("MatMul", [x, d.random.choice(fitting)])
    order = [*range(rank - 2), rank - 1, rank - 2]
    other = d.random.choice([n for n in d.floats if len(d.shape(n)) == rank])
    turned = d.node("Transpose", [other], perm=order)
    return d.node("MatMul", [x, d.again(turned[0], other)]) if turned else []
