"""Matrix products in tiles: what they compute, and that their barriers are needed."""

import numpy as np
import pytest

from dovetail.compiler.define.definition import Definition
from dovetail.compiler.define.group import define_group
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.contractions import Convolution
from dovetail.compiler.graph.operators.elementwise import Binary
from dovetail.compiler.graph.operators.functions import BinaryFunction
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.expressions import Scope
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.intrinsic import BARRIER
from dovetail.compiler.loops.ir import Allocate, For, Function, Invoke, LoopKind, Stmt, block
from dovetail.compiler.loops.rewrite import map_statement
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.rules.gpu import estimate
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.compiler.schedule.steps.trace import replay, to_record
from dovetail.compiler.targets.gpu.kernels import kernels_of
from tests.ptx.running import run_ptx

from .products import product

RNG = np.random.default_rng(0)


def shared(function: Function) -> list[str]:
    return [
        each.buffer.name
        for each in walk(function.body)
        if isinstance(each, Allocate) and each.buffer.scope is Scope.SHARED
    ]


@pytest.mark.parametrize(("rows", "columns", "depth"), [(16, 32, 8), (32, 16, 16)])
def test_tiles_of_a_product_give_its_results(rows: int, columns: int, depth: int) -> None:
    schedule = schedule_group(product(rows, columns, depth))
    assert sorted(shared(schedule.function)) == ["in0.tile", "in1.tile"]
    verify(schedule.function)
    a, b = RNG.integers(-9, 9, (rows, depth)), RNG.integers(-9, 9, (depth, columns))
    bias = RNG.integers(-9, 9, columns)
    given = {f"in{n}": each.astype(np.float32) for n, each in enumerate((a, b, bias))}
    found = interpret(schedule.function, given, seed=1)
    np.testing.assert_array_equal(found["out0"], a @ b + bias)
    (kernel,) = kernels_of(schedule.function)
    assert kernel.geometry.threads == rows // 4 * columns // 4


def test_sizes_that_tiles_do_not_divide_are_bound_as_other_nests() -> None:
    schedule = schedule_group(product(15, 32, 8))
    assert shared(schedule.function) == []
    assert any(
        isinstance(e, For) and e.kind is LoopKind.THREAD for e in walk(schedule.function.body)
    )


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_barrier_is_found(missing: int) -> None:
    schedule = schedule_group(product(16, 16, 32))
    seen: list[Stmt] = []

    def without(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Invoke) and stmt.intrinsic == BARRIER:
            seen.append(stmt)
            return block() if len(seen) - 1 == missing else stmt
        return stmt

    body = map_statement(schedule.function.body, None, without)
    assert len(seen) == 2
    broken = Function("product", schedule.function.inputs, schedule.function.outputs, body)
    with pytest.raises(GraphError, match=r"product: in\d.tile: a thread of .* at the same time"):
        kernels_of(broken)


def test_a_schedule_is_replayed_from_its_record() -> None:
    definition = product(16, 16, 8)
    schedule = schedule_group(definition)
    assert replay(definition.function, to_record(schedule)).function == schedule.function


def convolution(channels: int, results: int, height: int, width: int) -> Definition:
    """3x3 of float32, with a bias after it."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((2, channels, height, width), "float32"))
    w = builder.input("w", TensorType((results, channels, 3, 3), "float32"))
    bias = builder.input("bias", TensorType((results, 1, 1), "float32"))
    operator = Convolution((1, 1), (1, 1), ((1, 1), (1, 1)), (1, 1), 1, "float32")
    y = builder.node(operator, (x, w), "y", "c")
    graph = builder.build((builder.node(Binary(BinaryFunction.ADD), (y, bias), "z", "sum"),))
    return define_group(graph, graph.nodes)


@pytest.mark.parametrize("channels", [20, 32])
def test_a_convolution_goes_by_tiles_of_threads(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In parts of its sum where that is long, if threads by themselves take longer."""
    monkeypatch.setattr(estimate, "PLAIN", 1.0)
    definition = convolution(channels, 18, 3, 4)
    schedule = schedule_group(definition)
    assert sorted(shared(schedule.function)) == ["in0.tile", "in1.tile"]
    assert len(kernels_of(schedule.function)) == (2 if channels == 32 else 1)
    verify(schedule.function)
    given = {
        each.name: RNG.integers(-9, 9, each.shape).astype(np.float32)
        for each in definition.function.inputs
    }
    want = interpret(definition.function, given)["out0"]
    np.testing.assert_array_equal(interpret(schedule.function, given, seed=4)["out0"], want)
    np.testing.assert_array_equal(run_ptx(schedule.function, given)["out0"], want)
    record = to_record(schedule)
    assert replay(definition.function, record).function == schedule.function


@pytest.mark.parametrize(("channels", "results", "size"), [(3, 32, 64), (64, 8, 64), (16, 16, 8)])
def test_convolutions_of_short_sums_or_few_channels_are_not_in_tiles(
    channels: int, results: int, size: int
) -> None:
    assert shared(schedule_group(convolution(channels, results, size, size)).function) == []


def test_a_convolution_keeps_sums_of_four_channels() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 3, 5, 6), "float32"))
    w = builder.input("w", TensorType((8, 3, 3, 3), "float32"))
    operator = Convolution((1, 1), (1, 1), ((1, 1), (1, 1)), (1, 1), 1, "float32")
    graph = builder.build((builder.node(operator, (x, w), "y", "c"),))
    definition = define_group(graph, graph.nodes)
    schedule = schedule_group(definition)
    (sums,) = (each.buffer for each in walk(schedule.function.body) if isinstance(each, Allocate))
    assert sums.shape == (4,)
    verify(schedule.function)
    given = {
        "in0": RNG.integers(-9, 9, (1, 3, 5, 6)).astype(np.float32),
        "in1": RNG.integers(-9, 9, (8, 3, 3, 3)).astype(np.float32),
    }
    expected = interpret(definition.function, given)["out0"]
    np.testing.assert_array_equal(interpret(schedule.function, given, seed=2)["out0"], expected)
