"""The quantised model of a case, and what becomes of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from dovetail.compiler import compile
from dovetail.runtime import run

from .cases import Case

__all__ = ["Outcome", "outcome_of", "quantised"]

Array = NDArray[Any]
NAMED: dict[str, Array] = {
    "l": np.array(-0.5, np.float32),
    "h": np.array(1.5, np.float32),
    "one": np.array([1]),
    "two": np.array([2]),
    "hw": np.array([2, 3]),
    "zeros": np.array([0, 0]),
    "ends": np.array([6, 5]),
    "steps": np.array([2, 2]),
    "most": np.array([99]),
    "sizes": np.array([3, 5]),
    "order": np.array([5, 0, 2, 7, 1, 6]),
    "groups": np.array([1, 2, 4, 6, 6]),
    "image": np.array([1, 8, 6, 6]),
    "rows": np.array([1, 8, 36]),
    "short": np.array([1, 8, 3, 6]),
    "earlier": np.array([0, 0, 4, 0, 0, 0]),
    "line": np.array([1, 1, 8]),
    "scales": np.array([1, 8, 1, 1]),
    "full": np.array([1, 8, 6, 6]),
    "repeats": np.array([1, 1, 1, 2]),
    "borders": np.array([0, 0, 1, 2, 0, 0, 2, 1]),
    "wider": np.array([0, 3, 1, 0, 0, 5, 0, 1]),
    "twice": np.array([1, 1, 2, 2], np.float32),
    "half": np.array([1, 1, 1.5, 1.5], np.float32),
}
"""Constants that shapes, windows and limits of the cases are made of."""

SHAPE = (1, 8, 6, 6)
"""Shape of the input."""

WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "Sub", "Mul", "Div")
"""Operators whose float constants are quantised, as ONNX Runtime's quantiser does."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a case runs, and how far its bytes are from ONNX Runtime's.

    reasons: of its nodes that run on the CPU, without their names.  off: the largest distance of
    an output, in steps of its scale.
    """

    reasons: tuple[str, ...]
    off: int


def outcome_of(case: Case, target: str) -> Outcome:
    """Compile the case for ``target``, run it, and compare."""
    model, step = quantised(case)
    module = compile(model, target)
    rng = np.random.default_rng(7)
    inputs = {"x": rng.standard_normal(SHAPE).astype(np.float32)}
    found = next(iter(run(module, inputs).outputs.values()))
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (wanted,) = session.run(None, inputs)
    own = [each for each in module.placement if each.node.startswith("case")]
    reasons = dict.fromkeys(each.reason for each in own if each.where == "cpu")
    off = np.abs(found.astype(np.float64) - wanted).max(initial=0.0) / step
    return Outcome(tuple(reasons), round(off))


def quantised(case: Case) -> tuple[onnx.ModelProto, float]:
    """The model in QDQ form, every tensor of it in int8; and the step of its output."""
    model = _float_model(case)
    session = onnxruntime.InferenceSession(
        _with_all_outputs(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    rng = np.random.default_rng(3)
    sample = {"x": rng.standard_normal(SHAPE).astype(np.float32)}
    names = [each.name for each in session.get_outputs()]
    values = dict(zip(names, session.run(None, sample), strict=True)) | sample
    return _in_qdq_form(model, values)


def _float_model(case: Case) -> onnx.ModelProto:
    shape = ", ".join(map(str, SHAPE))
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 20]> case (float[{shape}] x) => (b) '
        f"{{ a = Conv (x, c8x8x1x1) {case.body} }}"
    )
    used = {name for node in model.graph.node for name in node.input}
    rng = np.random.default_rng(1)
    for name in sorted(used):
        if name in NAMED:
            model.graph.initializer.append(numpy_helper.from_array(NAMED[name], name))
        elif re.fullmatch(r"[cp]\d+(x\d+)*", name):
            made = rng.uniform(-1, 1, [int(each) for each in name[1:].split("x")])
            made = np.abs(made) + 0.1 if name[0] == "p" else made
            made = made.astype(np.float32)
            model.graph.initializer.append(numpy_helper.from_array(made, name))
    for number, node in enumerate(model.graph.node):
        node.name = f"case{number}" if number else "before"
    inferred = onnx.shape_inference.infer_shapes(model)
    kinds = {each.name: each.type.tensor_type for each in inferred.graph.value_info}
    kinds |= {each.name: each.type.tensor_type for each in inferred.graph.output}
    sizes = [each.dim_value for each in kinds["b"].shape.dim]
    if len(sizes) == 4 and kinds["b"].elem_type == onnx.TensorProto.FLOAT:
        weights = rng.uniform(-1, 1, (4, sizes[1], 1, 1)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weights, "after"))
        model.graph.node.append(helper.make_node("Conv", ["b", "after"], ["y"], "after"))
    else:
        model.graph.node.append(helper.make_node("Identity", ["b"], ["y"], "after"))
    del model.graph.output[:]
    kind = kinds["b"].elem_type
    model.graph.output.append(helper.make_tensor_value_info("y", kind, None))
    return model


def _with_all_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.output[:]
    for node in whole.graph.node:
        whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output)
    return whole


def _in_qdq_form(
    model: onnx.ModelProto, values: Mapping[str, Array]
) -> tuple[onnx.ModelProto, float]:
    constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    made: list[onnx.TensorProto] = list(model.graph.initializer)
    step = 1.0

    def add(name: str, value: float, kind: type) -> str:
        made.append(numpy_helper.from_array(np.array(value, kind), name))
        return name

    def pair(name: str, result: str) -> None:
        """Quantise a tensor, and dequantise it as ``result``."""
        nonlocal step
        low, high = min(0.0, values[name].min()), max(0.0, values[name].max())
        step = float((high - low) / 255) or 1.0
        zero_point = int(np.clip(round(-128 - low / step), -128, 127))
        names = (add(f"{name}/s", step, np.float32), add(f"{name}/z", zero_point, np.int8))
        nodes.append(helper.make_node("QuantizeLinear", [f"{name}/f", *names], [f"{name}/q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}/q", *names], [result]))

    def weights(name: str) -> str:
        """The dequantised form of a constant."""
        scale = float(np.abs(constants[name]).max() / 127)
        stored = np.round(constants[name] / scale).astype(np.int8)
        made.append(numpy_helper.from_array(stored, f"{name}/q"))
        names = (add(f"{name}/s", scale, np.float32), add(f"{name}/z", 0, np.int8))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}/q", *names], [f"{name}/d"]))
        return f"{name}/d"

    nodes.append(helper.make_node("Identity", ["x"], ["x/f"]))
    pair("x", "x/d")
    for node in model.graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for place, name in enumerate(node.input):
            if name in constants and node.op_type in WEIGHTED:
                copy.input[place] = weights(name)
            elif name in values and _is_float(values[name]):
                copy.input[place] = f"{name}/d"
        nodes.append(copy)
        for place, name in enumerate(node.output):
            if _is_float(values[name]):
                copy.output[place] = f"{name}/f"
                pair(name, "y" if name == "y" else f"{name}/d")
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "case",
        model.graph.input,
        model.graph.output,
        [each for each in made if each.name in used],
    )
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=9), step


def _is_float(array: Array) -> bool:
    return array.dtype == np.float32
