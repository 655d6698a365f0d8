"""Functions of one or two numbers at the ends of their types, as constants are folded and in
machine code, against ONNX Runtime."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper

from dovetail.compiler import compile
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.operators.functions import BinaryFunction, evaluate_binary
from dovetail.runtime import run

Array = NDArray[Any]
UNARY = ("Abs", "Neg", "Sign", "BitwiseNot", "Floor", "Ceil", "Round", "Sqrt", "Reciprocal")
BINARY = (
    *("Add", "Sub", "Mul", "Div", "Min", "Max", "Mod", "Pow", "BitShift"),
    *("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"),
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor"),
)
OPTIONS: Mapping[str, Sequence[dict[str, Any]]] = {
    "Mod": [{"fmod": 0}, {"fmod": 1}],
    "BitShift": [{"direction": "LEFT"}, {"direction": "RIGHT"}],
}


def pairs(kind: str, dtype: np.dtype[Any]) -> list[Array]:
    """Operands: all pairs of rare values whose results C++ defines, as ONNX Runtime's are its."""
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        ends = [limits.max, limits.tiny, np.inf, -np.inf, np.nan]
        some: list[Any] = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, *ends]
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        some = [low, low + 1, high, *(n for n in (-3, -1, 0, 1, 2, 7) if n >= low)]
    found = [(a, b) for a in some for b in some]
    if dtype.kind == "i" and kind in ("Abs", "Neg"):
        found = [(a, b) for a, b in found if a != low]
    if dtype.kind in "iu" and kind in ("Div", "Mod"):
        found = [(a, b) for a, b in found if b and (a != low or b != -1)]
    if dtype.kind in "iu" and kind == "Pow":  # by doubles, there
        found = [(a, b) for a, b in found if abs(a) <= 2 and b <= 7 and (a or b >= 0)]
    if dtype.itemsize == 8 and kind in ("Mod", "Pow"):
        found = [(a, b) for a, b in found if max(abs(a), abs(b)) <= 1 << 53]
    if kind == "BitShift":
        found = [(a, b) for a, b in found if b < 8 * dtype.itemsize]
    a, b = zip(*found, strict=True)
    return [np.array(a, dtype), *([] if kind in UNARY else [np.array(b, dtype)])]


def model(
    nodes: Sequence[onnx.NodeProto], given: Mapping[str, Array], opset: int = 18
) -> onnx.ModelProto:
    """A model of these nodes; what each gives is an output."""
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in given.items()
    ]
    outputs = [onnx.ValueInfoProto(name=node.output[0]) for node in nodes]
    graph = helper.make_graph(nodes, "rare", inputs, outputs)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(made)


def known(dtype: np.dtype[Any]) -> Iterator[tuple[onnx.NodeProto, dict[str, Array]]]:
    """The nodes that ONNX Runtime has for a type, and their inputs."""
    for kind in (*UNARY, *BINARY):
        if kind == "Sign" and dtype == np.float16:  # there NaN has the sign 0, in float32 NaN
            continue
        for options in OPTIONS.get(kind, [{}]):
            name = kind + "".join(map(str, options.values()))
            given = {f"{name}.{n}": each for n, each in enumerate(pairs(kind, dtype))}
            node = helper.make_node(kind, list(given), [name], **options)
            try:
                session = onnxruntime.InferenceSession(model([node], given).SerializeToString())
                session.run(None, given)
            except Exception:
                continue
            yield node, given


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float16"]
)
def test_rare_values_give_what_onnx_runtime_gives(dtype: str) -> None:
    nodes, given = [], dict[str, Array]()
    for node, operands in known(np.dtype(dtype)):
        nodes.append(node)
        given |= operands
    made = model(nodes, given)
    names = [node.output[0] for node in nodes]
    assert len(names) >= 15
    wanted = onnxruntime.InferenceSession(made.SerializeToString()).run(names, given)
    folded = interpret(open_model(made).to_graph().graph, given)
    computed = run(compile(made, "cpu"), given).outputs
    for name, want in zip(names, wanted, strict=True):
        for found in (folded[name], computed[name]):
            if name == "Pow" and found.dtype.kind == "f":
                room = 2 * np.finfo(found.dtype).eps
                np.testing.assert_allclose(found, want, room, err_msg=name)
            else:
                np.testing.assert_array_equal(found, want, err_msg=name)


def test_activations_of_float16_are_those_of_float32_rounded() -> None:
    large = [3, 8, 8.4, 9, 12, 17, 90, 300, 65504, np.inf]
    some = [0.0, 6e-8, 1e-4, 0.1, 0.5, 1, *large]
    x = np.array([*some, *(-each for each in some)], np.float16)
    kinds = ("Elu", "Gelu", "HardSigmoid", "Mish", "Selu", "Sigmoid", "Softplus", "Softsign")
    nodes = [helper.make_node(kind, ["x"], [kind]) for kind in (*kinds, "Tanh")]
    wide = {"x": x.astype(np.float32)}
    made = [model(nodes, given, 20) for given in ({"x": x}, wide)]
    names = [node.output[0] for node in nodes]
    wanted = onnxruntime.InferenceSession(made[1].SerializeToString()).run(names, wide)
    found = run(compile(made[0], "cpu"), {"x": x}).outputs
    limit = float(np.finfo(np.float16).max)
    for name, want in zip(names, wanted, strict=True):
        kept = np.abs(want) <= limit  # some of ONNX Runtime's are not a number at infinity
        np.testing.assert_allclose(found[name][kept], want[kept], 6e-3, 6e-4, err_msg=name)


def test_the_least_exponent_has_a_result() -> None:
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        b = np.array([np.iinfo(dtype).min] * 4, dtype)
        found = evaluate_binary(BinaryFunction.POW, np.array([2, 1, -1, -3], dtype), b)
        np.testing.assert_array_equal(found, [0, 1, 1, 0])
