"""A convolution of one tensor as a branch of a sum: what it reads, and its sum with another."""

from dataclasses import replace
from itertools import product

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Array
from ..node import OnnxNode

__all__ = ["Kernel"]

MOST_NOISE = 4e-4
"""Power of the rounding to int8 over that of the weights, -34 dB: three tensors rounded to int8,
each of which spans four standard deviations, have as much.  Two branches and their sum are three.
"""


@frozen
class Kernel:
    """A convolution of tensor ``x``.

    weights: float64[output channels, input channels of a group, *window].  bias: float64[output
    channels].  node: the Conv; None for the tensor itself, which is a branch too.
    """

    x: str
    weights: Array
    bias: Array
    groups: int
    node: OnnxNode | None

    @property
    def room(self) -> int:
        """Weights that those of other branches may be added to."""
        return self.weights.size if self.node else 0

    def joined(self, other: "Kernel") -> "Kernel | None":
        """The sum of this kernel and ``other``, in the room of this one.

        None if ``other`` needs more room, or if int8 would hold the sum worse than the two.
        """
        numbers = {tap: number for number, tap in enumerate(self._taps())}
        if self.node is None or not numbers.keys() >= set(other._taps()):
            return None
        if self.x != other.x or self._strides() != other._strides() or other.groups % self.groups:
            return None
        places = np.array([numbers[tap] for tap in other._taps()])
        sums = self.weights.reshape(*self.weights.shape[:2], -1).copy()
        added = other.weights.reshape(*other.weights.shape[:2], -1)
        outputs, inputs = len(added) // other.groups, added.shape[1]
        for channel, row in enumerate(added):
            group = channel // outputs % (other.groups // self.groups)
            sums[channel, group * inputs : (group + 1) * inputs][:, places] += row
        weights = sums.reshape(self.weights.shape)
        merged = replace(self, weights=weights, bias=self.bias + other.bias)
        allowed = max(MOST_NOISE * np.sum(weights**2), 2 * (self._noise() + other._noise()))
        return merged if merged._noise() <= allowed else None

    def _noise(self) -> float:
        """Power of what rounding to int8 changes, with a scale for each output channel."""
        rows = np.abs(self.weights).reshape(len(self.weights), -1)
        return float(np.sum((rows.max(axis=1) / 127) ** 2 / 12) * rows.shape[1])

    def _taps(self) -> list[tuple[int, ...]]:
        """Elements that the window reads, counted from the place of a window of one element."""
        steps, before = self._by_dimension("dilations", 1), self._by_dimension("pads", 0)
        axes = zip(self.weights.shape[2:], steps, before, strict=True)
        return list(product(*([n * step - pad for n in range(size)] for size, step, pad in axes)))

    def _strides(self) -> tuple[int, ...]:
        return self._by_dimension("strides", 1)

    def _by_dimension(self, name: str, default: int) -> tuple[int, ...]:
        """An attribute of the Conv for each dimension of the window; of pads, those before."""
        count = self.weights.ndim - 2
        given = self.node.integers(name, ()) if self.node else ()
        return given[:count] or (default,) * count
