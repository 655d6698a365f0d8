"""Definitions of all operators, and of the groups of networks: serial loops that mean the same."""

import numpy as np
import pytest

from dovetail.compiler.define.group import define_group
from dovetail.compiler.define.table import ANCHORS, ELEMENTS
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import For, Function, Invoke, LoopKind
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify

from .operators import CASES, Case


def is_plain(function: Function) -> bool:
    """Whether there are serial loops only, and nothing of a machine."""
    stmts = list(walk(function.body))
    loops = [stmt for stmt in stmts if isinstance(stmt, For)]
    serial = all(loop.kind is LoopKind.SERIAL and not loop.annotations for loop in loops)
    return serial and not any(isinstance(stmt, Invoke) for stmt in stmts)


def test_every_operator_has_a_case() -> None:
    assert {type(operator) for operator, _ in CASES} == {*ANCHORS, *ELEMENTS}


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case[0]).__name__)
def test_a_definition_is_plain_and_means_what_numpy_says(case: Case) -> None:
    operator, arrays = case
    builder = GraphBuilder()
    names = [
        builder.input(f"x{n}", TensorType(np.shape(array), str(np.asarray(array).dtype)))
        for n, array in enumerate(arrays)
    ]
    outputs = builder.node_outputs(operator, tuple(names), "y", "test")
    graph = builder.build(tuple(outputs))
    definition = define_group(graph, graph.nodes)
    function = definition.function
    verify(function, trust_data=True)
    assert is_plain(function)
    given = dict(zip(names, arrays, strict=True))
    found = interpret(
        function, {f"in{n}": np.asarray(given[name]) for n, name in enumerate(definition.inputs)}
    )
    results = dict(zip(definition.outputs, found.values(), strict=True))
    for name, expected in zip(outputs, operator.evaluate(list(arrays)), strict=True):
        np.testing.assert_allclose(results[name], expected, rtol=1e-4, atol=1e-5)
