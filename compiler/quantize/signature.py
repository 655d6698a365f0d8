"""Inputs of a float model, and sets of values for them."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from dovetail.isa.frozen import frozen

from ..errors import CalibrationError
from ..graph.ir import Array

__all__ = ["Sample", "Signature", "fitted", "require_float"]

Sample = Mapping[str, Array]
"""An array by input, of the input's shape and element type."""


@frozen
class Signature:
    """An input of the model; a batch that is not fixed counts as 1.

    dtype: float32, a type of whole numbers, or bool.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"

    def cast(self, array: Array, where: str) -> Array:
        """``array`` in the input's element type, in C order.

        Raises CalibrationError, naming ``where``, for what is not numbers, for numbers that the
        type cannot hold, and for NaN and infinity.
        """
        if array.dtype.kind not in "fiub":
            raise CalibrationError(
                f"{where}: array of {array.dtype} for input {self.name!r}; required numbers"
            )
        with np.errstate(invalid="ignore", over="ignore"):
            found = np.asarray(array, self.dtype, order="C")
        if found.dtype.kind == "f":
            if not np.isfinite(found).all():
                raise CalibrationError(f"{where}: NaN or infinity for input {self.name!r}")
        elif not np.array_equal(found, array):
            raise CalibrationError(
                f"{where}: input {self.name!r} is {self.dtype}, and {array.dtype} array has "
                f"{array[found != array].flat[0]}; required numbers that {self.dtype} holds"
            )
        return found


def fitted(samples: Iterable[Sample], inputs: Iterable[Signature]) -> Iterator[Sample]:
    """Each sample with the inputs alone, in their element types.

    Raises CalibrationError for one that lacks an input, or has an array that does not fit it.
    """
    if not isinstance(samples, Iterable):
        raise CalibrationError(
            f"samples are {type(samples).__name__}; required a list of mappings, each with an "
            "array by input"
        )
    for number, sample in enumerate(samples):
        yield {each.name: _array(sample, each, f"sample {number}") for each in inputs}


def require_float(signature: Signature, what: str) -> None:
    """Raise CalibrationError for an input that ``what`` cannot be: it takes no real numbers."""
    if signature.dtype != "float32":
        raise CalibrationError(
            f"{what} for input {signature.name!r} of {signature.dtype}; required arrays, as .npz"
        )


def _array(sample: Sample, signature: Signature, where: str) -> Array:
    """The sample's array for an input."""
    name, shape = signature.name, signature.shape
    if not isinstance(sample, Mapping):
        raise CalibrationError(
            f"{where} is {type(sample).__name__}; required a mapping with an array by input, as "
            f"{{{name!r}: array}}"
        )
    if name not in sample:
        found = ", ".join(map(repr, sample)) or "nothing"
        raise CalibrationError(
            f"{where}: no array for input {name!r}; found {found}; required one for each input"
        )
    try:
        array = np.asarray(sample[name])
    except (RuntimeError, TypeError, ValueError) as error:
        raise CalibrationError(f"{where}: input {name!r} is not an array: {error}") from None
    if array.shape != shape:
        raise CalibrationError(
            f"{where}: array {list(array.shape)} for input {name!r}; required {list(shape)}"
        )
    return signature.cast(array, where)
