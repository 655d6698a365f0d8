"""Calibration data: arrays from files, as one sample after another."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ....errors import CalibrationError
from ....graph.ir import Array
from .model import Signature

__all__ = ["Sample", "read_samples", "samples_of"]

Sample = Mapping[str, Array]
"""float32 array by input, in the shape of the input."""


def read_samples(path: Path, inputs: Sequence[Signature]) -> Iterator[Sample]:
    """The samples of a file ``.npz`` or ``.npy``, or of all such files in a folder, by name.

    An archive holds one array for each input, under its name; for a model with one input any name
    will do, and so will ``.npy``.  An array is a sample, or has samples along its first dimension.
    Raises CalibrationError when there is no data, or it does not fit the inputs.
    """
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix in (".npy", ".npz"))
        if not files:
            raise CalibrationError(f"folder {path} has no .npy or .npz files")
    elif path.is_file():
        files = [path]
    else:
        raise CalibrationError(f"no calibration data {path}; required a folder, .npz or .npy")
    for file in files:
        yield from samples_of(_arrays(file, inputs), inputs, str(file))


def samples_of(
    arrays: Mapping[str, Array], inputs: Sequence[Signature], where: str
) -> Iterator[Sample]:
    """The samples in ``arrays``, by input.

    Raises CalibrationError, naming ``where``.
    """
    batches = {}
    for each in inputs:
        if each.name not in arrays:
            found = ", ".join(map(repr, sorted(arrays))) or "none"
            raise CalibrationError(
                f"{where}: no array {each.name!r}; found {found}; required one for each input"
            )
        batches[each.name] = _batched(arrays[each.name], each, where)
    counts = {name: len(batch) for name, batch in batches.items()}
    if len(set(counts.values())) > 1:
        raise CalibrationError(f"{where}: different numbers of samples: {counts}")
    for place in range(next(iter(counts.values()))):
        yield {name: batch[place] for name, batch in batches.items()}


def _arrays(file: Path, inputs: Sequence[Signature]) -> dict[str, Array]:
    try:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            arrays = {inputs[0].name: loaded}
        else:
            with loaded:
                arrays = {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError, BadZipFile, MemoryError) as error:
        raise CalibrationError(f"cannot read {file}: {error}") from None
    if len(inputs) == len(arrays) == 1:
        arrays = {inputs[0].name: next(iter(arrays.values()))}
    return arrays


def _batched(array: Array, signature: Signature, where: str) -> Array:
    """float32[samples, *shape of the input]."""
    shape = signature.shape
    if array.dtype.kind not in "fiu":
        raise CalibrationError(f"{where}: array of {array.dtype}; required numbers")
    if array.shape == shape:
        array = array[None]
    elif array.shape[1:] == shape:
        pass
    elif shape[0] == 1 and array.shape[1:] == shape[1:]:
        array = array[:, None]
    else:
        raise CalibrationError(
            f"{where}: array {list(array.shape)} for input {signature.name!r}; required "
            f"{list(shape)}, or samples of it along a first dimension"
        )
    if not len(array):
        raise CalibrationError(f"{where}: no samples for input {signature.name!r}")
    array = np.ascontiguousarray(array, np.float32)
    if not np.isfinite(array).all():
        raise CalibrationError(f"{where}: NaN or infinity for input {signature.name!r}")
    return array
