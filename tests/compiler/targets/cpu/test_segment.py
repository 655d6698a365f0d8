"""Graphs as machine code against the graph interpreter."""

import numpy as np
import pytest

from dovetail.compiler.errors import TargetError, WorkLimitError
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Unary, UnaryFunction
from dovetail.compiler.graph.operators.windows import WindowFunction, WindowReduce
from dovetail.compiler.graph.slices import slice_graph
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.schedule.steps import threads
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget
from dovetail.compiler.targets.cpu.segment import compile_segment

from ...random_graphs import random_graph, random_inputs


@pytest.mark.parametrize("seed", range(30))
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


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_threads_give_the_same_results(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST_WORK", 1)
    graph = random_graph(seed)
    inputs = random_inputs(graph, seed)
    expected = compile_segment(graph).run(inputs)
    found = compile_segment(graph, LlvmOptions(threads=3)).run(inputs)
    for name in graph.outputs:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("function", ["asin", "atan", "sinh", "atanh"])
def test_functions_of_a_few_halves_need_no_library(size: int, function: str) -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((size,), "float16"))
    y = builder.node(Unary(UnaryFunction(function)), (x,), "y", "n")
    graph = builder.build((y,))
    inputs = {"x": np.linspace(-0.9, 0.9, size, dtype=np.float16)}
    found = compile_segment(graph).run(inputs)
    np.testing.assert_allclose(found[y], run(graph, inputs)[y], rtol=1e-3)


@pytest.mark.parametrize("level", ["avx2", "x86-64"])
@pytest.mark.parametrize("seed", range(3, 60, 8))
def test_narrower_vectors_give_the_same_results(seed: int, level: str) -> None:
    try:
        CpuTarget.at_level(level).require_host()
    except TargetError as error:
        pytest.skip(str(error))
    graph = random_graph(seed)
    inputs = random_inputs(graph, seed)
    expected = run(graph, inputs)
    found = compile_segment(graph, LlvmOptions(level=level)).run(inputs)
    for name in graph.outputs:
        np.testing.assert_allclose(found[name], expected[name], rtol=2e-5, atol=2e-5, err_msg=name)


def test_more_work_than_allowed_is_refused_by_the_name_of_the_node() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((64, 64), "float32"))
    y = builder.node(Unary(UnaryFunction.EXP), (x,), "y", "small")
    windows = WindowReduce((1,), (1 << 40,), (1,), (1,), ((1 << 40, 0),), WindowFunction.MAX)
    z = builder.node(windows, (y,), "z", "large")
    with pytest.raises(WorkLimitError, match=r"of them in large; allowed are 1e\+15; allow more"):
        compile_segment(builder.build((z,)))
    small = slice_graph(builder, (y,))
    compile_segment(small, LlvmOptions(most_work=10**5))
    with pytest.raises(WorkLimitError, match=r"of them in small; allowed are 1e\+03"):
        compile_segment(small, LlvmOptions(most_work=1000))
