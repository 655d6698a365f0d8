"""Branches, loops and variables, against LiteRT."""

import numpy as np
import pytest

from dovetail.compiler.errors import ModelError, UnsupportedOperatorError
from dovetail.compiler.graph.interpreter import run

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

from dovetail.compiler.front.tflite.source import TfliteModel

from .build import Graph, Op, Tensor, write_subgraphs
from .reference import litert

VECTOR = (3,)
NEGATE: Graph = ([Tensor("a", VECTOR), Tensor("b", VECTOR)], [Op("NEG", (0,), (1,))], [0], [1])
DOUBLE: Graph = (
    [Tensor("a", VECTOR), Tensor("b", VECTOR)],
    [Op("ADD", (0, 0), (1,), "AddOptions")],
    [0],
    [1],
)
LESS: Graph = (
    [Tensor("a", VECTOR), Tensor("b", VECTOR, "bool")],
    [Op("LESS", (0, 0), (1,), "LessOptions")],
    [0],
    [1],
)
BRANCHES = {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2}
LOOP = {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2}


def branching(depth: int = 2, known: bool | None = None) -> bytes:
    """known: the condition, where it is a constant."""
    given = None if known is None else np.asarray(known)
    main: Graph = (
        [Tensor("c", (), "bool", given), Tensor("x", VECTOR), Tensor("y", VECTOR)],
        [Op("IF", (0, 1), (2,), "IfOptions", {**BRANCHES, "ElseSubgraphIndex": depth})],
        [0, 1] if known is None else [1],
        [2],
    )
    return write_subgraphs([main, NEGATE, DOUBLE, LESS])


def looping() -> bytes:
    """Doubles a vector while a number is less than another."""
    main: Graph = (
        [Tensor("n", (), "int32"), Tensor("x", VECTOR), Tensor("m", (), "int32"),
         Tensor("y", VECTOR)],
        [Op("WHILE", (0, 1), (2, 3), "WhileOptions", LOOP)],
        [0, 1],
        [2, 3],
    )  # fmt: skip
    check: Graph = (
        [Tensor("n", (), "int32"), Tensor("x", VECTOR),
         Tensor("five", (), "int32", np.asarray(5, np.int32)), Tensor("going", (), "bool")],
        [Op("LESS", (0, 2), (3,), "LessOptions")],
        [0, 1],
        [3],
    )  # fmt: skip
    body: Graph = (
        [Tensor("n", (), "int32"), Tensor("x", VECTOR),
         Tensor("one", (), "int32", np.asarray(1, np.int32)), Tensor("m", (), "int32"),
         Tensor("y", VECTOR)],
        [Op("ADD", (0, 2), (3,), "AddOptions"), Op("ADD", (1, 1), (4,), "AddOptions")],
        [0, 1],
        [3, 4],
    )  # fmt: skip
    return write_subgraphs([main, check, body])


def accumulating() -> bytes:
    """A variable that a subgraph sets, to which the input is added."""
    start = np.asarray([1, 2, 3], np.float32)
    handle = {"Container": "", "SharedName": "sum"}
    main: Graph = (
        [Tensor("x", VECTOR), Tensor("v", (), "resource"), Tensor("old", VECTOR),
         Tensor("new", VECTOR), Tensor("y", VECTOR)],
        [Op("CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": 1}),
         Op("VAR_HANDLE", (), (1,), "VarHandleOptions", handle),
         Op("READ_VARIABLE", (1,), (2,), "ReadVariableOptions"),
         Op("ADD", (2, 0), (3,), "AddOptions"),
         Op("ASSIGN_VARIABLE", (1, 3), (), "AssignVariableOptions"),
         Op("READ_VARIABLE", (1,), (4,), "ReadVariableOptions")],
        [0],
        [4],
    )  # fmt: skip
    first: Graph = (
        [Tensor("v", (), "resource"), Tensor("start", VECTOR, data=start)],
        [Op("VAR_HANDLE", (), (0,), "VarHandleOptions", handle),
         Op("ASSIGN_VARIABLE", (0, 1), (), "AssignVariableOptions")],
        [],
        [],
    )  # fmt: skip
    return write_subgraphs([main, first])


