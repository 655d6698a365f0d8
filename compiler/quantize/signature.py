"""Inputs of a float model, and one set of values for them."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ..errors import CalibrationError
from ..graph.ir import Array

__all__ = ["Sample", "Signature", "require_float"]

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


def require_float(signature: Signature, what: str) -> None:
    """Raise CalibrationError for an input that ``what`` cannot be: it takes no real numbers."""
    if signature.dtype != "float32":
        raise CalibrationError(
            f"{what} for input {signature.name!r} of {signature.dtype}; required arrays, as .npz"
        )
