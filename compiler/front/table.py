"""All front ends, by the suffixes of their files."""

from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import ModelError
from ..pipeline.limits import Budget
from .source import Source
from .stored import StoredModel
from .torch.live import is_of_torch

__all__ = ["FRONTS", "open_model", "store_model"]

DEFAULT = ".onnx"
FRONTS = {
    DEFAULT: ("onnx.source", "SourceModel"),
    ".pt": ("torch.source", "TorchModel"),
    ".pt2": ("torch.source", "TorchModel"),
    ".pth": ("torch.source", "TorchModel"),
    ".tflite": ("tflite.source", "TfliteModel"),
}
"""Module and class; the class has ``of``, which takes a path or the format's own object, and
a budget."""


def open_model(model: object, budget: Budget | None = None) -> Source:
    """A model that a front end has read: ``model`` itself, or from its file, stored or not, or from
    its format's own object.

    A file of an unknown suffix is taken for ONNX.  budget: what importing it may take.
    Raises ModelError when it cannot be read.
    """
    if isinstance(model, Source):
        return model
    if isinstance(model, StoredModel):
        suffix, model = model.suffix, model.content
    elif isinstance(model, str | Path):
        suffix = Path(model).suffix.lower()
    else:
        suffix = ".pt2" if is_of_torch(model) else DEFAULT
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


def store_model(path: Path) -> StoredModel:
    """The file of a model that a front end can read, with weights that ONNX keeps elsewhere.

    Raises ModelError when it cannot be read.
    """
    read: Any = open_model(path)
    suffix = path.suffix.lower()
    if suffix in FRONTS and suffix != DEFAULT:
        return StoredModel(suffix, path.read_bytes())
    return StoredModel(DEFAULT, read.to_bytes())
