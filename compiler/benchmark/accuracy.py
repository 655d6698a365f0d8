"""Distance of outputs from what they should be."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

__all__ = ["Accuracy", "accuracy_of"]

Array = NDArray[Any]


@frozen
class Accuracy:
    """top1: share of samples whose largest element is where the label says.

    agreement: share of samples whose largest element is where the reference's is.
    error: ``|y - r| / |r|`` (2-norms) over all samples.  equal: whether every byte is the
    reference's.  Of the first output, all of it; None where there is nothing to compare with.
    """

    top1: float | None = None
    agreement: float | None = None
    error: float | None = None
    equal: bool | None = None


def accuracy_of(
    outputs: Sequence[Array], reference: Sequence[Array] | None, labels: Array | None
) -> Accuracy:
    """Compare the first output.

    outputs, reference: each output as [samples, ...].  labels: int[samples].
    """
    found = outputs[0]
    top1 = None if labels is None else float((_largest(found) == labels).mean())
    if reference is None:
        return Accuracy(top1)
    wanted = reference[0]
    exact = wanted.astype(np.float64)
    size = float(np.linalg.norm(exact))
    difference = float(np.linalg.norm(found.astype(np.float64) - exact))
    return Accuracy(
        top1,
        float((_largest(found) == _largest(wanted)).mean()),
        difference / size if size else difference,
        found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes(),
    )


def _largest(batch: Array) -> Array:
    """The place of each sample's largest element."""
    found: Array = batch.reshape(len(batch), -1).argmax(1)
    return found
