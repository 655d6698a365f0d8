"""Quantised tensors, as ONNX has them too."""

from ....graph.operators.quantization import DequantizeLinear, QuantizeLinear
from .writing import Writing

__all__ = ["write_quantization"]


def write_quantization(w: Writing, operator: QuantizeLinear | DequantizeLinear) -> str:
    """The operator of the same name; a list of one number is a number in ONNX, without an axis."""
    x, *parameters = w.node.inputs
    single = {name for name in parameters if w.type(name).shape == (1,)}
    plain = [w.reshaped(name, ()) if name in single else name for name in parameters]
    whole = all(w.type(name).shape in ((), (1,)) for name in parameters)
    axis = {} if whole else {"axis": operator.axis}
    return w.emit(type(operator).__name__, x, *plain, **axis)
