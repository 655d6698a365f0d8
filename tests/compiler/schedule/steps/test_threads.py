"""Functions spread over threads: the same results, in any order of iterations."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import BinaryFunction, Buffer, Constant, Variable
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import For, Function, LoopKind, Stmt, Store, Update, block, loops
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.schedule.steps import threads
from dovetail.compiler.schedule.steps.threads import over_threads

F32 = DType.FLOAT32
X, Y = Buffer("x", (6, 5, 7), F32), Buffer("y", (6, 5, 7), F32)
PLACE = (Variable("i"), Variable("j"), Variable("k"))
NEST = (("i", 6), ("j", 5), ("k", 7))


@pytest.fixture(autouse=True)
def _small_work_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST_WORK", 50)
    monkeypatch.setattr(threads, "ITERATIONS", 20)


def parallel_extents(body: Stmt) -> list[int]:
    """Iterations of each parallel loop."""
    return [
        int(stmt.extent.value)
        for stmt in walk(body)
        if isinstance(stmt, For)
        and stmt.kind is LoopKind.PARALLEL
        and isinstance(stmt.extent, Constant)
    ]


def check(body: Stmt, expected: list[int]) -> None:
    """The parallel loops, and the results."""
    function = Function("test", (X,), (Y,), body)
    spread = over_threads(function)
    assert parallel_extents(spread.body) == expected
    x = np.random.default_rng(0).standard_normal(X.shape).astype(np.float32)
    for seed in range(3):
        found = interpret(spread, {"x": x}, seed=seed)["y"]
        np.testing.assert_array_equal(found, interpret(function, {"x": x})["y"])


def test_outer_loops_become_one_parallel_loop() -> None:
    check(loops(NEST, Store(Y, PLACE, X[PLACE] * 2.0)), [30])


def test_each_nest_is_spread() -> None:
    first = loops(NEST, Store(Y, PLACE, X[PLACE] * 2.0))
    check(block(first, loops(NEST, Update(Y, PLACE, BinaryFunction.ADD, X[PLACE]))), [30, 30])


def test_little_work_stays_with_one_thread() -> None:
    small = loops(NEST[1:], Store(Y, (Constant(0, DType.INT64), *PLACE[1:]), X[(0, *PLACE[1:])]))
    rest = loops((("i", 5), *NEST[1:]), Store(Y, (PLACE[0] + 1, *PLACE[1:]), X[PLACE]))
    check(block(small, rest), [25])


def test_iterations_that_depend_on_each_other_stay_in_order() -> None:
    start = loops(NEST[1:], Store(Y, (Constant(0, DType.INT64), *PLACE[1:]), X[(0, *PLACE[1:])]))
    scan = Store(Y, (PLACE[0] + 1, *PLACE[1:]), Y[PLACE] + X[(PLACE[0] + 1, *PLACE[1:])])
    check(block(start, loops((("i", 5), *NEST[1:]), scan)), [])


def test_rows_of_an_image_are_outside_of_its_channels() -> None:
    image = Buffer("y", (1, 3, 11, 10, 4), F32)
    place = (Constant(0, DType.INT64), *(Variable(name) for name in "cijl"))
    nest = (("c", 3), ("i", 11), ("j", 10), ("l", 4))
    function = Function("test", (), (image,), loops(nest, Store(image, place, Constant(2.0, F32))))
    spread = over_threads(function)
    assert parallel_extents(spread.body) == [33]
    assert isinstance(spread.body, For)
    assert spread.body.variable == "i.all"
    np.testing.assert_array_equal(interpret(spread, {})["y"], np.full(image.shape, 2, np.float32))
