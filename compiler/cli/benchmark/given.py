"""Inputs of a benchmark: samples, and their labels."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.runtime.errors import InputError
from dovetail.runtime.native.content import array_type
from dovetail.runtime.tensors import TensorSignature

from ...quantize.data import read_data
from ...quantize.signature import Signature
from ..arrays import random_arrays, read_array

__all__ = ["read_batch", "read_labels"]

Array = NDArray[Any]


def read_batch(model: Any, data: Path | None, most: int) -> dict[str, Array]:
    """An array for each input of ``model``, [samples, *shape]; open dimensions are 1.

    data: files as for ``dovetail quantize``; None for one sample of random numbers.
    Raises CalibrationError for data that does not fit.
    """
    tensors = [
        TensorSignature(each.name, tuple(size or 1 for size in each.shape), each.dtype)
        for each in model.inputs
    ]
    if data is None:
        return {name: array[None] for name, array in random_arrays(tensors).items()}
    signatures = [Signature(each.name, each.shape) for each in tensors]
    found = list(islice(read_data(data, signatures), most))
    return {
        each.name: np.stack([one[each.name] for one in found]).astype(array_type(each.dtype))
        for each in tensors
    }


def read_labels(path: Path, count: int) -> Array:
    """int[count], from the beginning of an array of whole numbers.

    Raises InputError for anything else, and for fewer than there are samples.
    """
    labels = read_array(path, f"labels: cannot read {path}")
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise InputError(
            f"labels {path} are {labels.dtype}{list(labels.shape)}; required a row of whole "
            "numbers, the place of each sample's class in the first output"
        )
    if len(labels) < count:
        raise InputError(f"labels {path} are {len(labels)}; required {count}, one a sample")
    return labels[:count]
