"""Results go to DRAM in parts: each word that is read once, and the first before all are made."""

from types import SimpleNamespace
from typing import Any

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
from dovetail.compiler.targets.vta.result_parts import blocks_read, result_parts
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


def image(**changes: Any) -> Any:
    """Six blocks of 4x8 pixels, with a halo."""
    given = {"name": "x", "first_block": 0, "blocks": 6, "height": 4, "width": 8}
    return SimpleNamespace(**given | {"halo": (1, 2, 0, 0)} | changes)


def made(whole: Any, **sizes: int) -> list[Any]:
    """The layer that makes an image in such tiles, and another."""
    tiling = SimpleNamespace(sizes=sizes)
    outputs = (image(name="other", height=1), whole)
    return [SimpleNamespace(layer=SimpleNamespace(output=o), tiling=tiling) for o in outputs]


WHOLE = (1, 4), (2, 8)


@pytest.mark.parametrize(
    ("read", "blocks"),
    [
        (None, [(0, 2), (2, 2), (4, 2)]),
        ({2, 3}, [(2, 2)]),
        ({1}, [(1, 1)]),
        ({0, 1, 2, 5}, [(0, 2), (2, 1), (5, 1)]),
        (set(), []),
    ],
)
def test_parts_are_whole_tiles_of_the_blocks_that_are_read(
    read: set[int] | None, blocks: list[tuple[int, int]]
) -> None:
    x = image()
    kept = None if read is None else frozenset(read)
    found = list(result_parts(x, made(x, c=1, y=2, x=8), kept, 64))
    assert found == [(each, *WHOLE) for each in blocks]
    assert list(result_parts(x, [], None, 64)) == [((0, 6), *WHOLE)]


def test_parts_of_few_blocks_are_some_rows_or_some_pixels_of_one() -> None:
    x = image()
    rows = list(result_parts(x, made(x, c=6, y=1, x=8), None, 90))
    assert rows == [((0, 6), (1, 2), (2, 8)), ((0, 6), (3, 2), (2, 8))]
    x = image(height=1)
    found = list(result_parts(x, made(x, c=6, y=1, x=2), None, 12))
    assert found == [((0, 6), (1, 1), (2 + start, 2)) for start in (0, 2, 4, 6)]
    uneven = list(result_parts(x, made(x, c=6, y=1, x=3), None, 12))
    assert [columns for _, _, columns in uneven] == [(2, 3), (5, 3), (8, 2)]


def test_blocks_that_are_weights_are_those_of_all_layers_that_read_them() -> None:
    stored = [image(first_block=1, blocks=2), None, image(first_block=4, blocks=1)]
    layers: Any = [SimpleNamespace(stored=each) for each in stored]
    assert blocks_read(layers) == {"x": frozenset({1, 2, 4})}
