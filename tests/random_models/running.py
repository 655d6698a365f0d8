"""ONNX Runtime: its results for a model, and the operators of bytes that it makes."""

from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as states

from tests.exact_peer import exact_peer

__all__ = ["IR_VERSION", "REFUSED", "Array", "compute", "fused", "info", "reads", "single"]

Array = NDArray[np.generic]

REFUSED = (states.Fail, states.InvalidArgument, states.InvalidGraph, states.NotImplemented,
    states.RuntimeException)  # fmt: skip
"""Errors of ONNX Runtime for a model that it does not run."""

LEVELS = onnxruntime.GraphOptimizationLevel

IR_VERSION = 10
"""The models' version of the format; ONNX Runtime takes every opset of ``draw`` with it."""


def reads(node: onnx.NodeProto) -> list[str]:
    """Tensors that a node reads, its bodies from the graph around them included, each once."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        body = attribute.g
        own = {each.name for each in (*body.input, *body.initializer)}
        own.update(name for inner in body.node for name in inner.output)
        names += [name for inner in body.node for name in reads(inner) if name not in own]
    return list(dict.fromkeys(names))


def single(node: onnx.NodeProto, given: dict[str, Array], opset: int) -> onnx.ModelProto:
    """A model of one node that reads inputs; integers, which are shapes often, as constants."""
    known = [name for name, array in given.items() if array.dtype != np.float32]
    graph = helper.make_graph(
        [node],
        "single",
        [info(name, array) for name, array in given.items() if name not in known],
        [onnx.ValueInfoProto(name=name) for name in node.output],
        [numpy_helper.from_array(given[name], name) for name in known],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSION
    )


def compute(
    model: onnx.ModelProto,
    given: dict[str, Array],
    *,
    optimised: bool = False,
    integers: bool = False,
) -> list[Array]:
    """ONNX Runtime's results."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        LEVELS.ORT_ENABLE_ALL if optimised else LEVELS.ORT_DISABLE_ALL
    )
    if integers:
        options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = _session(model, options)
    names = {each.name for each in session.get_inputs()}
    return session.run(None, {name: each for name, each in given.items() if name in names})


def fused(model: onnx.ModelProto) -> onnx.ModelProto:
    """With operators of bytes, as QLinearConv, where ONNX Runtime makes them of several."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS.ORT_ENABLE_EXTENDED
    with TemporaryDirectory() as folder:
        options.optimized_model_filepath = f"{folder}/model.onnx"
        _session(model, options)
        model = onnx.load(options.optimized_model_filepath)
    # It gives other tensors these names again where it is to run the model.
    given = {name: f"given{n}" for n, name in enumerate(_named(model)) if name.startswith("qdq_")}
    for node in model.graph.node:
        node.input[:] = [given.get(name, name) for name in node.input]
        node.output[:] = [given.get(name, name) for name in node.output]
    for each in model.graph.initializer:
        each.name = given.get(each.name, each.name)
    return model


def _named(model: onnx.ModelProto) -> list[str]:
    """Constants and what nodes make."""
    made = [name for node in model.graph.node for name in node.output]
    return [*(each.name for each in model.graph.initializer), *made]


def _session(
    model: onnx.ModelProto, options: onnxruntime.SessionOptions
) -> onnxruntime.InferenceSession:
    options.log_severity_level = 4
    with exact_peer():
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )


def info(name: str, array: Array) -> onnx.ValueInfoProto:
    """Name, element type and shape of an array."""
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
    )
