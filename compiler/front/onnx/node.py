"""Nodes of an ONNX model with typed attributes."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

__all__ = ["OnnxNode", "is_quantized_kind"]

QUANTIZED = ("QLinear", "Quant", "Dequantize", "QGemm", "IntQuant", "BipolarQuant")


def is_quantized_kind(kind: str) -> bool:
    """True if an operator quantises, or computes on quantised tensors, by its name."""
    return kind.startswith(QUANTIZED)


@frozen
class OnnxNode:
    """A node of the model; inputs left out are empty strings."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, object]
    domain: str = ""

    def __str__(self) -> str:
        return f"node {self.name!r} ({self.kind})"

    def has(self, place: int) -> bool:
        """True if there is an input at ``place``."""
        return len(self.inputs) > place and bool(self.inputs[place])

    def integer(self, name: str, default: int) -> int:
        """An integer attribute.

        Raises ValueError when it is of another kind.
        """
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            raise ValueError(f"attribute {name} is {value!r}; required an integer")
        return value

    def integers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """An attribute that is a list of integers.

        Raises ValueError when it is of another kind.
        """
        value = self.attributes.get(name, default)
        if not isinstance(value, list | tuple) or not all(isinstance(n, int) for n in value):
            raise ValueError(f"attribute {name} is {value!r}; required a list of integers")
        return tuple(value)

    def real(self, name: str, default: float) -> float:
        """A float attribute.

        Raises ValueError when it is of another kind.
        """
        value = self.attributes.get(name, default)
        if not isinstance(value, float | int):
            raise ValueError(f"attribute {name} is {value!r}; required a number")
        return float(value)

    def reals(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """An attribute that is a list of numbers.

        Raises ValueError when it is of another kind.
        """
        value = self.attributes.get(name, default)
        if not isinstance(value, list | tuple) or not all(
            isinstance(n, float | int) for n in value
        ):
            raise ValueError(f"attribute {name} is {value!r}; required a list of numbers")
        return tuple(map(float, value))

    def texts(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """An attribute that is a list of strings.

        Raises ValueError when it is of another kind.
        """
        value = self.attributes.get(name, default)
        if not isinstance(value, list | tuple):
            raise ValueError(f"attribute {name} is {value!r}; required a list of strings")
        return tuple(
            n.decode("utf-8", "replace") if isinstance(n, bytes) else str(n) for n in value
        )

    def text(self, name: str, default: str) -> str:
        """A string attribute."""
        value = self.attributes.get(name, default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
