"""Attention: rows of scores, their softmax, and the means that it weighs."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..types import TensorType
from .protocol import Array, Fusion, require, require_inputs

__all__ = ["Attention"]

Labels = tuple[int, ...]


@frozen
class Attention:
    """``y = einsum(softmax(einsum(q, k) * scale + bias), v)``, the softmax over the last label of
    ``scores``; computed in float32.

    query, key, value, output: labels of the dimensions of q, k, v and y, as in einsum; scores:
    those of the scores between.  added: whether a bias that broadcasts to the scores comes after v.
    chosen: whether then a bool tensor says, likewise, which scores stay; others are ``other``.
    q, k, v: floats; bias: float32.  y: float32.
    """

    query: Labels
    key: Labels
    value: Labels
    scores: Labels
    output: Labels
    scale: float = 1.0
    added: bool = False
    chosen: bool = False
    other: float = 0.0

    fusion: ClassVar[Fusion] = Fusion.CONTRACTION

    @property
    def column(self) -> int:
        """The label that the softmax is over."""
        return self.scores[-1]

    @property
    def row(self) -> int:
        """The last label of the scores that q has, and neither k nor v."""
        found = [x for x in self.scores if x in self.query and x not in (*self.key, *self.value)]
        require(self, bool(found), f"labels {self.query}", "one that neither k nor v has")
        return found[-1]

    @property
    def depth(self) -> Labels:
        """Labels that the products of q and k are summed over."""
        return tuple(each for each in self.query if each not in self.scores)

    @property
    def columns(self) -> Labels:
        """Labels of the result that v alone has."""
        return tuple(each for each in self.output if each not in self.scores)

    def sizes(self, inputs: Sequence[TensorType]) -> dict[int, int]:
        """The size of each label.  Raises GraphError for two sizes of one."""
        found: dict[int, int] = {}
        for labels, kind in zip((self.query, self.key, self.value), inputs, strict=False):
            once = len({*labels}) == len(labels) == kind.rank
            require(self, once, kind, f"{len(labels)} dimensions of different labels")
            for label, size in zip(labels, kind.shape, strict=True):
                same = found.setdefault(label, size) == size
                require(self, same, f"{found[label]} and {size} for label {label}", "one size")
        return found

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError for shapes or types that do not fit."""
        require_inputs(self, inputs, 3 + self.added + self.chosen)
        sizes = self.sizes(inputs)
        floats = all(each.dtype.is_float for each in inputs[:3])
        require(self, floats, ", ".join(map(str, inputs[:3])), "floats")
        kept = set(self.scores) - {self.column}
        fits = kept <= set(self.output) <= kept | set(self.value) and self.row in kept
        fits = fits and kept <= {*self.query, *self.key} and set(self.depth) <= set(self.key)
        fits = fits and self.column in self.key and self.column not in (*self.query, *self.output)
        fits = fits and self.column in self.value
        fits = fits and set(self.key) <= {*self.scores, *self.depth}
        fits = fits and set(self.value) <= {*self.scores, *self.output}
        require(self, fits, f"labels {self.scores} and {self.output}", "labels of its operands")
        require(self, min(sizes.values(), default=1) >= 1, sizes, "sizes of at least 1")
        shape = tuple(sizes[each] for each in self.scores)
        for kind, dtype in self._masks(inputs):
            try:
                same = np.broadcast_shapes(kind.shape, shape) == shape
            except ValueError:
                same = False
            require(self, same and kind.dtype == dtype, kind, f"{dtype} that fits {list(shape)}")
        return (TensorType(tuple(sizes[each] for each in self.output), DType.FLOAT32),)

    def _masks(self, inputs: Sequence[TensorType]) -> Iterator[tuple[TensorType, DType]]:
        kinds = [DType.FLOAT32] * self.added + [DType.BOOL] * self.chosen
        return zip(inputs[3:], kinds, strict=True)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By NumPy's functions."""
        q, k, v = (each.astype(np.float32) for each in inputs[:3])
        masks = list(inputs[3:])
        with np.errstate(all="ignore"):
            scores = _einsum(q, self.query, k, self.key, self.scores)
            scores = scores * np.float32(self.scale)
            scores = scores + masks.pop(0) if self.added else scores
            if self.chosen:
                scores = np.where(masks.pop(0), scores, np.float32(self.other))
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights = weights / weights.sum(axis=-1, keepdims=True)
            return (_einsum(weights, self.scores, v, self.value, self.output),)


def _einsum(a: Array, first: Labels, b: Array, second: Labels, output: Labels) -> Array:
    numbers = {label: number for number, label in enumerate(dict.fromkeys((*first, *second)))}
    one, two, three = ([numbers[each] for each in labels] for labels in (first, second, output))
    arguments: list[Any] = [a, one, b, two, three]
    return np.asarray(np.einsum(*arguments), np.float32)
