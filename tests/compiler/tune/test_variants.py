"""The kernels of a model under each way to compute its convolutions, and sums of their costs."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.tune.variants import DIRECT, Layers, layers_of


def model() -> SourceModel:
    """Two convolutions of 3x3 that are alike, and one of single pixels, which has no tiles."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "first", pads=[1] * 4),
        helper.make_node("Conv", ["a", "w"], ["b"], "second", pads=[1] * 4),
        helper.make_node("Conv", ["b", "v"], ["y"], "pixels"),
    ]
    weights = [
        numpy_helper.from_array(np.ones(shape, np.float32), name)
        for name, shape in (("w", (32, 32, 3, 3)), ("v", (8, 32, 1, 1)))
    ]
    x, y = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, channels, 12, 12])
        for name, channels in (("x", 32), ("y", 8))
    )
    graph = helper.make_graph(nodes, "m", [x], [y], weights)
    opsets = [helper.make_opsetid("", 17)]
    return SourceModel(helper.make_model(graph, opset_imports=opsets, ir_version=9))


def test_convolutions_that_are_alike_have_one_key_and_all_ways() -> None:
    layers = layers_of(model(), {}, True)
    (key,) = layers.default
    assert key.startswith("float32[1, 32, 12, 12] by [32, 32, 3, 3], strides [1, 1]")
    (ways,) = layers.choices.values()
    assert layers.default[key] in ways
    assert DIRECT in ways
    assert len(ways) >= 3
    assert all(counts.total() >= 2 for counts in ways.values())
    named = {name for counts in (layers.rest, *ways.values()) for name in counts}
    assert set(layers.kernels) == named


def test_without_tiles_all_kernels_are_there_whatever_is_chosen() -> None:
    layers = layers_of(model(), {}, False)
    assert (layers.choices, layers.default) == ({}, {})
    assert set(layers.kernels) == set(layers.rest)
    assert layers.constant_bytes >= 4 * (32 * 32 * 9 + 8 * 32)


def test_costs_are_summed_by_calls() -> None:
    layers = Layers(
        rest=Counter({"a": 2}),
        choices={"k": {0: Counter({"b": 3}), 4: Counter({"c": 1, "d": 2})}},
    )
    costs = {"a": 10.0, "b": 5.0, "c": 4.0, "d": 5.0}
    assert layers.chosen(costs) == {"k": 4}
    assert layers.total(costs, {"k": 4}) == 34
    assert layers.total(costs, {"k": 0}) == 35
    assert layers.total(costs, {}) == 20
    assert layers.calls({"k": 4}) == {"a": 2, "c": 1, "d": 2}
    del costs["d"]
    assert layers.chosen(costs) == {"k": 0}
    assert layers.total(costs, {"k": 4}) == pytest.approx(np.inf)
