"""Steps of programs: which loops threads may share."""

from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.compiler.program.steps import LEAST_SHARED, Body, Repetition


def repetition(
    *steps: Any, conditional: bool = False, states: int = 0, count: int = 1, nested: bool = False
) -> Repetition:
    """A loop with just enough work for four threads if ``count`` is 1."""
    lowering = SimpleNamespace(threads=4)
    shared = SimpleNamespace(lowering=lowering)
    body: Any = SimpleNamespace(steps=steps, work=LEAST_SHARED, shared=shared)
    operator: Any = SimpleNamespace(conditional=conditional, states=states, count=count)
    node: Any = None
    return Repetition(node, operator, body, nested)


@pytest.mark.parametrize(
    ("loop", "threads"),
    [
        (repetition(), 4),
        (repetition(count=0), 1),
        (repetition(states=1), 1),
        (repetition(nested=True), 1),
        (repetition(conditional=True), 1),
        (repetition(object(), repetition(nested=True)), 4),
        (repetition(repetition(nested=True), repetition(conditional=True)), 1),
        (repetition(repetition(repetition(conditional=True))), 1),
    ],
)
def test_iterations_are_shared_if_they_are_apart_and_none_may_stop(
    loop: Repetition, threads: int
) -> None:
    assert loop.threads == threads


def test_results_of_loops_are_alike_where_all_of_their_shapes_are() -> None:
    """Threads find their places in all of these shapes; what is given is like nothing else."""
    shapes = {"a": (4, 8), "b": (4, 8), "c": (5, 8), "given": (4, 8)}
    types = {name: SimpleNamespace(shape=shape) for name, shape in shapes.items()}
    steps = [SimpleNamespace(outputs=("a", "c")), SimpleNamespace(outputs=("b",))]
    body: Any = SimpleNamespace(steps=steps, graph=SimpleNamespace(types=types))
    found = Body._layouts(body, shapes)
    assert found == {"a": (4, 8), "b": (4, 8), "c": (5, 8), "given": "given"}
