"""Quantised tensors, as ONNX has them too."""

from ....graph.operators.quantization import DequantizeLinear, QuantizeLinear
from .writing import Writing

__all__ = ["write_dequantize", "write_quantize"]


def write_quantize(w: Writing, operator: QuantizeLinear) -> str:
    """QuantizeLinear."""
    return _written(w, "QuantizeLinear", operator.axis)


def write_dequantize(w: Writing, operator: DequantizeLinear) -> str:
    """DequantizeLinear."""
    return _written(w, "DequantizeLinear", operator.axis)


def _written(w: Writing, kind: str, axis: int) -> str:
    """A list of one number is a number in ONNX, and has no axis."""
    x, *parameters = w.node.inputs
    single = {name for name in parameters if w.type(name).shape == (1,)}
    plain = [w.reshaped(name, ()) if name in single else name for name in parameters]
    whole = all(w.type(name).shape in ((), (1,)) for name in parameters)
    return w.emit(kind, x, *plain, **({} if whole else {"axis": axis}))
