"""Factors of channels by which int8 loses less: what a layer writes is divided by them, and what
the next one reads multiplied.

Source: M. Nagel et al., "Data-Free Quantization through Weight Equalization and Bias Correction",
2019, section 4.1; for activations: G. Xiao et al., "SmoothQuant", 2022, equation 4.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

__all__ = ["FIXED", "LayerRanges", "channel_factors"]

FIXED = 0
"""The class of channels whose factor is 1."""
SWEEPS = 8
"""Factors of neighbours depend on each other; they settle in a few."""
LIMIT = 2.0**20
"""The largest factor: beyond it, float32 itself would lose."""

Ids = NDArray[np.int64]
Real = NDArray[np.float64]


@frozen
class LayerRanges:
    """The largest magnitude of a layer's weights from each input channel to each output channel.

    weights: [groups, outputs, inputs].  reads: the class of each input channel, [groups, inputs].
    writes: of each output channel, [groups, outputs].
    """

    weights: Real
    reads: Ids
    writes: Ids


def channel_factors(layers: Sequence[LayerRanges], activations: Real, reached: Real) -> Real:
    """A factor for each class; 1 for the first.

    activations: the largest magnitude of each class.  reached: the least factor of classes behind
    which values are cut off, 0 of others; those that would need more than 1 have 1.
    The factors make what a channel is written by, the geometric mean of the weights' range and of
    the activation's, equal to the range of the weights that read it.  Weights alone, as in the
    first source, leave activations apart; activations alone, as in the second, the weights.
    """
    factors = np.ones(len(activations))
    least, most = np.clip(reached, 1 / LIMIT, 1), np.where(reached > 0, 1, LIMIT)
    least[FIXED] = most[FIXED] = 1
    bounded = [own for layer in layers if (reached[own := np.unique(layer.writes)] > 0).any()]
    for _ in range(SWEEPS):
        written, read = np.zeros_like(factors), np.zeros_like(factors)
        for layer in layers:
            now = layer.weights * factors[layer.reads][:, None] / factors[layer.writes][:, :, None]
            np.maximum.at(written, layer.writes, now.max(axis=2))
            np.maximum.at(read, layer.reads, now.max(axis=1))
        written = np.sqrt(written * activations / factors)
        both = (written > 0) & (read > 0)
        change = np.sqrt(np.divide(written, read, out=np.ones_like(read), where=both))
        factors *= change
        for own in bounded:
            # What all channels of a tensor have in common changes nothing.
            factors[own] /= factors[own].max()
        factors = np.clip(factors, least, most)
    return factors
