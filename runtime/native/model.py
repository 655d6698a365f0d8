"""Parts of modules that are models, which this CPU compiles as they run."""

from typing import ClassVar

from dovetail.isa.frozen import frozen

from ..manifest import Content
from ..tensors import TensorSignature

__all__ = ["ModelPart"]


@frozen
class ModelPart:
    """An ONNX model that is compiled for the shapes and values it is given.

    options, records: the compiler's options of code for CPUs and its records of schedules, as JSON
    values, which the compiler reads.
    """

    kind: ClassVar[str] = "model"
    target: ClassVar[str] = "cpu"

    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]
    model: Content
    options: object
    records: object
