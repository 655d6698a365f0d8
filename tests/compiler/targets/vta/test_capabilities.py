"""Nodes of a graph that the accelerator runs."""

import numpy as np

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Cast
from dovetail.compiler.graph.operators.integer.conversions import Dequantize, Quantize
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Add, Multiply, Requantize
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d
from dovetail.compiler.graph.operators.movement import (
    Concatenate,
    Iota,
    Reshape,
    Slice,
    Transpose,
)
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.accelerate import shaped_graph
from dovetail.compiler.targets.vta.capabilities import RUNS_ON_HOST, node_refusals

SUM = Add(1.0, 1.0, 0, 0, 0, -128, 127)


class _Drawing:
    """A graph from one float input, and names of its nodes."""

    def __init__(self, *shape: int) -> None:
        self.builder = GraphBuilder()
        self.x = self.builder.input("x", TensorType(shape, "float32"))

    def add(self, operator: object, *inputs: str) -> str:
        number = len(self.builder.nodes)
        return self.builder.node(operator, inputs, f"t{number}", f"n{number}")  # type: ignore[arg-type]

    def quantized(self) -> str:
        return self.add(Quantize(0.1, 0), self.x)

    def sums(self, x: str) -> str:
        channels = self.builder.types[x].shape[3]
        weights = self.builder.constant("w", np.ones((4, 1, 1, channels), np.int8))
        bias = self.builder.constant("b", np.zeros(4, np.int32))
        return self.add(Conv2d((1, 1), (0, 0, 0, 0), 1, 0), x, weights, bias)

    def requantized(self, sums: str) -> str:
        return self.add(Requantize(0, -128, 127), sums, self.scale)

    @property
    def scale(self) -> str:
        return self.builder.constant("s", np.ones(4, np.float32))

    def refused(self, *outputs: str, lanes: int = 1) -> dict[str, str]:
        """The reasons, by the name of the node's output."""
        graph: Graph = self.builder.build(outputs)
        return {
            graph.nodes[n].output: each.reason for n, each in node_refusals(graph, lanes).items()
        }


def test_layers_views_and_aliases_run_and_host_operators_are_told() -> None:
    graph = _Drawing(1, 2, 2, 4)
    x = graph.quantized()
    flat = graph.add(Reshape((1, 16)), graph.requantized(graph.sums(x)))
    part = graph.add(Slice((0, 0, 0, 0), (1, 1, 1, 1), (1, 2, 2, 2)), x)
    joined = graph.add(Concatenate(3), x, part)
    added = graph.add(SUM, joined, joined)
    turned = graph.add(Transpose((0, 3, 1, 2)), added)
    real = graph.add(Dequantize(0.1, 0), turned)
    same = graph.add(Reshape((1, 2, 6, 2)), real)
    expected = dict.fromkeys((x, flat, turned, real, same), RUNS_ON_HOST)
    assert graph.refused(flat, same) == expected


def test_a_flat_pixel_is_an_alias() -> None:
    graph = _Drawing(1, 1, 1, 4)
    x = graph.quantized()
    between = graph.add(Reshape((1, 4)), graph.sums(x))
    flat = graph.add(Reshape((1, 4)), x)
    assert graph.refused(graph.requantized(between), flat) == {x: RUNS_ON_HOST}


def test_a_sum_that_is_read_twice_is_refused() -> None:
    graph = _Drawing(1, 1, 1, 4)
    x = graph.quantized()
    sums = graph.sums(x)
    found = graph.refused(graph.requantized(sums), graph.requantized(sums))
    assert found == {
        x: RUNS_ON_HOST,
        sums: "node 'n1': its int32 result must be requantised, by one node",
    }


def test_sums_of_nothing_are_refused() -> None:
    graph = _Drawing(1, 1, 1, 4)
    given = graph.builder.input("sums", TensorType((1, 4), "int32"))
    y = graph.requantized(given)
    assert graph.refused(y) == {
        y: "node 'n0' requantises what no convolution or dense layer sums up"
    }


