"""Long sums that the threads of a block share."""

import numpy as np
import pytest

from dovetail.compiler.define.definition import Definition
from dovetail.compiler.define.group import define_group
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.reductions import Reduce, ReduceFunction
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.expressions import Scope
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Allocate
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from tests.ptx.running import run_ptx


def reduction(function: ReduceFunction, *shape: int) -> Definition:
    """Over all dimensions but the first."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType(shape, "float32"))
    operator = Reduce(function, tuple(range(1, len(shape))), False)
    graph = builder.build((builder.node(operator, (x,), "y", "reduce"),))
    return define_group(graph, graph.nodes)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (ReduceFunction.SUM, (3, 4, 64)),
        (ReduceFunction.MAX, (2, 320)),
        (ReduceFunction.SUM, (1, 256)),
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


@pytest.mark.parametrize("shape", [(3, 100), (4096, 256), (3, 17 * 31)])
def test_other_sums_have_a_thread_each(shape: tuple[int, ...]) -> None:
    schedule = schedule_group(reduction(ReduceFunction.SUM, *shape))
    buffers = [each.buffer for each in walk(schedule.function.body) if isinstance(each, Allocate)]
    assert all(each.scope is not Scope.SHARED for each in buffers)
