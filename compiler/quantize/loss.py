"""Losses of each tensor and each layer's weights, and the order in which layers become float."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from dovetail.isa.frozen import frozen

__all__ = ["Kind", "Loss", "worst_first"]


class Kind(StrEnum):
    """Things that can be int8."""

    TENSOR = "tensor"
    WEIGHTS = "weights"


@frozen
class Loss:
    """The loss where one thing alone is int8, and everything else float.

    name: of the tensor, or of the layer with the weights.  layers: it is float when all of these
    are.  own: the change of the tensor, or of what the layer computes, ``|q - f| / |f|`` (2-norms).
    output: the change of the model's outputs, likewise.
    """

    kind: Kind
    name: str
    layers: frozenset[str]
    own: float
    output: float

    @property
    def signal_to_noise(self) -> float:
        """``own`` in dB; infinite where nothing is lost."""
        return -20 * float(np.log10(self.own)) if self.own else float("inf")


def worst_first(losses: Sequence[Loss]) -> tuple[frozenset[str], ...]:
    """Larger and larger sets of layers to keep float, each with the one that then saves most.

    Noise of different origin adds up by squares.  A layer alone saves its weights; a tensor is
    saved with all layers that touch it.
    """
    kept: frozenset[str] = frozenset()
    order: list[frozenset[str]] = []
    choices = {loss.layers for loss in losses}
    choices |= {frozenset([layer]) for loss in losses for layer in loss.layers}

    def noise(keep: frozenset[str]) -> float:
        return sum(loss.output**2 for loss in losses if not loss.layers <= keep)

    while True:
        more = [kept | each for each in sorted(choices, key=sorted) if not each <= kept]
        if not more:
            return tuple(order)
        before = noise(kept)
        # By what each further layer saves; of equal ones, the smallest set.
        kept = max(more, key=lambda keep: ((before - noise(keep)) / len(keep - kept), -len(keep)))
        order.append(kept)
