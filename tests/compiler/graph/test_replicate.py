"""Graphs for several images against the graph for one, image by image."""

import numpy as np
import pytest

from dovetail.compiler.errors import ModelError
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.reductions import Reduce
from dovetail.compiler.graph.replicate import replicate
from dovetail.compiler.graph.types import TensorType

from .test_partition import SHAPE, random_graph


@pytest.mark.parametrize("seed", range(8))
def test_each_image_is_computed_by_itself(seed: int) -> None:
    graph = random_graph(seed)
    rng = np.random.default_rng(seed)
    images = 3
    given = {
        name: rng.integers(-9, 9, (images, *SHAPE[1:])).astype(str(graph.types[name].dtype))
        for name in graph.inputs
    }
    found = run(replicate(graph, images), given)
    for image in range(images):
        wanted = run(graph, {name: x[image : image + 1] for name, x in given.items()})
        for name in graph.outputs:
            np.testing.assert_array_equal(found[name][image : image + 1], wanted[name])


def test_one_image_is_the_graph_itself() -> None:
    graph = random_graph(1)
    assert replicate(graph, 1) is graph


def test_a_tensor_without_dimensions_is_refused() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType(SHAPE, "float32"))
    total = builder.node(Reduce("sum", (0, 1, 2, 3), False), (x,), "total", "total")
    with pytest.raises(ModelError, match=r"'total' has no dimensions"):
        replicate(builder.build((total,)), 2)
