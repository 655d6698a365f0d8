"""Rows that a block normalises."""

import numpy as np
import pytest

from dovetail.compiler.define.definition import Definition
from dovetail.compiler.define.group import define_group
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction
from dovetail.compiler.graph.operators.rows import NormalizedRows
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.compiler.schedule.steps.barrier import Barrier
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.schedule.steps.trace import from_record, to_record
from dovetail.compiler.targets.gpu.kernels import kernels_of
from tests.ptx.running import run_ptx


def normalised(shape: tuple[int, ...], centred: bool) -> Definition:
    """Rows of a sum, normalised and scaled."""
    builder = GraphBuilder()
    x, y = (builder.input(name, TensorType(shape, "float32")) for name in "xy")
    scale = builder.input("s", TensorType(shape[-1:], "float32"))
    added = builder.node(Binary(BinaryFunction.ADD), (x, y), "a", "a")
    made = builder.node(NormalizedRows(1e-3, centred), (added,), "n", "n")
    graph = builder.build((builder.node(Binary(BinaryFunction.MUL), (made, scale), "o", "o"),))
    return define_group(graph, graph.nodes)


@pytest.mark.parametrize(
    ("shape", "centred"), [((3, 64), True), ((2, 2, 200), True), ((5, 129), False)]
)
def test_a_block_s_rows_are_numpys(shape: tuple[int, ...], centred: bool) -> None:
    definition = normalised(shape, centred)
    function = schedule_group(definition).function
    (kernel,) = kernels_of(function)
    assert (kernel.geometry.blocks, kernel.geometry.threads) == (int(np.prod(shape[:-1])), 64)
    rng = np.random.default_rng(len(shape))
    given = {
        each.name: rng.standard_normal(each.shape).astype(np.float32) + 1
        for each in function.inputs
    }
    x, y, scale = (given[each.name] for each in function.inputs)
    rest = x + y
    rest = rest - rest.mean(-1, keepdims=True) if centred else rest
    want = rest / np.sqrt((rest**2).mean(-1, keepdims=True) + 1e-3) * scale
    np.testing.assert_allclose(run_ptx(function, given)["out0"], want, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(interpret(function, given)["out0"], want, rtol=2e-5, atol=2e-5)


def test_each_missing_barrier_is_found() -> None:
    schedule = schedule_group(normalised((2, 64), True))
    steps = [from_record(each) for each in to_record(schedule)]
    barriers = [place for place, step in enumerate(steps) if isinstance(step, Barrier)]
    assert len(barriers) == 4
    for place in barriers:
        broken = Schedule.of(normalised((2, 64), True).function)
        for number, step in enumerate(steps):
            if number != place:
                broken = broken.then(step)
        with pytest.raises(GraphError, match="put a barrier between them"):
            kernels_of(broken.function)


def test_short_rows_have_a_thread_each() -> None:
    (kernel,) = kernels_of(schedule_group(normalised((300, 8), True)).function)
    assert kernel.geometry.threads > 64
