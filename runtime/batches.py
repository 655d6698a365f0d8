"""Batches for modules of one sample: taken apart, and the results of their samples put together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .errors import InputError
from .result import RunResult, join_results
from .tensors import TensorSignature

__all__ = ["join_batch", "split_batch"]


def split_batch(
    signatures: Sequence[TensorSignature], batch: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The inputs of each sample, which are not copied.

    batch: [N, *rest] for a signature [1, *rest] or [any, *rest], [N, *shape] for another.
    Raises InputError for different numbers of samples, and for none.
    """
    counts = {name: np.shape(array)[0] if np.ndim(array) else 0 for name, array in batch.items()}
    if len(set(counts.values())) != 1 or 0 in counts.values():
        said = ", ".join(f"{name!r} {count}" for name, count in counts.items()) or "none"
        raise InputError(
            f"the inputs have samples: {said}; required the same number for each, from 1"
        )
    rows = {each.name for each in signatures if _is_row(each)}
    return [
        {
            name: array[place : place + 1] if name in rows else array[place]
            for name, array in batch.items()
        }
        for place in range(next(iter(counts.values())))
    ]


def join_batch(
    signatures: Sequence[TensorSignature], results: Sequence[RunResult], wall_seconds: float
) -> RunResult:
    """The samples' outputs, [N, ...] each, and their figures added up; without timelines.

    signatures: of the outputs.  wall_seconds: of all.
    """
    outputs = {}
    for each in signatures:
        arrays = [result.outputs[each.name] for result in results]
        outputs[each.name] = np.concatenate(arrays) if _is_row(each) else np.stack(arrays)
    bare = [replace(each, timeline=()) for each in results]
    return join_results(bare, outputs, results[0].device, wall_seconds)


def _is_row(tensor: TensorSignature) -> bool:
    """True if its first dimension is the batch's."""
    return tensor.shape[:1] in ((1,), (-1,))
