"""Quantisation of float models: calibration, scales, and the model in QDQ form."""

from .driver import QuantizedModel, quantize_model
from .options import Method, QuantizeOptions

__all__ = ["Method", "QuantizeOptions", "QuantizedModel", "quantize_model"]
