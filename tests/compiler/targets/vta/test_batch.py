"""A graph for several images means, image by image, what the graph for one means."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.assembly import Assemble
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import prepare_graph
from dovetail.compiler.targets.vta.batch import batch_graph

from ....end_to_end.models import Network
from ....end_to_end.test_batch import classifier
from ...graph.passes.integer_layers.models import integer_graph

LANES = 4


def prepared(model: onnx.ModelProto) -> Graph:
    return prepare_graph(integer_graph(model), Trace(CompileOptions()), LANES)


def dense() -> onnx.ModelProto:
    net = Network(np.random.default_rng(4))
    return net.model(net.dense(net.unary(net.dense(net.input(12, 1, 1), 9), "Tanh"), 5))


def by_pixels() -> onnx.ModelProto:
    """Images that the host gives side by side, and whose result it takes apart."""
    net = Network(np.random.default_rng(6))
    return net.model(
        net.conv(net.conv(net.input(3, 4, 2), 5, (1, 1), activation="Relu"), 6, (1, 1))
    )


@pytest.mark.parametrize(
    ("model", "products", "assembled"),
    [(classifier, 3 * 3 + 3, 2), (dense, 2, 0), (by_pixels, 2, 0)],
)
def test_each_image_has_the_results_of_the_graph_for_one(
    model: Callable[[], onnx.ModelProto], products: int, assembled: int
) -> None:
    one = prepared(model())
    many = batch_graph(one, 3)
    assert sum(isinstance(node.operator, Conv2d) for node in many.nodes) == products
    assert sum(isinstance(node.operator, Assemble) for node in many.nodes) == assembled
    kind = one.types["x"]
    x = np.random.default_rng(0).integers(-128, 128, (3, *kind.shape[1:]), np.int8)
    wanted = [run(one, {"x": image}) for image in np.split(x, 3)]
    got = run(many, {"x": x})
    for name in one.outputs:
        np.testing.assert_array_equal(got[name], np.concatenate([each[name] for each in wanted]))
