"""Operators with bodies: If, Loop and Scan."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .drawing import Drawing

__all__ = ["branched", "counted"]

INT64, F32 = np.int64, np.float32


def branched(d: Drawing, x: str) -> list[str]:
    """If, by a constant or by what is computed; both branches read the tensor outside."""
    kinds = d.random.sample(("Relu", "Neg", "Abs", "Sigmoid"), 2)
    branches = [_body([helper.make_node(kind, [x], ["y"])], [], ["y"]) for kind in kinds]
    if d.chance(0.4):
        truth = [d.constant(np.asarray(d.chance(0.5)))]
    else:
        total = d.node("ReduceMax", [x], keepdims=0)
        truth = d.node("Greater", [*total, d.constant(F32(d.rng.normal()))]) if total else []
    then, other = branches
    return d.node("If", truth, then_branch=then, else_branch=other) if truth else []


def counted(d: Drawing, x: str) -> list[str]:
    """Loop of a known or a data-dependent length, and Scan along rows."""
    turns = d.random.randint(0, 4)
    if d.chance(0.4) and len(d.shape(x)) > 1:
        body = _body(
            [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Tanh", ["c"], ["e"])],
            [("a", d.shape(x)[1:]), ("b", d.shape(x)[1:])],
            ["c", "e"],
        )
        start = d.constant(d.rng.normal(0, 1, d.shape(x)[1:]).astype(F32))
        ways = {"scan_input_directions": [d.random.choice((0, 1))]}
        found = d.node("Scan", [start, x], 2, body=body, num_scan_inputs=1, **ways)
        return found[1:]
    half = numpy_helper.from_array(F32(0.5), "half")
    limit = numpy_helper.from_array(F32(d.rng.uniform(0.5, 3)), "limit")
    nodes = [
        helper.make_node("Mul", ["a", "half"], ["c"]),
        helper.make_node("ReduceMax", ["c"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "limit"], ["go"]),
    ]
    body = _body(nodes, [("n", ()), ("was", ()), ("a", d.shape(x))], ["go", "c"])
    body.initializer.extend([half, limit])
    body.input[0].type.tensor_type.elem_type = TensorProto.INT64
    body.input[1].type.tensor_type.elem_type = TensorProto.BOOL
    body.output[0].type.tensor_type.elem_type = TensorProto.BOOL
    return d.node("Loop", [d.constant(np.int64(turns)), "", x], body=body)


def _body(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, Sequence[int]]],
    outputs: Sequence[str],
) -> onnx.GraphProto:
    """A body of float tensors."""
    info = helper.make_tensor_value_info
    return helper.make_graph(
        list(nodes),
        "body",
        [info(name, TensorProto.FLOAT, list(shape)) for name, shape in inputs],
        [info(name, TensorProto.FLOAT, None) for name in outputs],
    )
