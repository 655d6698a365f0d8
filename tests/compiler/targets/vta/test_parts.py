"""Parts with any number of inputs and outputs, whole: their bytes and their cycles."""

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import compile_accelerated
from dovetail.isa.configs import find_config
from dovetail.runtime.accelerator.part import AcceleratorPart
from dovetail.runtime.module import Module
from dovetail.runtime.session import run
from dovetail.vta_sim.timing import time_program

from .integer_graphs import inputs_of, random_integer_graph


def compiled(graph: Graph, config: str) -> AcceleratorPart:
    options = CompileOptions(verify=True)
    return compile_accelerated(graph, find_config(config), options, Trace(options), time_program)


def assert_exact(graph: Graph, part: AcceleratorPart, *devices: str) -> None:
    """Every device gives the interpreter's bytes in the expected cycles."""
    inputs = inputs_of(graph, 1)
    expected = interpret(graph, inputs)
    given = {each.name: inputs[each.name] for each in part.inputs}
    for device in devices:
        found = run(Module.of_part(part), given, device)
        assert found.cycles == part.expected_cycles
        assert list(found.outputs) == list(dict.fromkeys(graph.outputs))
        for name, array in found.outputs.items():
            np.testing.assert_array_equal(array, expected[name], name)


@pytest.mark.parametrize("config", ["tiny", "zynq7020"])
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_give_the_interpreters_bytes(seed: int, config: str) -> None:
    graph = random_integer_graph(seed, find_config(config).block)
    assert_exact(graph, compiled(graph, config), "sim")
