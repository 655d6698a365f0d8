"""One converter for each ONNX operator; those of other domains are called ``domain.Operator``."""

from collections.abc import Mapping

from .context import Converter
from .elementwise import ELEMENTWISE

__all__ = ["CONVERTERS"]

CONVERTERS: Mapping[str, Converter] = {
    **ELEMENTWISE,
}
