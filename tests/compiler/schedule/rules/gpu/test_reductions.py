"""Long sums that the threads of a block share."""

import numpy as np
import pytest

from dovetail.compiler.define.definition import Definition
from dovetail.compiler.define.group import define_group
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.contractions import Convolution
from dovetail.compiler.graph.operators.reductions import Reduce, ReduceFunction
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.expressions import Scope
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Allocate
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.targets.gpu.kernels import kernels_of
from tests.ptx.running import run_ptx


def reduction(
    function: ReduceFunction, *shape: int, axes: tuple[int, ...] | None = None
) -> Definition:
    """Over all dimensions but the first, or over ``axes``."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType(shape, "float32"))
    operator = Reduce(function, axes or tuple(range(1, len(shape))), False)
    graph = builder.build((builder.node(operator, (x,), "y", "reduce"),))
    return define_group(graph, graph.nodes)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (ReduceFunction.SUM, (3, 4, 64)),
        (ReduceFunction.MAX, (2, 320)),
        (ReduceFunction.SUM, (1, 256)),
        (ReduceFunction.MAX, (3, 17 * 31)),
        (ReduceFunction.SUM, (2, 9, 49)),
    ],
)
def test_a_shared_sum_is_numpys(function: ReduceFunction, shape: tuple[int, ...]) -> None:
    definition = reduction(function, *shape)
    schedule = schedule_group(definition)
    buffers = [each.buffer for each in walk(schedule.function.body) if isinstance(each, Allocate)]
    assert [each.shape[0] for each in buffers if each.scope is Scope.SHARED] in ([64], [32])
    verify(schedule.function)
    (kind,) = definition.function.inputs
    given = np.random.default_rng(0).integers(-9, 9, kind.shape).astype(np.float32)
    axes = tuple(range(1, len(kind.shape)))
    expected = given.sum(axes) if function is ReduceFunction.SUM else given.max(axes)
    for found in (
        interpret(schedule.function, {"in0": given}, seed=3)["out0"],
        run_ptx(schedule.function, {"in0": given})["out0"],
    ):
        np.testing.assert_array_equal(found, expected)


def test_the_sum_of_all_is_one_block_of_threads() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 777), "float32"))
    graph = builder.build((builder.node(Reduce(ReduceFunction.SUM, (0, 1), False), (x,), "y", ""),))
    schedule = schedule_group(define_group(graph, graph.nodes))
    (kernel,) = kernels_of(schedule.function)
    assert (kernel.geometry.blocks, kernel.geometry.threads) == (1, 64)
    given = {"in0": np.random.default_rng(2).integers(-9, 9, (1, 777)).astype(np.float32)}
    assert run_ptx(schedule.function, given)["out0"] == given["in0"].sum()


def shared(schedule: Schedule) -> bool:
    """True if threads of a block share a sum."""
    buffers = [each.buffer for each in walk(schedule.function.body) if isinstance(each, Allocate)]
    return any(each.scope is Scope.SHARED and each.name.endswith("part") for each in buffers)


@pytest.mark.parametrize("shape", [(3, 49), (4096, 256), (100_000, 64), (3000, 97)])
def test_long_rows_have_a_block_each(shape: tuple[int, ...]) -> None:
    assert shared(schedule_group(reduction(ReduceFunction.SUM, *shape))) == (shape[-1] >= 64)


@pytest.mark.parametrize(("columns", "few"), [(2048, True), (1 << 16, False)])
def test_neighbouring_columns_have_a_thread_each_where_they_are_many(
    columns: int, few: bool
) -> None:
    assert shared(schedule_group(reduction(ReduceFunction.SUM, 512, columns, axes=(0,)))) == few


def convolution(channels: int, results: int, size: int) -> Definition:
    """3x3, of float32."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, channels, size, size), "float32"))
    w = builder.input("w", TensorType((results, channels, 3, 3), "float32"))
    operator = Convolution((1, 1), (1, 1), ((1, 1), (1, 1)), (1, 1), 1, "float32")
    graph = builder.build((builder.node(operator, (x, w), "y", "convolution"),))
    return define_group(graph, graph.nodes)


@pytest.mark.parametrize(
    ("channels", "results", "size", "few"),
    [(256, 12, 5, True), (512, 12, 7, True), (64, 64, 28, False), (4, 4, 8, False)],
)
def test_convolutions_of_few_results_share_their_sums(
    channels: int, results: int, size: int, few: bool
) -> None:
    assert shared(schedule_group(convolution(channels, results, size))) == few


def test_shared_sums_of_a_convolution_are_its_own() -> None:
    definition = convolution(64, 3, 3)
    schedule = schedule_group(definition)
    verify(schedule.function)
    rng = np.random.default_rng(1)
    given = {
        each.name: rng.integers(-9, 9, each.shape).astype(np.float32)
        for each in definition.function.inputs
    }
    want = interpret(definition.function, given)["out0"]
    np.testing.assert_array_equal(interpret(schedule.function, given, seed=2)["out0"], want)
    np.testing.assert_array_equal(run_ptx(schedule.function, given)["out0"], want)
