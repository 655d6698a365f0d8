"""Graphs of operators that the accelerator has are never refused, however their channels lie."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import compile_accelerated, prepare_graph
from dovetail.compiler.targets.vta.layers.lower import lower
from dovetail.compiler.targets.vta.layers.plan_activations import plan_activations
from dovetail.compiler.targets.vta.passes.fuse import fuse
from dovetail.isa.configs import find_config
from dovetail.runtime import run
from dovetail.runtime.module import Module
from dovetail.vta_sim.timing import time_program
from tests.kept import check_kept
from tests.kept_costs import check_costs
from tests.kept_forms import form

from .random_layers import random_layers

KEPT = Path(__file__).with_name("kept_forms.json")
TRACE = Trace(CompileOptions())


@pytest.mark.parametrize("lanes", [4, 16])
def test_every_graph_has_a_loop_program_for_each_layer(lanes: int) -> None:
    forms = []
    for seed in range(40):
        graph = random_layers(seed)
        prepared = prepare_graph(graph, TRACE, lanes)
        partition = fuse(prepared)
        activations = plan_activations(prepared, partition, lanes)
        for layer in partition.layers:
            lower(prepared, layer, activations)
        x = {"x": _image(graph.types["x"].shape)}
        (output,) = graph.outputs
        wanted, found = interpret(graph, x)[output], interpret(prepared, x)[output]
        np.testing.assert_array_equal(found, wanted, err_msg=f"seed {seed}")
        forms.append(f"{seed}: {form(prepared)} in {len(partition.layers)} layers")
    check_kept(KEPT, f"{lanes} lanes", forms)


@pytest.mark.parametrize("seed", range(100, 116))
def test_programs_compute_what_the_graph_does(seed: int) -> None:
    graph = random_layers(seed, 8)
    options = CompileOptions()
    part = compile_accelerated(graph, find_config("tiny"), options, TRACE, time_program)
    check_costs([part])
    x = {"x": _image(graph.types["x"].shape)}
    (found,) = run(Module.of_part(part), x).outputs.values()
    np.testing.assert_array_equal(found, interpret(graph, x)[graph.outputs[0]])


def _image(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