def test_a_node_that_reads_nothing_runs_elsewhere() -> None:
    """Indices of so many elements that they are no constant, as a large Hardmax has them."""
    graph = _Drawing(1, 2, 2, 4)
    y = graph.requantized(graph.sums(graph.quantized()))
    shape = (1, 512, 512, 4)
    bytes_ = graph.add(Iota(shape, 3, DType.INT8))
    numbers = graph.add(Iota(shape, 3))
    built = graph.builder.build((y, bytes_, numbers))
    assert shaped_graph(built, 4, 64).outputs == built.outputs
    refused = graph.refused(y, bytes_, numbers)
    kind = TensorType(shape, DType.INT8)
    assert refused[bytes_].endswith(f"the accelerator has no Iota that makes {kind} of nothing")
    assert refused[numbers].endswith("it computes in int64; required int8")


def test_a_constant_operand_of_a_product_is_refused_unless_it_is_a_whole_image() -> None:
    graph = _Drawing(1, 2, 2, 4)
    x, multiply = graph.quantized(), Multiply(0.01, 0, 0, 0, -128, 127)
    constant = graph.builder.constant("c", np.ones((1, 1, 1, 4), np.int8))
    whole = graph.builder.constant("whole", np.ones((1, 2, 2, 4), np.int8))
    y = graph.add(multiply, x, constant)
    assert graph.refused(y) == {
        x: RUNS_ON_HOST,
        y: f"node 'n1' reads {constant!r}, a constant; required what is computed",
    }
    for operator in (SUM, multiply):
        total = graph.add(operator, x, whole)
        assert total not in graph.refused(total)


def test_two_images_are_refused() -> None:
    graph = _Drawing(2, 1, 1, 4)
    x = graph.quantized()
    y = graph.add(SUM, x, x)
    assert graph.refused(y) == {
        x: RUNS_ON_HOST,
        y: "node 'n1': tensor 't0' is int8[2, 1, 1, 4]; required int8[1, H, W, C] or int8[1, C]: "
        "the accelerator runs one image at a time",
    }


def test_integers_that_are_wider_are_refused_by_their_type() -> None:
    graph = _Drawing(1, 1, 1, 4)
    x = graph.quantized()
    y = graph.add(Cast(DType.INT64), x)
    assert graph.refused(y)[y] == "node 'n1': it computes in int64; required int8"


def test_a_slice_of_rows_is_refused() -> None:
    graph = _Drawing(1, 2, 1, 4)
    x = graph.quantized()
    y = graph.add(Slice((0, 0, 0, 0), (1, 1, 1, 1), (1, 1, 1, 4)), x)
    assert graph.refused(y) == {
        x: RUNS_ON_HOST,
        y: "node 'n1': the accelerator has no Slice that makes int8[1, 1, 1, 4] of "
        "int8[1, 2, 1, 4]",
    }


def test_factors_of_other_channels_are_refused() -> None:
    graph = _Drawing(1, 4, 4, 4)
    x, multiply = graph.quantized(), Multiply(0.01, 0, 0, 0, -128, 127)
    top = graph.add(MaxPool2d((4, 4), (1, 1), (0, 0, 0, 0)), x)
    first = graph.add(Slice((0, 0, 0, 0), (1, 1, 1, 1), (1, 1, 1, 1)), top)
    scaled, wrong = graph.add(multiply, x, top), graph.add(multiply, x, first)
    refused = graph.refused(scaled, wrong)
    assert scaled not in refused
    assert "multiplies 4 channels by 1; required as many" in refused[wrong]


def test_products_whose_bytes_no_scale_gives_are_refused() -> None:
    """As found in a network: products of 273 are nearly half way between two results."""
    graph = _Drawing(1, 4, 4, 4)
    x, multiply = graph.quantized(), Multiply(0.0091575049, -21, -128, -128, -128, 127)
    y = graph.add(multiply, x, graph.add(MaxPool2d((1, 1), (1, 1), (0, 0, 0, 0)), x))
    assert "gives its bytes for 6 of 65,536 operand pairs" in graph.refused(y)[y]
