"""Graphs and operators check themselves when they are made."""

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
import pytest

from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import Graph, Node
from dovetail.compiler.graph.operators.indexing import GatherNd
from dovetail.compiler.graph.operators.integer.conversions import Dequantize, Quantize, Shift128
from dovetail.compiler.graph.operators.integer.products import Conv2d, Dense
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Requantize, Softmax
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d, MaxPool2d, Pad
from dovetail.compiler.graph.operators.movement import Reshape, Transpose
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.types import TensorType

from .graphs import image_builder, kinds

IMAGE = TensorType((1, 6, 5, 8), "int8")
INDICES = TensorType((2, 1), "int64")
PLAIN = ((1, 1), (0, 0, 0, 0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Conv2d((0, 1), (0, 0, 0, 0), 1, 0), "strides of at least 1"),
        (lambda: Conv2d((1, 1), (-1, 0, 0, 0), 1, 0), "pads of at least 0"),
        (lambda: Conv2d(*PLAIN, 1, 200), r"a zero point in -128..127"),
        (lambda: Dense(-129), r"a zero point in -128..127"),
        (lambda: Requantize(0, 5, 4), "-128 <= low <= high <= 127"),
        (lambda: Add(0.0, 1.0, 0, 0, 0, -128, 127), "finite ratios above 0"),
        (lambda: MaxPool2d((0, 1), *PLAIN), "a kernel of at least 1x1"),
        (lambda: AveragePool2d((2, 2), (1, 1), 0, 0, float("inf")), "a finite scale above 0"),
        (lambda: Pad((0, 0, 0, 0), 128), r"a value in -128..127"),
        (lambda: Transpose((0, 2)), "a permutation"),
        (lambda: Softmax(-1.0, 0, 1.0, 0), "finite scales above 0"),
        (lambda: Quantize(0.0, 0), "a finite scale above 0"),
        (lambda: Dequantize(1.0, 300), r"a zero point in -128..127"),
        (lambda: Shift128("int4"), "int8 or uint8"),
        (lambda: TensorType((1, -1), "int8"), "required dimensions of at least 0"),
        (lambda: TensorType((1 << 31, 1 << 31), "int8"), r"at most 2\*\*40 elements"),
        (lambda: GatherNd(-1).result((INDICES, INDICES)), "found -1 batch dimensions"),
        (lambda: TensorType((1,), "complex64"), "element type complex64; required one of bool"),
    ],
)
def test_attributes_out_of_range_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        make()


def int8(*shape: int) -> TensorType:
    return TensorType(shape, "int8")


def int32(*shape: int) -> TensorType:
    return TensorType(shape, "int32")


@pytest.mark.parametrize(
    ("operator", "inputs", "result"),
    [
        (
            Conv2d((2, 1), (1, 0, 0, 2), 1, 0),
            (IMAGE, int8(4, 3, 3, 8), int32(4)),
            "int32[1, 3, 5, 4]",
        ),
        (Conv2d(*PLAIN, 8, 0), (IMAGE, int8(8, 3, 3, 1), int32(8)), "int32[1, 4, 3, 8]"),
        (Dense(0), (int8(1, 7), int8(3, 7), int32(3)), "int32[1, 3]"),
        (Requantize(0, -128, 127), (int32(1, 3), TensorType((3,), "float32")), "int8[1, 3]"),
        (Add(1.0, 1.0, 0, 0, 0, -128, 127), (IMAGE, IMAGE), "int8[1, 6, 5, 8]"),
        (MaxPool2d((2, 2), (2, 2), (0, 0, 0, 1)), (IMAGE,), "int8[1, 3, 3, 8]"),
        (AveragePool2d((6, 5), (1, 1), 0, 0, 0.1), (IMAGE,), "int8[1, 1, 1, 8]"),
        (Lookup(), (IMAGE, int8(256)), "int8[1, 6, 5, 8]"),
        (Pad((1, 2, 3, 4), 0), (IMAGE,), "int8[1, 10, 11, 8]"),
        (Reshape((1, 240)), (IMAGE,), "int8[1, 240]"),
        (Transpose((0, 3, 1, 2)), (IMAGE,), "int8[1, 8, 6, 5]"),
        (Quantize(0.1, 0), (TensorType((1, 2), "float32"),), "int8[1, 2]"),
        (Dequantize(0.1, 0), (int8(1, 2),), "float32[1, 2]"),
        (Shift128("uint8"), (int8(1, 2),), "uint8[1, 2]"),
    ],
)
def test_the_result_has_the_type_of_the_rule(
    operator: TensorOperator, inputs: tuple[TensorType, ...], result: str
) -> None:
    assert [str(each) for each in operator.result(inputs)] == [result]


