"""A group's loop program, before any target's schedule."""

from enum import StrEnum

from dovetail.isa.frozen import frozen

from ..loops.ir import Function

__all__ = ["Definition", "Kind"]


class Kind(StrEnum):
    """Kind of a group's loops, by which a target chooses the rule that schedules them."""

    ATTENTION = "attention"
    """Scores, their softmax and the means that it weighs, some rows and columns at a time."""
    ELEMENTS = "elements"
    """No anchor: a nest over the elements of each result."""
    CONTRACTION = "contraction"
    """Sums of products over labels, and other reductions of them."""
    CONVOLUTION = "convolution"
    """Sums of products whose operands have zeros around them, and between their elements."""
    INDEXING = "indexing"
    """A copy, and then writes where integers say."""
    ORDERED = "ordered"
    """Iterations that need the one before them."""
    RECURRENT = "recurrent"
    """Steps, each with sums of products and a nest over its state."""
    ROWS = "rows"
    """Passes over a row that is kept between them."""
    SORTING = "sorting"
    """Comparisons of keys in blocks, and merges."""
    WINDOWS = "windows"
    """Reductions over windows that slide."""
    WINOGRAD = "winograd"
    """A transform of tiles, sums of products, and a transform back."""


@frozen
class Definition:
    """function: serial loops; its buffers are called ``in0``, ``out0``, ...

    inputs, outputs: the tensors that belong to its buffers.
    """

    function: Function
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kind: Kind
