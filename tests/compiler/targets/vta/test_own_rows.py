"""Images that are put together from pixels that are apart: row by row where they do not fit."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.assembly import Assemble
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import compile_accelerated
from dovetail.compiler.targets.vta.passes.own_rows import OwnRows
from dovetail.isa.instructions import Store
from dovetail.vta_sim.timing import time_program

from .programs import TINY
from .test_parts import assert_exact
from .test_rows_to_pixels import Rows

PERIOD = 3, 2
SIZE = 6, 4
"""Period and size of the whole image."""
BLOCKS = 2
WORDS = BLOCKS * SIZE[0] * SIZE[1]


def resized() -> Graph:
    """An image of which each phase is looked up in a table of its own."""
    down, across = PERIOD
    b = Rows((1, SIZE[0] // down, SIZE[1] // across, 2 * TINY.block - 1))
    starts = tuple(product(range(down), range(across)))
    parts = [b.table(b.given[0]) for _ in starts]
    return b.build((b.put(Assemble(SIZE, starts, PERIOD), *parts),))


def test_each_row_of_a_period_is_put_together_and_then_copied_and_bytes_stay() -> None:
    graph = resized()
    found = OwnRows(TINY.block, WORDS - 1).run(graph)
    assert OwnRows(TINY.block, WORDS - 1).run(found) is found
    row = ["Lookup"] * PERIOD[1] + ["Assemble", "MaxPool2d"]
    kinds = [type(node.operator).__name__ for node in found.nodes]
    assert kinds == [*row * PERIOD[0], "Assemble"], "a row is copied before the next is made"
    x = np.random.default_rng(5).integers(-128, 128, graph.types["x0"].shape).astype(np.int8)
    (name,) = graph.outputs
    wanted = interpret(graph, {"x0": x})[name]
    np.testing.assert_array_equal(interpret(found, {"x0": x})[name], wanted)


@pytest.mark.parametrize(("words", "why"), [(0, "any"), (WORDS, "room"), (WORDS // 2, "long rows")])
def test_an_image_with_room_or_with_long_rows_stays(words: int, why: str) -> None:
    graph = resized()
    assert OwnRows(TINY.block, words).run(graph) is graph, why


def test_rows_are_put_together_where_they_fit_beside_what_they_are_made_of() -> None:
    """16 words of a row's parts and 8 of the image that each is made of are 7/8 of 27.4 words."""
    graph = resized()
    assert OwnRows(TINY.block, 27).run(graph) is graph
    assert OwnRows(TINY.block, 28).run(graph) is not graph


def test_rows_go_to_dram_in_one_piece_and_bytes_are_those_of_the_graph() -> None:
    options = CompileOptions(effort=0)
    small = replace(TINY, name="small", act_depth=32)
    graph = resized()
    part = compile_accelerated(graph, small, options, Trace(options), time_program)
    stores = [each for each in part.program if isinstance(each, Store)]
    assert {each.count_x for each in stores} == {SIZE[1]}
    assert_exact(graph, part, "sim")
