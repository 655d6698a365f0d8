"""Quantised models as lines of text, which a file keeps for each test: any range is legal."""

import os
from pathlib import Path

import onnx
from onnx import helper, numpy_helper

from dovetail.compiler.front.onnx.quantize import QuantizedModel
from tests.kept import check_kept

__all__ = ["check_model"]

KEPT = Path(__file__).with_suffix(".json")


def check_model(found: QuantizedModel) -> None:
    """Fail if nodes and scales are not those that are kept for this test."""
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition("/")[2].removesuffix(" (call)")
    model = found.model.graph
    constants = {each.name: _told(each) for each in model.initializer}
    lines = []
    for node in model.node:
        if node.op_type == "DequantizeLinear" and node.input[0].endswith("/quantized"):
            continue  # as it was quantised
        inputs = " ".join(constants.get(name, name) or "-" for name in node.input)
        attributes = " ".join(helper.printable_attribute(each) for each in node.attribute)
        lines.append(f"{' '.join(node.output)} = {node.op_type}({inputs}) {attributes}".rstrip())
    check_kept(KEPT, test, [*lines, *map(str, found.kept)])


def _told(constant: onnx.TensorProto) -> str:
    """A number in two digits, or type and shape."""
    array = numpy_helper.to_array(constant)
    if array.ndim:
        return f"{array.dtype}{list(array.shape)}"
    return f"{array:.2g}" if array.dtype.kind == "f" else str(array)
