"""Results go to DRAM in parts: each word that is read once, and the first before all are made."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d, RowProducts
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.operators.movement import Slice
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import prepare_graph
from dovetail.compiler.targets.vta.emit import CompiledProgram, compile_partition
from dovetail.compiler.targets.vta.passes.fuse import fuse
from dovetail.isa.footprint import dram_rows
from dovetail.isa.instructions import Store
from dovetail.isa.memories import Unit
from dovetail.vta_sim.timing import time_program

from .programs import TINY

LANES, ROWS = TINY.block, 64
HEAD = 4 * LANES
"""Channels of queries, and of keys."""
WORD = LANES
"""Bytes of a word of ACT."""


@pytest.fixture(scope="module")
def program() -> CompiledProgram:
    """A layer makes queries and keys of 64 rows; scores are another result."""
    rng = np.random.default_rng(1)
    builder = GraphBuilder([], [], {}, {})
    builder.input("x", TensorType((1, 1, ROWS, LANES), DType.INT8))
    weights = rng.integers(-9, 9, (2 * HEAD, 1, 1, LANES)).astype(np.int8)
    bias = builder.constant("bias", np.zeros(2 * HEAD, np.int32))
    pair = "x", builder.constant("weights", weights), bias
    total = builder.node(Conv2d((1, 1), (0, 0, 0, 0), 1, 0, 0), pair, "total", "both")
    scale = builder.constant("scale", np.full(2 * HEAD, 0.02, np.float32))
    both = builder.node(Requantize(0, -128, 127), (total, scale), "both", "both")
    queries, keys = (
        builder.node(Slice((0, 0, 0, at), (1,) * 4, (1, 1, ROWS, HEAD)), (both,), name, name)
        for at, name in ((0, "queries"), (HEAD, "keys"))
    )
    sums = builder.node(RowProducts(0, 0), (queries, keys), "sums", "scores")
    factors = builder.constant("factors", np.full(ROWS, 0.001, np.float32))
    scores = builder.node(Requantize(0, -128, 127), (sums, factors), "scores", "scores")
    graph = prepare_graph(builder.build((scores,)), Trace(CompileOptions()), LANES)
    return compile_partition(graph, fuse(graph), TINY, time_program, effort=0)


def stored(program: CompiledProgram, name: str) -> list[tuple[int, int, int]]:
    """Place, first byte behind its tensor's, and bytes of each part of STOREs to a tensor."""
    address = program.addresses[name]
    size = program.activations[name].blocks * ROWS * WORD
    found = []
    for place, each in enumerate(program.instructions):
        for at, count in dram_rows(each, TINY) if isinstance(each, Store) else ():
            if address <= at < address + size:
                found.append((place, at - address, count))
    return found


def test_queries_are_not_stored_and_each_word_of_keys_is_once(program: CompiledProgram) -> None:
    (name,) = {x.stored.name for x in program.layers if x.stored is not None}
    parts = sorted((at, count) for _, at, count in stored(program, name))
    whole = np.zeros(2 * HEAD * ROWS, int)
    for at, count in parts:
        whole[at : at + count] += 1
    half = HEAD * ROWS
    assert not whole[:half].any()
    assert (whole[half:] == 1).all()


def test_the_first_part_of_keys_is_stored_before_all_are_made(program: CompiledProgram) -> None:
    (name,) = {x.stored.name for x in program.layers if x.stored is not None}
    first = min(place for place, *_ in stored(program, name))
    units = [each.unit for each in program.instructions]
    maker = next(n for n, x in enumerate(program.layers) if x.output.name == name)
    made = [
        place
        for place, (unit, layer) in enumerate(zip(units, program.layer_of, strict=True))
        if layer == maker and unit is Unit.VECTOR
    ]
    assert first < max(made)
