"""Padding of windows, by TensorFlow Lite's two schemes."""

from .node import Node

__all__ = ["Pads", "pads_of", "strides_of"]

Pads = tuple[tuple[int, int], ...]
"""First, last, of each spatial dimension."""
SAME, VALID = 0, 1
LARGEST_WINDOW = 1 << 16
"""Rows or columns."""


def pads_of(
    node: Node,
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...] | None = None,
) -> Pads:
    """Padding before and after: none, or so that there are ``ceil(size / stride)`` windows.

    Raises ModelError for strides, dilations or kernels below 1, and where no window fits.
    """
    dilations = dilations or (1,) * len(sizes)
    scheme = node.attribute("padding")
    node.require(min(*strides, *dilations, *kernel) >= 1, "strides, dilations and kernel above 0")
    found = []
    for size, taps, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        reach = (taps - 1) * dilation + 1
        node.require(reach <= LARGEST_WINDOW, f"windows of at most {LARGEST_WINDOW}")
        if scheme == VALID:
            node.require(reach <= size, f"a window of {reach} within {size}")
            found.append((0, 0))
            continue
        if scheme != SAME:
            raise node.unsupported(f"padding {scheme}")
        total = max(0, (-(-size // stride) - 1) * stride + reach - size)
        found.append((total // 2, total - total // 2))
    padded = (size + sum(pads) for size, pads in zip(sizes, found, strict=True))
    node.context.require_room(*padded)
    return tuple(found)


def strides_of(node: Node, default: int = 0) -> tuple[int, int]:
    """Strides down and across."""
    return node.attribute("stride_h", default), node.attribute("stride_w", default)
