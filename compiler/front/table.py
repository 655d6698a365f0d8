"""All front ends, by the suffixes of their files."""

from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import ModelError
from ..pipeline.limits import Budget
from .source import Source

__all__ = ["FRONTS", "open_model"]

DEFAULT = ".onnx"
FRONTS = {
    DEFAULT: ("onnx.source", "SourceModel"),
    ".pt2": ("torch.source", "TorchModel"),
    ".tflite": ("tflite.source", "TfliteModel"),
}
"""Module and class; the class has ``of``, which takes a path or the format's own object, and
a budget."""


def open_model(model: object, budget: Budget | None = None) -> Source:
    """A model that a front end has read: ``model`` itself, or from its file, or from its format's
    own object.

    A file of an unknown suffix is taken for ONNX.  budget: what importing it may take.
    Raises ModelError when it cannot be read.
    """
    if isinstance(model, Source):
        return model
    suffix = Path(model).suffix.lower() if isinstance(model, str | Path) else DEFAULT
    module, name = FRONTS.get(suffix, FRONTS[DEFAULT])
    try:
        front: Any = getattr(import_module(f".{module}", __package__), name)
    except ModuleNotFoundError as error:
        if error.name != "tflite":
            raise
        raise ModelError(
            f"{model}: TensorFlow Lite's files are read with tflite, which is not installed; "
            "install the extra: pip install 'dovetail[tflite]'"
        ) from None
    found: Source = front.of(model, budget)
    return found
