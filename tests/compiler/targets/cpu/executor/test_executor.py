"""Models that specialise themselves: shapes, values, control flow, and what is kept."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dovetail.compiler.errors import CompilerError, ModelError, UnsupportedOperatorError
from dovetail.compiler.targets.cpu.executor.executor import Executor

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name: str, kind: int, shape: list[int | str | None]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    initializers: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    constants = [onnx.numpy_helper.from_array(a, n) for n, a in (initializers or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_every_shape_is_compiled_once() -> None:
    executor = Executor(
        model(
            [helper.make_node("Tanh", ["x"], ["y"])],
            [info("x", FLOAT, ["N", 3])],
            [info("y", FLOAT, ["N", 3])],
        )
    )
    for size in (2, 5, 2):
        x = np.linspace(-1, 1, size * 3, dtype=np.float32).reshape(size, 3)
        np.testing.assert_allclose(executor.run({"x": x})["y"], np.tanh(x), rtol=1e-6)
    assert executor.specialisations == 2


def test_a_shape_that_depends_on_data_is_computed_first() -> None:
    executor = Executor(
        model(
            [
                helper.make_node("Abs", ["x"], ["a"]),
                helper.make_node("NonZero", ["a"], ["places"]),
                helper.make_node("Transpose", ["places"], ["rows"]),
                helper.make_node("GatherND", ["a", "rows"], ["y"]),
            ],
            [info("x", FLOAT, [2, 4])],
            [info("y", FLOAT, ["K"])],
        )
    )
    for x in ([[0, 1, 0, -2], [3, 0, 0, 0]], [[0, 0, 0, 0], [0, 0, 0, 5]], [[0] * 4] * 2):
        array = np.asarray(x, np.float32)
        expected = np.abs(array)[np.nonzero(array)]
        np.testing.assert_array_equal(executor.run({"x": array})["y"], expected)
    before = executor.specialisations
    executor.run({"x": np.asarray([[9, 0, 0, 0], [0, 0, 0, 0]], np.float32)})
    assert executor.specialisations == before, "one element that is not 0 was seen before"


def test_a_branch_is_chosen_by_the_values_of_its_condition() -> None:
    branches = {
        name: helper.make_graph(
            [helper.make_node(kind, ["x"], [name])], name, [], [info(name, FLOAT, [3])]
        )
        for name, kind in (("up", "Exp"), ("down", "Neg"))
    }
    executor = Executor(
        model(
            [
                helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
                helper.make_node("Greater", ["s", "zero"], ["c"]),
                helper.make_node(
                    "If", ["c"], ["y"], then_branch=branches["up"], else_branch=branches["down"]
                ),
            ],
            [info("x", FLOAT, [3])],
            [info("y", FLOAT, [3])],
            {"zero": np.asarray(0, np.float32)},
        )
    )
    x = np.asarray([1, 2, 3], np.float32)
    np.testing.assert_allclose(executor.run({"x": x})["y"], np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(executor.run({"x": -x})["y"], x)


def test_a_loop_runs_until_its_condition_fails() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "v"], ["doubled"]),
            helper.make_node("Less", ["doubled", "limit"], ["going"]),
        ],
        "body",
        [info("i", INT64, []), info("c", BOOL, []), info("v", FLOAT, [])],
        [info("going", BOOL, []), info("doubled", FLOAT, [])],
    )
    executor = Executor(
        model(
            [helper.make_node("Loop", ["", "yes", "x"], ["y"], body=body)],
            [info("x", FLOAT, [])],
            [info("y", FLOAT, [])],
            {"yes": np.asarray(True), "limit": np.asarray(100, np.float32)},
        )
    )
    assert executor.run({"x": np.asarray(3, np.float32)})["y"] == 192
    assert executor.run({"x": np.asarray(70, np.float32)})["y"] == 140


def test_symbolic_shapes_flow_through_shape_arithmetic() -> None:
    executor = Executor(
        model(
            [
                helper.make_node("Shape", ["x"], ["s"]),
                helper.make_node("Gather", ["s", "first"], ["n"]),
                helper.make_node("Concat", ["n", "rest"], ["wanted"], axis=0),
                helper.make_node("Reshape", ["x", "wanted"], ["y"]),
            ],
            [info("x", FLOAT, ["N", 2, 3])],
            [info("y", FLOAT, ["N", 6])],
            {"first": np.asarray([0]), "rest": np.asarray([-1])},
        )
    )
    x = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    np.testing.assert_array_equal(executor.run({"x": x})["y"], x.reshape(4, 6))
    assert executor.kernel_calls == 0


@pytest.mark.parametrize(
    ("nodes", "kind", "message"),
    [
        ([helper.make_node("Tanh", ["missing"], ["y"])], ModelError, "'missing', which no node"),
        ([helper.make_node("NoSuch", ["x"], ["y"], name="a")], UnsupportedOperatorError, "NoSuch"),
        (
            [helper.make_node("Tanh", ["x"], ["y"], domain="no.such", name="a")],
            UnsupportedOperatorError,
            "no.such.Tanh",
        ),
        ([helper.make_node("Add", ["x"], ["y"], name="sum")], ModelError, "'sum' .Add. is malf"),
        ([helper.make_node("Reshape", ["x", "w"], ["y"], name="r")], ModelError, "'r' .Reshape."),
        ([helper.make_node("Tanh", ["y"], ["x2"]), helper.make_node("Tanh", ["x2"], ["y"])],
         ModelError, "reads 'y', which no node before it"),
        ([helper.make_node("Not", ["x"], ["y"], name="not")], ModelError, "it may be bool"),
    ],
)  # fmt: skip
def test_a_malformed_model_is_refused_by_naming_the_node(
    nodes: list[onnx.NodeProto], kind: type[CompilerError], message: str
) -> None:
    wrong = model(
        nodes,
        [info("x", FLOAT, [2, 3])],
        [info("y", FLOAT, None)],
        {"w": np.asarray([4, 4])},
    )
    with pytest.raises(kind, match=message):
        Executor(wrong).run({"x": np.zeros((2, 3), np.float32)})


def test_inputs_that_the_model_does_not_have_or_lacks_are_named() -> None:
    executor = Executor(
        model(
            [helper.make_node("Tanh", ["x"], ["y"])],
            [info("x", FLOAT, [1])],
            [info("y", FLOAT, [1])],
        )
    )
    with pytest.raises(ModelError, match="no input 'z'"):
        executor.run({"z": np.zeros(1, np.float32)})
    with pytest.raises(ModelError, match="input 'x' is not given"):
        executor.run({})
    with pytest.raises(ModelError, match="input 'x' is float64; required float32"):
        executor.run({"x": np.zeros(1)})
    with pytest.raises(UnsupportedOperatorError, match="'x' holds text"):
        executor.run({"x": np.asarray(["a"])})
