"""Numbers of a program, sizes that are expressions, and the types that operands have in common."""

import math

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import ModelError, UnsupportedOperatorError
from dovetail.compiler.front.torch.context import Context
from dovetail.compiler.front.torch.promotion import common_type
from dovetail.compiler.front.torch.symbols import evaluate, symbols_of
from dovetail.compiler.graph.ir import GraphBuilder

from .calls import I, X, call

SIZES = {"s0": 7, "s1": 3}


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        ("_operator.sub", (7, 3), 4),
        ("_operator.floordiv", (-7, 3), -3),
        ("_operator.truediv", (7, 2), 3.5),
        ("_operator.pow", (2, 1 << 4), 65536),
        ("_operator.lt", (3, 7), True),
        ("math.ceil", (3.2,), 4),
        ("math.trunc", (-3.8,), -3),
        ("torch._sym_sqrt", (2,), math.sqrt(2)),
        ("torch.sym_ite", (False, 2, 5), 5),
        ("torch.sym_ite", (True, 2, 5), 2),
        ("torch.sym_max", (3, 7), 7),
        ("torch.sym_not", (True,), False),
        ("torch.sym_sum", (3, 7, 1), 11),
    ],
)
def test_numbers_are_computed_as_python_does(
    name: str, numbers: tuple[float, ...], expected: float
) -> None:
    found = call(name, **{f"arg{place}": each for place, each in enumerate(numbers)})
    assert found == expected
    assert type(found) is type(expected)


def test_sizes_and_strides_are_those_of_rows_after_each_other() -> None:
    assert call("aten.sym_numel", X) == 24
    assert [call("aten.sym_size", X, dim) for dim in (0, 1, -1)] == [2, 3, 4]
    assert [call("aten.sym_stride", X, dim) for dim in (0, 1, -1)] == [12, 4, 1]
    assert call("aten.sym_storage_offset", X) == 0


@pytest.mark.parametrize(
    ("name", "numbers", "error", "said"),
    [
        ("_operator.add", {"a": 1, "b": "2"}, TypeError, "required numbers"),
        ("_operator.pow", {"a": 2, "b": (1 << 20) + 1}, ValueError, "a power of large numbers"),
        ("aten.max_pool2d", {"x": X, "kernel_size": (1, 2, 3)}, ValueError, "required 2 numbers"),
        ("aten.index", {"x": X, "indices": [I] * 4}, IndexError, "indices of 4 dimensions for 3"),
    ],
)
def test_what_is_no_number_or_takes_for_ever_is_refused(
    name: str, numbers: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        call(name, **numbers)


def test_the_number_of_a_tensor_is_that_of_its_one_element() -> None:
    assert call("aten.item", np.array([[2.5]], np.float32)) == 2.5
    with pytest.raises(UnsupportedOperatorError, match="the number of 24 elements"):
        call("aten.item", X)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("Add(Symbol('s0', integer=True), Integer(1))", 8),
        ("Mul(Integer(2), Symbol('s0'), Symbol('s1'))", 42),
        ("2*s0 - s1 % 2", 13),
        ("-s0 // s1", -3),
        ("CeilDiv(s0, s1)", 3),
        ("FloorDiv(s0, s1)", 2),
        ("CleanDiv(Mul(s0, s1), 7)", 3),
        ("Mod(s0, s1)", 1),
        ("PythonMod(-s0, s1)", 2),
        ("ModularIndexing(s0, 2, s1)", 0),
        ("Max(s0, s1, 1)", 7),
        ("Min(s0, s1, 9)", 3),
        ("CeilToInt(s1)", 3),
        (f"{1 << 62}", 1 << 62),
        ("s0 + s2", None),
    ],
)
def test_sizes_are_computed_from_those_of_symbols(expression: str, value: int | None) -> None:
    assert evaluate(expression, SIZES) == value


def test_symbols_of_a_size_are_named_once_in_their_order() -> None:
    assert symbols_of("Max(s1*Symbol('s0'), -s2) + s1") == ("s1", "s0", "s2")
    assert symbols_of("Integer(4)") == ()


@pytest.mark.parametrize(
    ("expression", "error", "said"),
    [
        ("s0 +", ModelError, "is not an expression"),
        ("1" * 10_001, ModelError, "is not an expression: 10001 characters"),
        ("s0 // (s1 - 3)", ModelError, "cannot be computed"),
        (f"{(1 << 62) + 1}", ModelError, "is too large"),
        ("CeilDiv(s0)", ModelError, "cannot be computed"),
        ("s0 ** s1", UnsupportedOperatorError, "of the model"),
        ("TruncToInt(s0)", UnsupportedOperatorError, "of the model"),
        ("1.5", UnsupportedOperatorError, "of the model"),
    ],
)
def test_what_is_no_size_is_refused(expression: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        evaluate(expression, SIZES)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("float16", "bfloat16"), "float32"),
        (("float16", "float32"), "float32"),
        (("int8", "uint8"), "int16"),
        (("int32", "int64"), "int64"),
        (("bool", "uint8"), "uint8"),
        (("int64", "float16"), "float16"),
        (("int8", 3), "int8"),
        (("int8", 3.0), "float32"),
        (("float16", 3.0), "float16"),
        (("bool", True), "bool"),
        (("bool", 3), "int64"),
        ((True, True), "bool"),
    ],
)
def test_operands_have_the_type_that_pytorch_documents(
    given: tuple[object, ...], expected: str
) -> None:
    context = Context(GraphBuilder())
    operands = [
        context.term(np.zeros(2), DType(each)) if isinstance(each, str) else each for each in given
    ]
    assert common_type(*operands) == DType(expected)