@pytest.mark.parametrize(
    ("operator", "inputs", "message"),
    [
        (Conv2d(*PLAIN, 1, 0), (IMAGE, int8(4, 3, 3, 8)), "Conv2d: found 2 inputs, required 3"),
        (Conv2d(*PLAIN, 1, 0), (IMAGE, int8(4, 3, 3, 7), int32(4)), "required C = 8"),
        (Conv2d(*PLAIN, 1, 0), (IMAGE, int8(4, 3, 3, 8), int32(5)), r"required int32\[4\]"),
        (Conv2d(*PLAIN, 2, 0), (IMAGE, int8(3, 3, 3, 4), int32(3)), "for each of 2 groups"),
        (Conv2d(*PLAIN, 1, 0), (IMAGE, int8(4, 7, 3, 8), int32(4)), "7x3 window does not fit 6x5"),
        (
            Conv2d(*PLAIN, 1, 0),
            (int8(2, 6, 5, 8), int8(4, 3, 3, 8), int32(4)),
            r"int8\[1, H, W, C\]",
        ),
        (Dense(0), (int8(1, 7), int8(3, 6), int32(3)), "required K = 7"),
        (Requantize(0, 0, 1), (int8(1, 3), TensorType((3,), "float32")), r"required int32\["),
        (Requantize(0, 0, 1), (int32(1, 3), TensorType((2,), "float32")), r"required float32\[3\]"),
        (Add(1.0, 1.0, 0, 0, 0, 0, 1), (IMAGE, int8(1, 6, 5, 4)), r"required int8\[1, 6, 5, 8\]"),
        (Lookup(), (IMAGE, int8(255)), r"required int8\[256\]"),
        (Reshape((7,)), (IMAGE,), "required 7 elements"),
        (Transpose((0, 1)), (IMAGE,), "required 2 dimensions"),
        (Quantize(0.1, 0), (IMAGE,), "required float32"),
        (Shift128("int8"), (IMAGE,), "required uint8"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    operator: TensorOperator, inputs: tuple[TensorType, ...], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        operator.result(inputs)


def graph_of(*nodes: Node, outputs: tuple[str, ...] = ("y",)) -> Graph:
    types = {name: TensorType((2,), "int8") for name in ("x", "y", "z")}
    return Graph(("x",), outputs, nodes, MappingProxyType({}), MappingProxyType(types))


COPY = Reshape((2,))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ((Node(COPY, ("z",), "y", "n"),), "node 'n' reads 'z' before it is defined"),
        ((Node(COPY, ("x",), "x", "n"),), "node 'n' defines 'x' a second time"),
        ((Node(COPY, ("x",), "z", "n"),), "output 'y' is not defined"),
        (
            (Node(Reshape((1, 2)), ("x",), "y", "n"),),
            r"'y' is int8\[2\]; its operator gives int8\[1, 2\]",
        ),
    ],
)
def test_a_graph_that_is_not_single_assignment_is_refused(
    nodes: tuple[Node, ...], message: str
) -> None:
    assert graph_of(Node(COPY, ("x",), "y", "n")).outputs == ("y",)
    with pytest.raises(GraphError, match=message):
        graph_of(*nodes)


def test_a_constant_of_another_type_is_refused() -> None:
    types = {"c": TensorType((2,), "int8")}
    with pytest.raises(GraphError, match=r"constant 'c' is int8\[3\]; its type is int8\[2\]"):
        Graph((), ("c",), (), {"c": np.zeros(3, np.int8)}, types)


def test_a_tensor_without_a_type_is_refused() -> None:
    with pytest.raises(GraphError, match="'c' has no type"):
        Graph((), ("c",), (), {"c": np.zeros(3, np.int8)}, {})


def test_constants_are_copied_and_read_only() -> None:
    builder, array = image_builder(), np.zeros(3, np.int8)
    name = builder.constant("c", array)
    array[0] = 1
    assert builder.constants[name][0] == 0
    with pytest.raises(ValueError, match="read-only"):
        builder.constants[name][0] = 1


def test_exporting_moves_other_tensors_out_of_the_way() -> None:
    builder = image_builder((1, 4))
    first = builder.node(Reshape((4, 1)), ("x",), "y", "n")
    second = builder.node(Reshape((1, 4)), (first,), "z", "n")
    builder.export([second, second, first], ["y", "again", "z"])
    graph = builder.build(("y", "again", "z"))
    assert kinds(graph) == ["Reshape"] * 3
    assert [graph.types[name].shape for name in graph.outputs] == [(1, 4), (1, 4), (4, 1)]
    with pytest.raises(GraphError, match="output 'x' is an input too; required another name"):
        builder.export(["y"], ["x"])


def test_a_tensor_that_has_an_outputs_name_gets_another() -> None:
    builder = image_builder((1, 4))
    first = builder.node(Reshape((4, 1)), ("x",), "y", "n")
    second = builder.node(Reshape((1, 4)), (first,), "z", "n")
    builder.export([second], ["y"])
    graph = builder.build(("y",))
    assert [node.output for node in graph.nodes] == ["y.1", "y"]
    assert graph.nodes[1].inputs == ("y.1",)
    assert {name: kind.shape for name, kind in graph.types.items()} == {
        "x": (1, 4), "y.1": (4, 1), "y": (1, 4),
    }  # fmt: skip
