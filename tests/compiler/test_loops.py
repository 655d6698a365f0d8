"""Loops with random bodies: machine code against the graph interpreter."""

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.verify import verify
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.compiler.targets.cpu.segment import compile_segment

from .random_loops import drawn


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_random_loops_give_the_interpreters_results(
    seed: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dovetail.compiler.program.steps.LEAST_SHARED", 1)
    graph = drawn(seed)
    verify(graph)
    generator = np.random.default_rng(seed)
    inputs = {
        name: generator.standard_normal(graph.types[name].shape, np.float32)
        for name in graph.inputs
    }
    expected = run(graph, inputs)
    segment = compile_segment(graph, LlvmOptions(threads=threads, verify=True))
    for _ in range(2):
        found = segment.run(inputs)
        for name in graph.outputs:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-4)
