"""Softmax in integers: where it is recognised, and how far it is from ONNX Runtime's."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.ir import Graph, GraphBuilder, Node
from dovetail.compiler.graph.operators.integer.products import RowProducts
from dovetail.compiler.graph.operators.integer.softmax import MOST_ROW, RowSoftmax
from dovetail.compiler.graph.operators.integer.values import Softmax
from dovetail.compiler.graph.operators.movement import Reshape
from dovetail.compiler.graph.passes.integer_layers.row_softmax import softmax_in_integers
from dovetail.compiler.graph.types import TensorType

from .models import F32, Array, ModelBuilder, integer_graph, reference


def _rows(length: int, spread: float, count: int = 400) -> Array:
    rng = np.random.default_rng(length)
    values = np.rint(rng.normal(0, spread, (1, count, length)))
    found: Array = np.clip(values, -128, 127).astype(np.int8)
    return found


@pytest.mark.parametrize("length", [17, 128, 197])
@pytest.mark.parametrize("scale", [1 / 256, 1 / 255])
def test_few_bytes_are_one_step_from_onnx_runtimes(length: int, scale: float) -> None:
    for x_scale in (0.005, 0.05, 0.3):
        wrong = bytes_ = 0
        for spread in (5, 20, 60):
            x = _rows(length, spread)
            b = ModelBuilder()
            soft = b.node("Softmax", [b.dequantize("x", x_scale, np.int8(3))], axis=-1)
            y = b.quantize(soft, scale, np.int8(-128))
            wanted = reference(b.build({"x": ("int8", x.shape)}, y), {"x": x}).astype(int)
            operator = RowSoftmax(float(F32(x_scale)), float(F32(scale)), -128)
            found = operator.evaluate([x])[0].astype(int)
            assert np.abs(found - wanted).max() <= 1
            wrong, bytes_ = wrong + np.count_nonzero(found != wanted), bytes_ + x.size
        assert wrong <= 0.001 * bytes_


def _graph(then_multiplied: bool) -> Graph:
    shape = (1, 1, 16, 16)
    inputs = {name: TensorType(shape, DType.INT8) for name in ("x", "y")}
    builder = GraphBuilder(list(inputs), [], {}, dict(inputs))
    soft = builder.node(Softmax(0.1, 0, 1 / 256, -128), ("x",), "soft", "soft")
    moved = builder.node(Reshape(shape), (soft,), "moved", "moved")
    if then_multiplied:
        moved = builder.node(RowProducts(-128, 0), (moved, "y"), "product", "product")
    return builder.build((moved,))


def test_softmax_is_in_integers_where_a_convolution_reads_it() -> None:
    """As in detectors, which take the mean of a distribution."""
    b, x = ModelBuilder(), "x"
    soft = b.node("Softmax", [b.dequantize(x, F32(0.1), np.int8(3))], axis=1)
    shown = b.dequantize(b.quantize(soft, F32(1 / 256), np.int8(-128)), F32(1 / 256), np.int8(-128))
    weights = b.constant(np.arange(16, dtype=np.int8).reshape(1, 16, 1, 1))
    mean = b.node("Conv", [shown, b.dequantize(weights, F32(1), np.int8(0))])
    graph = integer_graph(
        b.build({x: ("int8", (1, 16, 2, 3))}, b.quantize(mean, F32(0.1), np.int8(-128)))
    )
    assert RowSoftmax in _kinds(graph.nodes)


def _kinds(nodes: tuple[Node, ...]) -> set[type]:
    return {type(node.operator) for node in nodes} - {Reshape, RowProducts}


def test_softmax_is_in_integers_where_its_result_is_multiplied() -> None:
    assert _kinds(softmax_in_integers(_graph(True)).nodes) == {RowSoftmax}
    assert _kinds(softmax_in_integers(_graph(False)).nodes) == {Softmax}


def test_the_sum_of_the_longest_row_is_an_int32() -> None:
    x = np.zeros((1, MOST_ROW), np.int8)
    assert (RowSoftmax(0.1, 1.0, 0).evaluate([x])[0] == 0).all()
