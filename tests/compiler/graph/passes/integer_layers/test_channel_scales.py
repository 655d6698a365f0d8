"""Activations with a scale for each channel, as NNCF writes them before depthwise convolutions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Lookup

from .models import F32, ModelBuilder, integer_graph

CHANNELS = 6
SAMPLE = np.random.default_rng(5).integers(-128, 128, (1, 3, 9, 7)).astype(np.int8)


def plain(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> Sequence[Any]:
    """ONNX Runtime's results without optimisations, one of which fails on lists of scales."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    results: Sequence[Any] = session.run(None, dict(inputs))
    return results


def network(zeros: Any, groups: int = CHANNELS, most: int = 0) -> onnx.ModelProto:
    """A convolution, clipped, and quantised by channels; and a convolution of ``groups`` that reads
    it.
    """
    rng, b = np.random.default_rng(len(np.unique(zeros)) + groups), ModelBuilder()
    weights = rng.integers(-127, 128, (CHANNELS, 3, 3, 3)).astype(np.int8)
    w = b.dequantize(b.constant(weights), F32(0.004), np.int8(0))
    y = b.node("Conv", [b.dequantize("x", 0.03, np.int8(4)), w], pads=[1, 1, 1, 1])
    y = b.node("Clip", [y, b.constant(F32(0)), b.constant(F32(6))])
    scales = (rng.uniform(0.1, 1, CHANNELS) * 6 / 255).astype(F32)
    given = b.constant(scales), b.constant(zeros)
    y = b.node("QuantizeLinear", [y, *given], axis=1)
    if most:
        y = b.node("Clip", [y, "", b.constant(zeros.dtype.type(most))])
    y = b.node("DequantizeLinear", [y, *given], axis=1)
    weights = rng.integers(-127, 128, (2 * CHANNELS, CHANNELS // groups, 3, 3)).astype(np.int8)
    factors = rng.uniform(0.002, 0.01, 2 * CHANNELS).astype(F32)
    w = b.dequantize(b.constant(weights), factors, np.zeros(2 * CHANNELS, np.int8), axis=0)
    y = b.node("Conv", [y, w], group=groups, pads=[1, 1, 1, 1])
    return b.build({"x": ("int8", SAMPLE.shape)}, b.quantize(y, 0.15, np.int8(-20)))


@pytest.mark.parametrize(
    ("zeros", "tables"),
    [
        (np.zeros(CHANNELS, np.uint8), 0),
        (np.full(CHANNELS, -128, np.int8), 0),
        (np.array([-128, -128, 0, -128, -100, -128], np.int8), 1),
    ],
)
def test_a_scale_for_each_channel_before_a_depthwise_convolution(
    zeros: Any,
    tables: int,
) -> None:
    model = network(zeros)
    graph = integer_graph(model)
    kinds = [type(node.operator) for node in graph.nodes]
    assert kinds.count(Conv2d) == 2
    assert kinds.count(Lookup) == tables
    (expected,) = plain(model, {"x": SAMPLE})
    np.testing.assert_array_equal(run(graph, {"x": SAMPLE})[graph.outputs[0]], expected)


@pytest.mark.parametrize(
    "zeros", [np.zeros(CHANNELS, np.uint8), np.arange(-128, -122).astype(np.int8)]
)
def test_bytes_of_fewer_bits_by_channels(zeros: Any) -> None:
    model = network(zeros, most=60)
    graph, (expected,) = integer_graph(model), plain(model, {"x": SAMPLE})
    np.testing.assert_array_equal(run(graph, {"x": SAMPLE})[graph.outputs[0]], expected)


def test_scales_along_another_dimension_are_refused() -> None:
    rng, b = np.random.default_rng(3), ModelBuilder()
    given = b.constant(rng.uniform(0.01, 0.1, 6).astype(F32)), b.constant(np.zeros(6, np.int8))
    y = b.node("DequantizeLinear", ["x", *given], axis=2)
    weights = rng.integers(-127, 128, (6, 1, 3, 3)).astype(np.int8)
    w = b.dequantize(b.constant(weights), F32(0.01), np.int8(0))
    y = b.quantize(b.node("Conv", [y, w], group=6), 0.1, np.int8(0))
    with pytest.raises(UnsupportedOperatorError, match="an activation with 6 scales"):
        integer_graph(b.build({"x": ("int8", (1, 6, 6, 5))}, y))


def test_other_readers_of_scales_by_channels_stay_in_floats() -> None:
    model = network(np.zeros(CHANNELS, np.uint8), groups=1)
    with pytest.raises(UnsupportedOperatorError, match="6 scales, in 1 groups; required a group"):
        integer_graph(model)


def test_zero_points_that_no_single_one_stands_for_are_refused() -> None:
    model = network(np.array([0, 0, 0, 100, -128, -128], np.int8))
    with pytest.raises(UnsupportedOperatorError, match="zero points from -128 to 100 by channels"):
        integer_graph(model)
