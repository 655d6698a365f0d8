"""Normalisations of rows on the accelerator: the operator's bytes, in the expected cycles."""

import re

import numpy as np
import pytest

from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.norm import RowNorm
from dovetail.compiler.graph.operators.integer.softmax import RowSoftmax
from dovetail.compiler.graph.operators.integer.values import Lookup
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.compiler.targets.vta.layers.row_norm import lower_row_norm
from dovetail.compiler.targets.vta.passes.rows_to_pixels import ROWS_TO_PIXELS
from dovetail.compiler.targets.vta.row_problems import row_problem
from dovetail.isa.instructions import Row, Vector

from .test_parts import assert_exact, compiled


def _graph(shape: tuple[int, ...], operator: RowNorm, seed: int = 0) -> Graph:
    """One normalisation; some channels are turned round, and one has no scale to speak of."""
    rng, channels = np.random.default_rng(seed), shape[-1]
    builder = GraphBuilder()
    x = builder.input("x", TensorType(shape, "int8"))
    scale = rng.uniform(-1, 2, channels) * np.sqrt(channels) / 1e4
    scale[1] = 1e-20
    inputs = (
        x,
        builder.constant("bias", rng.integers(-90_000, 90_000, channels).astype(np.int32)),
        builder.constant("scale", scale.astype(np.float32)),
    )
    if operator.share:
        table = np.sort(rng.integers(-128, 128, 256))[::-1].astype(np.int8)
        inputs = (*inputs, builder.constant("table", table))
    return builder.build((builder.node(operator, inputs, "y", "norm"),))


COARSE = RowNorm(128, -3, None, 1e-6, 9)
"""A normalisation whose mean of squares is a byte."""


@pytest.mark.parametrize("about", [None, -7])
@pytest.mark.parametrize(
    ("shape", "config"),
    [
        ((1, 3, 5, 16), "tiny"),
        ((1, 1, 9, 8), "tiny"),
        ((1, 1, 9, 124), "tiny"),  # PAR has no room for parameters of rows beside all others
        ((1, 1, 43, 16), "cramped"),
        ((1, 1, 31, 64), "zynq7020"),
        ((1, 1, 31, 60), "zynq7020"),
    ],
)
def test_a_normalisation_has_the_operators_bytes(
    shape: tuple[int, ...], config: str, about: int | None
) -> None:
    graph = _graph(shape, RowNorm(4321, 11, about))
    assert_exact(graph, compiled(graph, config), "sim")


@pytest.mark.parametrize(
    ("shape", "config"),
    [
        ((1, 3, 5, 16), "tiny"),
        ((1, 1, 9, 112), "tiny"),
        ((1, 1, 43, 18), "cramped"),
        ((1, 1, 31, 60), "zynq7020"),
    ],
)
def test_a_normalisation_with_a_byte_inside_has_the_operators_bytes(
    shape: tuple[int, ...], config: str
) -> None:
    graph = _graph(shape, COARSE)
    assert_exact(graph, compiled(graph, config), "sim")


@pytest.mark.parametrize("about", [None, 9])
@pytest.mark.parametrize("channels", [3, 18])
def test_what_lies_beyond_the_last_channel_counts_for_nothing(
    channels: int, about: int | None
) -> None:
    norm, builder = _graph((1, 1, 5, channels), RowNorm(77, -5, about)), GraphBuilder()
    x = builder.input("x", norm.types["x"])
    table = np.random.default_rng(3).permutation(np.arange(-128, 128)).astype(np.int8)
    assert table[128] != 0
    x = builder.node(Lookup(), (x, builder.constant("table", table)), "looked_up", "table")
    given = (builder.constant(name, norm.constants[name]) for name in ("bias", "scale"))
    y = builder.node(norm.nodes[0].operator, (x, *given), "y", "norm")
    graph = builder.build((y,))
    part = compiled(graph, "tiny")
    for device in ("sim", "rtl"):
        assert_exact(graph, part, device)


def test_rows_of_a_prime_number_have_tiles_of_several() -> None:
    """43 rows, and one behind them that nobody reads, are two tiles."""
    norm = _graph((1, 1, 43, 8), RowNorm(50, 0))
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 1, 43, 8), "int8"))
    softmax = builder.build((builder.node(RowSoftmax(0.1, 1 / 256, -128), (x,), "y", "softmax"),))
    for graph in (norm, softmax):
        part = compiled(graph, "tiny")
        assert_exact(graph, part, "sim")
        assert sum(isinstance(i, Vector) and i.row is Row.LESS for i in part.program) < 43


@pytest.mark.parametrize("seed", range(4))
def test_random_rows_have_the_operators_bytes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width, blocks = (int(rng.integers(1, most)) for most in (4, 12, 9))
    config = ("tiny", "cramped")[seed % 2]
    about = None if rng.random() < 0.5 else int(rng.integers(-128, 128))
    operator = RowNorm(int(2 ** rng.uniform(0, 23)) - 1, int(rng.integers(-128, 128)), about)
    graph = _graph((1, height, width, 4 * blocks), operator, seed)
    assert_exact(graph, compiled(graph, config), "sim")


@pytest.mark.parametrize("about", [None, 20])
def test_the_loop_program_is_the_operator(about: int | None) -> None:
    operator, rng = RowNorm(70, -3, about), np.random.default_rng(2)
    x, y = (Activation(name, 8, 2, 3, 4) for name in "xy")
    bias, scale = rng.integers(-9, 9, 8).astype(np.int32), np.full(8, 2e-4, np.float32)
    layer = lower_row_norm("norm", operator, x, y, bias, scale)
    rows = rng.integers(-128, 128, (1, 2, 3, 8)).astype(np.int8)
    rows[0, 0, 0] = 9
    blocked = rows.reshape(2, 3, 2, 4).transpose(2, 0, 1, 3)
    found = interpret(layer.function, {**layer.constants, "x": blocked}, seed=1)["y"]
    (wanted,) = operator.evaluate([rows, bias, scale])
    np.testing.assert_array_equal(found.transpose(1, 2, 0, 3).reshape(wanted.shape), wanted)


def test_the_accelerator_runs_what_it_computes_in_a_few_cycles_a_word() -> None:
    """Six, and five without a mean, beside what moves input and result; one more where channels do
    not fill blocks.
    """
    for about, channels, most in ((None, 128, 6), (3, 128, 5), (None, 121, 7)):
        part = compiled(_graph((1, 1, 24, channels), RowNorm(9, 0, about)), "zynq7020")
        assert part.roof_cycles == most * 24 * 128 // 16


def test_rows_of_any_shape_become_pixels() -> None:
    graph = ROWS_TO_PIXELS.run(_graph((1, 6, 8), RowNorm(9, 0)))
    kinds = [type(node.operator).__name__ for node in graph.nodes]
    assert kinds == ["Reshape", "RowNorm", "Reshape"]
    assert graph.types[graph.nodes[1].output].shape == (1, 1, 6, 8)


@pytest.mark.parametrize(
    ("lanes", "words", "problem"),
    [
        (8, 32, None),
        (8, 0, "no row_parameters, which normalisations need"),
        (16, 32, None),
        (8, 6, "par scratchpad: 3 words required .*, 2 available"),
    ],
)
def test_what_the_accelerator_cannot_normalise(lanes: int, words: int, problem: str | None) -> None:
    graph = _graph((1, 1, 6, 24), RowNorm(9, 0))
    found = row_problem(graph, graph.nodes[0], lanes, words)
    assert found is None if problem is None else found is not None and re.search(problem, found)
