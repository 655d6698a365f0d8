"""ONNX Runtime with exact integer sums, on CPUs that have no instruction for them too.

A session has one thread: as many tests run at a time as there are cores, and threads of one session
that wait for each other keep a core busy.

Its products of uint8 and int8 on x86 without VNNI add pairs in 16 bits, which saturate.  Those of
uint8 and uint8 do not.  So there int8 weights become uint8, 128 larger as their zero points are.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

__all__ = ["exact_peer"]

INT32, UINT8 = onnx.TensorProto.INT32, onnx.TensorProto.UINT8
PRECISE = "session.x64quantprecision"
SESSION = onnxruntime.InferenceSession
PLACES: Mapping[str, tuple[int, int, int]] = {
    "ConvInteger": (2, 1, 3),
    "MatMulInteger": (2, 1, 3),
    "QGemm": (2, 3, 5),
    "QLinearConv": (2, 3, 5),
    "QLinearMatMul": (2, 3, 5),
}
"""Inputs of operators: the first operand's zero point, the weights, and their zero point."""


@contextmanager
def exact_peer() -> Iterator[None]:
    """Inside, sessions have exact sums, and one thread unless a test asks for others."""
    kind = _exact_session if _saturates() else SESSION

    def session(
        model: object, options: Any = None, *others: object, **named: Any
    ) -> onnxruntime.InferenceSession:
        options = options or named.pop("sess_options", None) or onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.intra_op_num_threads or 1
        return kind(model, options, *others, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnxruntime, "InferenceSession", session)
        yield


@cache
def _saturates() -> bool:
    """True if two products of 255 and 127 do not give their sum."""
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    x = helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, [1, 4])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [1, 16])
    w = numpy_helper.from_array(np.full((4, 16), 127, np.int8), "w")
    graph = helper.make_graph([node], "sum", [x], [y], [w])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (found,) = SESSION(model.SerializeToString()).run(None, {"x": np.full((1, 4), 255, np.uint8)})
    return bool((found != 4 * 255 * 127).any())


def _exact_session(
    model: object, options: Any, *others: object, **named: Any
) -> onnxruntime.InferenceSession:
    given = _exact(model) if isinstance(model, bytes) else model
    if _is_set(options, PRECISE):
        return SESSION(given, options, *others, **named)
    try:
        # Weights become uint8 where operators get their integers from QuantizeLinear, too.
        options.add_session_config_entry(PRECISE, "1")
        return SESSION(given, options, *others, **named)
    except Exception:  # It has several; it has no operators of int8 then, where those are allowed.
        options.add_session_config_entry(PRECISE, "0")
        return SESSION(given, options, *others, **named)


def _is_set(options: Any, name: str) -> bool:
    try:
        return bool(options.get_session_config_entry(name))
    except RuntimeError:
        return False


def _exact(content: bytes) -> bytes:
    """The model with weights of uint8 where its operators take integers, and a first operand of
    uint8.

    Constants are dequantised, and their zero points read, once each: ONNX Runtime fails where it
    makes uint8 of the same one twice.
    """
    model = onnx.load_from_string(content)
    graph, nodes, read = model.graph, list[onnx.NodeProto](), set[str]()
    known = {each.name: each for each in graph.initializer}
    inputs = {each.name: each.type.tensor_type.elem_type for each in graph.input}
    for number, node in enumerate(graph.node):
        if node.op_type == "DequantizeLinear" and node.input[0] in known:
            for place in (0, 2)[: len(node.input) - 1]:
                if (name := node.input[place]) in read:
                    node.input[place] = f"exact_{number}_own_{place}"
                    graph.initializer.add().CopyFrom(known[name])
                    graph.initializer[-1].name = node.input[place]
                elif name in known:
                    read.add(name)
        first, weights, zeros = PLACES.get(node.op_type, (0, 0, 0))
        kinds = [_kind(known, inputs, node, place) for place in (first, weights)]
        if weights and kinds[1] == np.int8 and kinds[0] in (None, np.uint8):
            node.input.extend([""] * (zeros + 1 - len(node.input)))
            if not node.input[zeros]:
                node.input[zeros] = f"exact_{number}_zero"
                scale = known.get(node.input[zeros - 1]) if node.op_type[0] == "Q" else None
                none = np.zeros(() if scale is None else tuple(scale.dims), np.int8)
                graph.initializer.append(numpy_helper.from_array(none, node.input[zeros]))
            for place in (weights, zeros):
                stem = f"exact_{number}_{place}"
                nodes += [
                    helper.make_node("Cast", [node.input[place]], [f"{stem}_wide"], to=INT32),
                    helper.make_node("Add", [f"{stem}_wide", "exact_128"], [f"{stem}_sum"]),
                    helper.make_node("Cast", [f"{stem}_sum"], [stem], to=UINT8),
                ]
                node.input[place] = stem
        nodes.append(node)
    if len(nodes) > len(graph.node):
        graph.initializer.append(numpy_helper.from_array(np.array(128, np.int32), "exact_128"))
        del graph.node[:]
        graph.node.extend(nodes)
    return model.SerializeToString()


def _kind(
    known: Mapping[str, onnx.TensorProto],
    inputs: Mapping[str, int],
    node: onnx.NodeProto,
    place: int,
) -> np.dtype[Any] | None:
    """The type of a constant or an input of the graph; None for another one."""
    name = node.input[place] if place < len(node.input) else ""
    kind = known[name].data_type if name in known else inputs.get(name)
    return None if kind is None else helper.tensor_dtype_to_np_dtype(kind)
