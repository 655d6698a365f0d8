"""Layers that take a few cycles, as the heads of an attention: tables come once for all, and each
runs in few instructions.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import RowProducts
from dovetail.compiler.graph.operators.integer.softmax import RowSoftmax
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta import search
from dovetail.compiler.targets.vta.accelerate import compile_accelerated
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory
from dovetail.isa.program import program_from_bytes
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import AcceleratorPart
from dovetail.runtime.module import Module
from dovetail.vta_sim.timing import time_program

from .programs import TINY

ROWS, CHANNELS = 8, 4


def heads(scales: Sequence[float]) -> Graph:
    """Shares of some heads, each with a scale for its softmax."""
    builder = GraphBuilder([], [], {}, {})
    for name in "xy":
        builder.input(name, TensorType((1, 1, ROWS, CHANNELS), DType.INT8))
    outputs = []
    for head, scale in enumerate(scales):
        total = builder.node(RowProducts(0, 0), ("x", "y"), f"total{head}", "total")
        factors = np.full(ROWS, 0.01 / (1 + head), np.float32)
        pair = total, builder.constant(f"factors{head}", factors)
        scores = builder.node(Requantize(3, -128, 127), pair, f"scores{head}", "scores")
        softmax = RowSoftmax(scale, 1 / 256, -128)
        outputs.append(builder.node(softmax, (scores,), f"shares{head}", "shares"))
    return builder.build(tuple(outputs))


def compiled(graph: Graph) -> AcceleratorPart:
    """Its program with one plan."""
    options = CompileOptions(effort=0)
    return compile_accelerated(graph, TINY, options, Trace(options), time_program)


def tables(part: AcceleratorPart) -> list[int]:
    """Where the LOADs of tables begin in DRAM."""
    code = part.dram[part.program_address :][: part.program_bytes]
    loads = (each for each in program_from_bytes(bytes(code)) if isinstance(each, Load))
    return [each.dram_address for each in loads if each.memory is Memory.TAB]


def test_heads_share_the_tables_of_their_softmax() -> None:
    assert len(tables(compiled(heads([0.1] * 3)))) == 2
    # TAB has room for the two tables of one softmax.
    found = tables(compiled(heads([0.1, 0.2, 0.1])))
    assert found == [*found[:4], *found[:2]]
    assert len(set(found)) == 4


def test_short_layers_run_in_one_tile_where_that_takes_fewer_cycles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = heads([0.1] * 4)
    few = compiled(graph)
    monkeypatch.setattr(search, "SHORT", 0)
    many = compiled(graph)
    assert few.program_bytes < many.program_bytes
    assert few.expected_cycles < many.expected_cycles
    rng = np.random.default_rng(4)
    given = {
        name: rng.integers(-128, 128, graph.types[name].shape).astype(np.int8)
        for name in graph.inputs
    }
    expected = interpret(graph, given)
    for name, found in run(Module.of_part(few), given).outputs.items():
        np.testing.assert_array_equal(found, expected[name])
