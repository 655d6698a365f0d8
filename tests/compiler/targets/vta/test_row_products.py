"""Activations as weights: what orders DRAM, and plans with little room."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.graph.operators.integer.windows import AveragePool2d
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import prepare_graph
from dovetail.compiler.targets.vta.check import CheckError, check
from dovetail.compiler.targets.vta.emit import CompiledProgram, compile_partition
from dovetail.compiler.targets.vta.needs import needs
from dovetail.compiler.targets.vta.passes.fuse import fuse
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory, Unit
from dovetail.vta_sim.timing import time_program

from ....end_to_end.test_attention import (
    F32,
    WIDTH,
    Rows,
    attention,
    between_pixels,
    hybrid,
    scores,
)
from ...graph.passes.integer_layers.models import integer_graph

TINY = find_config("tiny")


def compiled(rows: int) -> CompiledProgram:
    """The program of products of ``rows`` rows of two activations."""
    net = Rows(rows)
    y = net.quantize(scores(net, net.dequantize("x", F32(0.02), np.int8(3))), F32(0.2), np.int8(-9))
    model = net.build({"x": ("int8", (1, rows, WIDTH))}, y)
    graph = prepare_graph(integer_graph(model), Trace(CompileOptions()), TINY.block)
    return compile_partition(graph, fuse(graph), TINY, time_program)


def test_weights_are_loaded_after_they_are_stored() -> None:
    program = compiled(16).instructions
    check(program, TINY)
    places = [
        place
        for place, each in enumerate(program)
        if isinstance(each, Load) and each.memory is Memory.WGT and Unit.STORE in each.wait
    ]
    assert places
    load = program[places[0]]
    stores = [n for n, each in enumerate(program) if Unit.LOAD in each.post]
    store = max(n for n in stores if isinstance(program[n], Store))
    wrong = list(program)
    wrong[places[0]] = replace(load, wait=load.wait - {Unit.STORE})
    wrong[store] = replace(program[store], post=program[store].post - {Unit.LOAD})
    with pytest.raises(CheckError):
        check(tuple(wrong), TINY)


def test_the_roof_knows_that_products_need_the_rows_that_are_their_weights() -> None:
    layers = compiled(16).layers
    first, _, whole = needs(layers)
    ((reader, stored),) = ((n, x.stored.name) for n, x in enumerate(layers) if x.stored)
    (maker,) = (n for n, x in enumerate(layers) if x.output.name == stored)
    assert 0 < first.parts[reader, maker] < 1
    assert whole.parts[reader, maker] == 1


@pytest.mark.parametrize(
    ("network", "rows", "shape", "moves"),
    [
        (attention, 9, (1, 9, WIDTH), 0),
        (hybrid, 9, (1, WIDTH, 4, 4), 48),
        (between_pixels, 16, (1, WIDTH, 4, 8), 0),
    ],
)
def test_heads_of_any_width_take_no_more_layers_and_no_pixel_moves_in_vain(
    network: Callable[[Rows, str], str], rows: int, shape: tuple[int, ...], moves: int
) -> None:
    counts = []
    for head in (TINY.block * 2, TINY.block * 2 - 3):
        net = Rows(rows, head)
        y = network(net, net.dequantize("x", F32(0.02), np.int8(3)))
        model = net.build({"x": ("int8", shape)}, net.quantize(y, F32(0.2), np.int8(-9)))
        graph = prepare_graph(integer_graph(model), Trace(CompileOptions()), TINY.block)
        counts.append(len(fuse(graph).layers))
        assert sum(isinstance(node.operator, AveragePool2d) for node in graph.nodes) == moves
    assert counts[0] == counts[1]
