"""Masks of attention: added to the scores of each head, within the launch."""

import numpy as np
import pytest
from networks import bert

from dovetail.compiler import compile
from dovetail.compiler.dtypes import DType
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import RowProducts
from dovetail.compiler.graph.operators.integer.softmax import RowSoftmax
from dovetail.compiler.graph.operators.integer.values import Add, Requantize
from dovetail.compiler.graph.operators.integer.windows import Upsample2d
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.capabilities import node_refusals
from dovetail.compiler.targets.vta.layers.fixed_point_add import is_exact
from dovetail.compiler.targets.vta.passes.split_products import SplitProducts
from dovetail.compiler.targets.vta.row_problems import must_end_low
from dovetail.runtime import run

HEADS, ROWS, CHANNELS = 2, 8, 4
SUM = Add(0.61234, 1.2789, 3, 127, 50, -128, 127, False)
TIED = Add(0.2, 0.5, 3, 127, 50, -128, 127, False)


def _graph(operator: Add, constant: bool) -> Graph:
    """Scores of two heads, a mask, and their softmax."""
    rng = np.random.default_rng(3)
    matrix = (1, HEADS, ROWS, CHANNELS)
    inputs = {"x": TensorType(matrix, DType.INT8), "y": TensorType(matrix, DType.INT8)}
    builder = GraphBuilder([], [], {}, {})
    for name, kind in inputs.items():
        builder.input(name, kind)
    total = builder.node(RowProducts(0, 0), ("x", "y"), "total", "scores")
    scale = builder.constant("scale", np.full(ROWS, 1e-3, np.float32))
    scores = builder.node(Requantize(3, -128, 127), (total, scale), "scores", "scores")
    if constant:
        bytes_ = np.where(np.tri(ROWS, dtype=bool), 127, -128).astype(np.int8)
        mask = builder.constant("mask", np.broadcast_to(bytes_, (1, HEADS, ROWS, ROWS)).copy())
    else:
        given = builder.input("mask", TensorType((1, 1, 1, ROWS), DType.INT8))
        rows = builder.node(Upsample2d((1, ROWS)), (given,), "rows", "mask")
        mask = builder.node(Upsample2d((HEADS, 1)), (rows,), "heads", "mask")
    pair = (scores, mask) if rng.integers(2) else (mask, scores)
    masked = builder.node(operator, pair, "masked", "masked")
    shares = builder.node(RowSoftmax(0.1, 1 / 256, -128), (masked,), "shares", "shares")
    return builder.build((shares,))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("operator", [SUM, TIED])
def test_each_head_has_its_sum(operator: Add, constant: bool) -> None:
    graph = _graph(operator, constant)
    found = SplitProducts(4).run(graph)
    sums = [node for node in found.nodes if isinstance(node.operator, Add)]
    assert is_exact(operator) == (operator is SUM)
    assert len(sums) == (HEADS if operator is SUM else 1)
    rng = np.random.default_rng(4)
    given = {
        name: rng.integers(-128, 128, kind.shape).astype(np.int8)
        for name, kind in ((name, graph.types[name]) for name in graph.inputs)
    }
    for name in graph.outputs:
        np.testing.assert_array_equal(interpret(found, given)[name], interpret(graph, given)[name])


def test_lanes_without_a_channel_may_hold_anything_under_a_mask_that_hides_all() -> None:
    hides = Add(1.0, 1.0, 3, 127, 3, -128, 127)
    found = [must_end_low(_graph(hides, constant=each), "scores") for each in (True, False)]
    assert found == [False, False]
    assert must_end_low(_graph(TIED, constant=False), "scores")


def test_a_mask_without_an_exact_sum_is_added_on_the_cpu() -> None:
    for operator in (SUM, TIED):
        graph = _graph(operator, constant=True)
        (place,) = (n for n, node in enumerate(graph.nodes) if isinstance(node.operator, Add))
        refusal = node_refusals(graph, 4).get(place)
        assert (refusal is not None and "with a mask" in refusal.reason) == (operator is TIED)


def test_bert_with_a_mask_of_tokens_is_one_launch() -> None:
    model = bert(1, 8, width=8, heads=2, vocabulary=20)
    rng = np.random.default_rng(5)
    samples = [
        {
            "ids": rng.integers(0, 20, (1, 8)),
            "mask": (np.arange(8) < length)[None].astype(np.int64),
        }
        for length in (8, 5, 3, 6)
    ]
    quantized = quantize_model(model, samples).model
    modules = [compile(quantized, target) for target in ("cpu", "vta:tiny")]
    assert [part.target for part in modules[1].parts] == ["cpu", "vta:tiny"]
    for sample in samples[:2]:
        own, simulated = (
            run(module, sample, device).outputs["hidden"]
            for module, device in zip(modules, ("cpu", "sim"), strict=True)
        )
        np.testing.assert_array_equal(own, simulated)
