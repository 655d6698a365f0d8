"""Definitions of all operators, and of the groups of networks: serial loops that mean the same."""

import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from dovetail.compiler.define.group import define_group
from dovetail.compiler.define.table import ANCHORS, ELEMENTS
from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.elementwise import (
    Binary,
    BinaryFunction,
    Unary,
    UnaryFunction,
)
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.operators.reductions import (
    ArgReduce,
    Cumulative,
    Reduce,
    ReduceFunction,
)
from dovetail.compiler.graph.operators.windows import WindowArgMax, WindowFunction, WindowReduce
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import For, Function, Invoke, LoopKind
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from tests.kept import check_kept

from .operators import CASES, Case

KEPT = Path(__file__).with_name("kept_loops.json")
"""Statements of each definition by kind, and the checksum of its text: loops that do more work than
they need give the right values too."""

MIN, MAX = ReduceFunction.MIN, ReduceFunction.MAX


def is_plain(function: Function) -> bool:
    """True if there are serial loops only, and nothing of a machine."""
    stmts = list(walk(function.body))
    loops = [stmt for stmt in stmts if isinstance(stmt, For)]
    serial = all(loop.kind is LoopKind.SERIAL and not loop.annotations for loop in loops)
    return serial and not any(isinstance(stmt, Invoke) for stmt in stmts)


def test_every_operator_has_a_case() -> None:
    assert {type(operator) for operator, _ in CASES} == {*ANCHORS, *ELEMENTS}


def compare(operator: TensorOperator, arrays: Sequence[Any]) -> Function:
    """Compare the loops of a definition with the operator's meaning; the loops."""
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
    return function


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case[0]).__name__)
def test_a_definition_is_plain_and_means_what_numpy_says(
    case: Case, request: pytest.FixtureRequest
) -> None:
    function = compare(*case)
    counts = Counter(type(each).__name__ for each in walk(function.body))
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    text = f"{kinds}; {crc32(to_text(function).encode()):08x}"
    check_kept(KEPT, request.node.callspec.id, text)


ODD = np.array([1, np.nan, 3, np.inf, -np.inf, -0.0, 2, 3, np.nan, -2, 0, 3], np.float32)


@pytest.mark.parametrize(
    "operator",
    [
        *(ArgReduce(each, 1, last) for each in (MIN, MAX) for last in (False, True)),
        *(Reduce(each, (1,), True) for each in (MIN, MAX, ReduceFunction.SUM)),
        *(Cumulative(each, 1) for each in (MIN, MAX)),
        WindowArgMax((0, 1), (2, 3), (1, 2), (2, 1), ((1, 0), (0, 1))),
        WindowReduce((0, 1), (2, 3), (1, 2), (2, 1), ((1, 0), (0, 1)), WindowFunction.MAX),
        *map(Unary, UnaryFunction),
        *map(Binary, BinaryFunction),
    ],
    ids=str,
)
def test_numbers_that_are_none_mean_the_same_in_loops(operator: TensorOperator) -> None:
    rows = np.stack([np.roll(ODD, step) for step in range(len(ODD))])
    rows[3] = np.nan
    arrays = [rows, np.roll(rows, 5, 1)] if isinstance(operator, Binary) else [rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            operator.result(tuple(TensorType(each.shape, DType.FLOAT32) for each in arrays))
        except GraphError:
            return  # not of floats
        compare(operator, arrays)
