"""Graphs as machine code against the graph interpreter."""

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.segment import compile_segment

from .random_graphs import random_graph, random_inputs


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_give_the_interpreters_results(seed: int) -> None:
    graph = random_graph(seed)
    if not graph.outputs:
        pytest.skip("the graph has no nodes")
    inputs = random_inputs(graph, seed)
    expected = run(graph, inputs)
    found = compile_segment(graph).run(inputs)
    for name in graph.outputs:
        assert found[name].dtype == expected[name].dtype
        np.testing.assert_allclose(found[name], expected[name], rtol=2e-5, atol=2e-5, err_msg=name)