def remembering(*handles: dict[str, str]) -> bytes:
    """Two variables: the input, and twice the input, which is set last; the first is read."""
    main: Graph = (
        [Tensor("x", VECTOR), Tensor("a", (), "resource"), Tensor("b", (), "resource"),
         Tensor("twice", VECTOR), Tensor("y", VECTOR)],
        [Op("VAR_HANDLE", (), (1,), "VarHandleOptions", handles[0]),
         Op("VAR_HANDLE", (), (2,), "VarHandleOptions", handles[1]),
         Op("ASSIGN_VARIABLE", (1, 0), (), "AssignVariableOptions"),
         Op("ADD", (0, 0), (3,), "AddOptions"),
         Op("ASSIGN_VARIABLE", (2, 3), (), "AssignVariableOptions"),
         Op("READ_VARIABLE", (1,), (4,), "ReadVariableOptions")],
        [0],
        [4],
    )  # fmt: skip
    return write_subgraphs([main])


X = np.asarray([1.5, -2, 0.25], np.float32)
A, B, APART = (
    {"Container": container, "SharedName": name}
    for container, name in (("", "a"), ("", "b"), ("other", "a"))
)


@pytest.mark.parametrize(
    ("content", "inputs"),
    [
        (branching(), (np.asarray(True), X)),
        (branching(), (np.asarray(False), X)),
        (branching(known=True), (X,)),
        (branching(known=False), (X,)),
        (looping(), (np.asarray(2, np.int32), X)),
        (looping(), (np.asarray(7, np.int32), X)),
        (accumulating(), (X,)),
        (remembering(A, B), (X,)),
        (remembering(A, APART), (X,)),
        (remembering(A, A), (X,)),
    ],
)
def test_control_flow_gives_the_reference_results(
    content: bytes, inputs: tuple[np.ndarray, ...]
) -> None:
    graph = TfliteModel.of(content).to_graph().graph
    values = run(graph, dict(zip(graph.inputs, inputs, strict=True)))
    for name, wanted in zip(graph.outputs, litert(content, inputs), strict=True):
        np.testing.assert_array_equal(values[name], wanted)


def test_a_subgraph_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelError, match=r"node 'y' \(IF\): subgraph 7 of 4"):
        TfliteModel.of(branching(7)).to_graph()


def test_branches_have_results_of_one_type() -> None:
    with pytest.raises(UnsupportedOperatorError, match="results have different types"):
        TfliteModel.of(branching(3)).to_graph()


def test_a_loop_keeps_the_types_of_its_states() -> None:
    main: Graph = (
        [Tensor("x", VECTOR), Tensor("y", VECTOR)],
        [Op("WHILE", (0,), (1,), "WhileOptions", LOOP)], [0], [1],
    )  # fmt: skip
    check: Graph = ([Tensor("x", VECTOR), Tensor("t", (), "bool", np.asarray(True))], [], [0], [1])
    body: Graph = (
        [Tensor("x", VECTOR), Tensor("y", VECTOR, "int32")],
        [Op("CAST", (0,), (1,), "CastOptions", {"InDataType": 0, "OutDataType": 2})], [0], [1],
    )  # fmt: skip
    with pytest.raises(UnsupportedOperatorError, match="results have other types than its inputs"):
        TfliteModel.of(write_subgraphs([main, check, body])).to_graph()


def test_subgraphs_that_call_themselves_are_refused() -> None:
    call = (
        [Tensor("x", VECTOR)],
        [Op("CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": 1})],
    )
    with pytest.raises(ModelError, match="more than 20 subgraphs call each other"):
        TfliteModel.of(write_subgraphs([(*call, [0], [0]), (*call, [], [])])).to_graph()


@pytest.mark.parametrize(("calls", "allowed"), [(1, True), (20, True), (21, False)])
def test_as_many_subgraphs_call_each_other_as_is_said(calls: int, allowed: bool) -> None:
    chain: list[Graph] = []
    for number in range(calls):
        call = Op("CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": number + 1})
        chain.append(([Tensor("x", VECTOR)] * (not number), [call], [0][number:], [0][number:]))
    model = TfliteModel.of(write_subgraphs([*chain, ([], [], [], [])]))
    if allowed:
        assert len(model.to_graph().graph.outputs) == 1
    else:
        with pytest.raises(ModelError, match="more than 20 subgraphs call each other"):
            model.to_graph()
