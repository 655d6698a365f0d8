"""Elements of vectors, which may become channels of images."""

__all__ = ["Element", "NoLanesError"]

Element = tuple[str, int]
"""A tensor, and the place of one of its elements, all dimensions counted as one."""


class NoLanesError(Exception):
    """The vectors cannot be had in this order."""
