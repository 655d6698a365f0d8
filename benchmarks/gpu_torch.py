"""ONNX models as functions of PyTorch, for ``torch.compile``: operators of ``gpu.py``'s networks.

Needs torch and onnx alone.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import onnx
import torch
from onnx import helper, numpy_helper
from torch.nn import functional

__all__ = ["as_function"]

Attributes = Mapping[str, Any]
KINDS = {onnx.TensorProto.FLOAT16: torch.float16, onnx.TensorProto.INT64: torch.int64}


def _convolved(given: Attributes, x: Any, weight: Any, bias: Any = None) -> Any:
    pads = given.get("pads", (0, 0, 0, 0))
    assert tuple(pads[:2]) == tuple(pads[2:]), "different borders at both ends"
    more = {"stride": given.get("strides", 1), "dilation": given.get("dilations", 1)}
    return functional.conv2d(
        x, weight, bias, padding=pads[:2], groups=given.get("group", 1), **more
    )


def _largest(given: Attributes, x: Any) -> Any:
    pads = given.get("pads", (0, 0, 0, 0))
    return functional.max_pool2d(x, given["kernel_shape"], given.get("strides", 1), pads[:2])


def _dense(given: Attributes, x: Any, weight: Any, bias: Any) -> Any:
    return functional.linear(x, weight if given.get("transB") else weight.mT, bias)


def _normalized(given: Attributes, x: Any, scale: Any, bias: Any = None) -> Any:
    return functional.layer_norm(x, x.shape[-1:], scale, bias, given.get("epsilon", 1e-5))


def _shaped(given: Attributes, x: Any, shape: Sequence[int]) -> Any:
    return x.reshape(shape)


def _widened(given: Attributes, x: Any, axes: Sequence[int]) -> Any:
    for axis in axes:
        x = x.unsqueeze(axis)
    return x


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "Add": lambda given, a, b: a + b,
    "Cast": lambda given, x: x.to(given["to"]),
    "Conv": _convolved,
    "Div": lambda given, a, b: a / b,
    "Erf": lambda given, x: torch.erf(x),
    "Flatten": lambda given, x: torch.flatten(x, given.get("axis", 1)),
    "Gather": lambda given, table, rows: table[rows],
    "Gemm": _dense,
    "GlobalAveragePool": lambda given, x: x.mean((2, 3), keepdim=True),
    "Identity": lambda given, x: x,
    "LayerNormalization": _normalized,
    "MatMul": lambda given, a, b: a @ b,
    "MaxPool": _largest,
    "Mul": lambda given, a, b: a * b,
    "Relu": lambda given, x: functional.relu(x),
    "Softmax": lambda given, x: functional.softmax(x, given.get("axis", -1)),
    "Sub": lambda given, a, b: a - b,
    "Transpose": lambda given, x: x.permute(given["perm"]),
}
"""The function of each operator, from its attributes and operands."""
BY_NUMBERS: Mapping[str, Callable[..., Any]] = {"Reshape": _shaped, "Unsqueeze": _widened}
"""Operators whose second operand is a list of numbers, known when they are traced."""


def as_function(model: onnx.ModelProto, device: str, kind: Any) -> Callable[..., list[Any]]:
    """The model's outputs from its inputs, in the model's order, with floats of ``kind``.

    Raises KeyError, with its name, for an operator that is not in the tables.
    """
    arrays = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    values = {name: torch.from_numpy(array.copy()).to(device) for name, array in arrays.items()}
    values = {n: x.to(kind) if x.is_floating_point() else x for n, x in values.items()}
    given = [each.name for each in model.graph.input if each.name not in values]
    steps: list[tuple[Callable[..., Any], list[str], list[int] | None, str]] = []
    for node in model.graph.node:
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        if node.op_type == "Cast":
            single = attributes["to"] == onnx.TensorProto.FLOAT
            attributes = {"to": kind if single else KINDS[attributes["to"]]}
        names, numbers = [name for name in node.input if name], None
        if node.op_type in BY_NUMBERS:
            numbers = [int(each) for each in arrays[names.pop()]]
            compute = BY_NUMBERS[node.op_type]
        else:
            compute = OPERATORS[node.op_type]
        steps.append((partial(compute, attributes), names, numbers, node.output[0]))
    outputs = [each.name for each in model.graph.output]

    def run(*inputs: Any) -> list[Any]:
        found = dict(values, **dict(zip(given, inputs, strict=True)))
        for compute, names, numbers, result in steps:
            operands = [found[name] for name in names]
            found[result] = compute(*operands) if numbers is None else compute(*operands, numbers)
        return [found[name] for name in outputs]

    return run
