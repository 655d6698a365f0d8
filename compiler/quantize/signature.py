"""What a float model takes, and one set of inputs for it."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..graph.ir import Array

__all__ = ["Sample", "Signature"]

Sample = Mapping[str, Array]
"""float32 array by input, in the shape of the input."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A float32 input of the model; a batch that is not fixed counts as 1."""

    name: str
    shape: tuple[int, ...]
