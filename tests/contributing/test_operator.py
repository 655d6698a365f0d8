"""The checklist "Add an operator" of CONTRIBUTING.md, followed to the letter."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from dovetail.compiler import compile
from dovetail.compiler.define import table as definitions
from dovetail.compiler.define.operand import Indices, Operand
from dovetail.compiler.front.onnx import table as converters
from dovetail.compiler.front.onnx.context import ImportContext, Tensor
from dovetail.compiler.front.onnx.node import OnnxNode
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction
from dovetail.compiler.graph.operators.protocol import Fusion
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops import expressions
from dovetail.runtime.session import run


@dataclass(frozen=True, slots=True)
class Horner:
    """``(x + a) * x + b``: a contract with a meaning of its own."""

    a: float
    b: float

    fusion: ClassVar[Fusion] = Fusion.ELEMENTWISE

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return inputs

    def evaluate(self, inputs: Sequence[NDArray[np.float32]]) -> tuple[NDArray[np.float32], ...]:
        (x,) = inputs
        return ((x + np.float32(self.a)) * x + np.float32(self.b),)


def horner(operator: Horner, operands: Sequence[Operand], indices: Indices) -> expressions.Expr:
    x = operands[0][indices]
    a, b = (expressions.Constant(value, x.dtype) for value in (operator.a, operator.b))
    add, mul = expressions.BinaryFunction.ADD, expressions.BinaryFunction.MUL
    sum_of = expressions.Binary(add, x, a)
    return expressions.Binary(add, expressions.Binary(mul, sum_of, x), b)


def convert_square(
    context: ImportContext, node: OnnxNode, inputs: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    (x,) = inputs
    return (context.emit(Binary(BinaryFunction.MUL), x, x),)


def convert_horner(
    context: ImportContext, node: OnnxNode, inputs: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    return (context.emit(Horner(node.real("a", 0), node.real("b", 0)), *inputs),)


def model(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    values = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 7]) for name in "xy")
    x, y = values
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("example", 1)]
    return helper.make_model(helper.make_graph(nodes, "own", [x], [y]), opset_imports=imports)


def test_an_operator_that_others_express_takes_a_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(converters.CONVERTERS, "example.Square", convert_square)  # type: ignore[arg-type]
    module = compile(model(helper.make_node("Square", ["x"], ["y"], domain="example")), "cpu")
    x = np.random.default_rng(1).standard_normal((3, 7)).astype(np.float32)
    np.testing.assert_array_equal(run(module, x).outputs["y"], x * x)


def test_an_operator_with_a_meaning_takes_a_contract_and_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(converters.CONVERTERS, "example.Horner", convert_horner)  # type: ignore[arg-type]
    monkeypatch.setitem(definitions.ELEMENTS, Horner, horner)  # type: ignore[arg-type]
    nodes = (
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("Horner", ["h"], ["y"], domain="example", a=0.5, b=-2.0),
    )
    x = np.random.default_rng(2).standard_normal((3, 7)).astype(np.float32)
    (wanted,) = Horner(0.5, -2.0).evaluate([np.maximum(x, 0)])
    found = run(compile(model(*nodes), "cpu"), x).outputs["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
