"""Samples in ``.npz`` and ``.npy`` files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ...errors import CalibrationError
from ...graph.ir import Array
from ..signature import Sample, Signature
from .dataset import Source

__all__ = ["array_source", "load_arrays"]

BEGINNINGS = (b"\x93NUMPY", b"PK")
"""The first bytes of ``.npy`` and ``.npz`` files."""


def array_source(name: str, file: Path, inputs: Sequence[Signature]) -> Source:
    """The samples of a file.

    An archive holds one array for each input, under its name; for a model with one input any name
    will do, and so will ``.npy``.  An array is a sample, or has samples along its first dimension.
    Raises CalibrationError when it cannot be read, or does not fit the inputs.
    """
    count = _count(_batches(file, inputs), str(file))

    def read(places: Sequence[int]) -> Iterator[Sample]:
        batches = _batches(file, inputs)
        for place in places:
            yield {each.name: each.cast(batches[each.name][place], str(file)) for each in inputs}

    return Source(name, count, read)


def load_arrays(file: Path) -> dict[str, Array]:
    """The arrays of an archive by name; one of a ``.npy`` file, which stays in the file, as ''.

    Raises CalibrationError for what is damaged or holds objects.
    """
    try:
        with file.open("rb") as opened:
            if not opened.read(len(BEGINNINGS[0])).startswith(BEGINNINGS):
                raise CalibrationError(
                    f"{file} is neither an array (.npy) nor an archive of arrays (.npz)"
                )
        loaded = np.load(file, allow_pickle=False, mmap_mode="r")
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError, BadZipFile, MemoryError) as error:
        raise CalibrationError(f"cannot read {file}: {error}") from None


def _batches(file: Path, inputs: Sequence[Signature]) -> dict[str, Array]:
    """Numbers [samples, *shape of the input], by input."""
    arrays = load_arrays(file)
    if len(inputs) == len(arrays) == 1:
        arrays = {inputs[0].name: next(iter(arrays.values()))}
    return {each.name: _batched(arrays, each, str(file)) for each in inputs}


def _batched(arrays: Mapping[str, Array], signature: Signature, where: str) -> Array:
    name, shape = signature.name, signature.shape
    if name not in arrays:
        found = ", ".join(map(repr, sorted(arrays))) or "none"
        raise CalibrationError(
            f"{where}: no array {name!r}; found {found}; required one for each input"
        )
    array = arrays[name]
    if array.dtype.kind not in "fiub":
        raise CalibrationError(f"{where}: array of {array.dtype}; required numbers")
    if array.shape == shape:
        array = array[None]
    elif array.shape[1:] == shape:
        pass
    elif shape[:1] == (1,) and array.shape[1:] == shape[1:]:
        array = array[:, None]
    else:
        raise CalibrationError(
            f"{where}: array {list(array.shape)} for input {name!r}; required "
            f"{list(shape)}, or samples of it along a first dimension"
        )
    if not len(array):
        raise CalibrationError(f"{where}: no samples for input {name!r}")
    return array


def _count(batches: Mapping[str, Array], where: str) -> int:
    counts = {name: len(batch) for name, batch in batches.items()}
    if len(set(counts.values())) > 1:
        raise CalibrationError(f"{where}: different numbers of samples: {counts}")
    return next(iter(counts.values()))
