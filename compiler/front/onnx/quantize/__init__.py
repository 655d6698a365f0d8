"""Quantisation of float models: calibration, scales, and the model in QDQ form."""

from .compare import Comparison, compare
from .driver import QuantizedModel, quantize_model
from .model import float_model
from .options import Method, QuantizeOptions

__all__ = [
    "Comparison",
    "Method",
    "QuantizeOptions",
    "QuantizedModel",
    "compare",
    "float_model",
    "quantize_model",
]
