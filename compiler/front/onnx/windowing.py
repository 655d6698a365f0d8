"""Pads of sliding windows, as ONNX's attributes give them."""

from ...errors import ModelError
from .node import OnnxNode

__all__ = ["Pads", "same_pads"]

Pads = tuple[tuple[int, int], ...]
"""Before, after, of each spatial dimension."""


def same_pads(
    node: OnnxNode,
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> Pads:
    """Pads, from ``pads`` and ``auto_pad``.

    Raises ModelError for lists of another length, or an unknown auto_pad.
    """
    rank = len(sizes)
    if not len(kernel) == len(strides) == len(dilations) == rank:
        raise ModelError(
            f"{node}: kernel {kernel}, strides {strides}, dilations {dilations}; required "
            f"{rank} of each"
        )
    if min((1, *strides, *dilations)) < 1:
        raise ModelError(f"{node}: strides {strides}, dilations {dilations}; required at least 1")
    mode = node.text("auto_pad", "NOTSET")
    if mode == "VALID":
        return ((0, 0),) * rank
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        pads = []
        for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
            total = max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
            small, large = total // 2, total - total // 2
            pads.append((small, large) if mode == "SAME_UPPER" else (large, small))
        return tuple(pads)
    if mode not in ("NOTSET", ""):
        raise ModelError(f"{node}: auto_pad {mode!r}; required SAME_UPPER, SAME_LOWER or VALID")
    given = node.integers("pads", (0,) * 2 * rank)
    if len(given) != 2 * rank:
        raise ModelError(f"{node}: {len(given)} pads; required {2 * rank}")
    return tuple(zip(given[:rank], given[rank:], strict=True))
