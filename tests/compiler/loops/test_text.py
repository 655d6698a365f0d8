"""Loop programs as text, there and back."""

import math

import pytest
from hypothesis import given, settings

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.expressions import (
    Binary,
    BinaryFunction,
    Bitcast,
    Buffer,
    Cast,
    Constant,
    Expr,
    Scope,
    Select,
    Unary,
    UnaryFunction,
    Variable,
    as_index,
)
from dovetail.compiler.loops.ir import (
    Allocate,
    Block,
    For,
    Function,
    If,
    Invoke,
    Let,
    LoopKind,
    Region,
    Store,
    Update,
    While,
)
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import expr_to_text, to_text

from .strategies import functions

SOFTMAX = """\
function "softmax"
  input x: float32[4, 10]
  output "/y:0": float32[4, 10]
  for i in 4 parallel:
    alloc sum: float32[] local:
      sum[] = 0.0:float32
      for j in 10:
        sum[] add= exp(x[i, j])
      for j in 10 vector:
        "/y:0"[i, j] = exp(x[i, j]) / sum[]"""

X = Buffer("x", (8,), DType.FLOAT32)
Y = Buffer("y", (8,), DType.FLOAT32)
INDEX = Variable("i")
FOR = Variable("for", DType.FLOAT32)


@settings(max_examples=100, deadline=None)
@given(functions())
def test_a_function_is_read_back_as_it_was(function: Function) -> None:
    assert parse(to_text(function)) == function


def test_text_is_printed_as_it_was_read() -> None:
    assert to_text(parse(SOFTMAX)) == SOFTMAX


def test_every_statement_is_read_back() -> None:
    flag = Buffer("in", (), DType.BOOL, Scope.REGISTER)
    store = Store(Y, (INDEX,), X[INDEX])
    body = Block(
        (
            Block((store,)),
            Block(()),
            Block((Block((store, store)), store)),
            While(Unary(UnaryFunction.NOT, flag[()]), Block((store, store))),
            If(INDEX < 3, store, Block(())),
            If(INDEX < 3, If(INDEX < 2, store), If(INDEX < 1, store, store)),
            Let(FOR, X[INDEX], Store(Y, (INDEX,), FOR)),
            Update(Y, (INDEX,), BinaryFunction.MAX, X[INDEX]),
            Invoke("dot product", (Region(X, (INDEX * 2,), (4,)), Region(flag, (), ()))),
            For("j", INDEX + 1, LoopKind.UNROLLED, Block(())),
            For("k", INDEX, LoopKind.VECTOR, Block(()), (("lanes", 8), ("for", 'a "b"'))),
        )
    )
    function = Function(
        'a "name"', (X,), (Y,), For("i", as_index(8), LoopKind.SERIAL, Allocate(flag, body))
    )
    assert parse(to_text(function)) == function


@pytest.mark.parametrize(
    "value",
    [
        Constant(-3, DType.INT8),
        Constant(2**64 - 1, DType.UINT64),
        Constant(math.inf, DType.FLOAT16),
        Constant(-math.inf, DType.FLOAT64),
        Constant(math.nan, DType.BFLOAT16),
        Constant(1e-45, DType.FLOAT32),
        Constant(True, DType.BOOL),
    ],
)
def test_a_constant_is_read_back(value: Constant) -> None:
    buffer = Buffer("y", (), value.dtype)
    function = Function("f", (), (buffer,), Store(buffer, (), value))
    assert parse(to_text(function)) == function


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (INDEX - (INDEX - 1), "i - (i - 1)"),
        (INDEX - 1 - Constant(-1, DType.INT64), "i - 1 - -1"),
        ((INDEX + 1) * 2 // 3 % 4, "(i + 1) * 2 // 3 % 4"),
        (INDEX % (INDEX // 2), "i % (i // 2)"),
        (
            (INDEX < 3) & (INDEX < 4) | (INDEX < 5),
            "(i < 3) & (i < 4) | (i < 5)",
        ),
        (Select(INDEX < 3, X[INDEX], X[0]), "select(i < 3, x[i], x[0])"),
        (Cast(DType.INT8, Bitcast(DType.INT32, X[0])), "cast(int8, bitcast(int32, x[0]))"),
        (Binary(BinaryFunction.MIN, INDEX, as_index(3)), "min(i, 3)"),
    ],
)
def test_brackets_are_where_they_must_be(value: Expr, text: str) -> None:
    assert expr_to_text(value) == text


def test_a_deep_expression_is_printed() -> None:
    value: Expr = X[0]
    for _ in range(3000):
        value = Unary(UnaryFunction.NEG, value)
    assert expr_to_text(value).count("neg(") == 3000


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("softmax", "soft\x01", "line 1: .* is not a JSON string"),
        ("x[i, j]", "z[i, j]", "line 8: no buffer 'z' here"),
        ("x[i, j]", "x[i, k]", "line 8: no variable 'k' here"),
        ("x[i, j]", "x[i]", "line 8: x has 1 indices; its buffer has 2 dimensions"),
        ("0.0:float32", "0", "line 6: sum is float32; the value stored is int64"),
        ("0.0:float32", "0.5", "line 6: 0.5 is not a value of int64"),
        ("for j in 10:", "for j in 10", "line 7: found 'the end'; required ':'"),
        ("for j in 10:", "for j in 10 fast:", "line 7: found 'fast'; required ':'"),
        ("add=", "sub=", "line 8: update of sum: sub; required one of add"),
        ("exp(", "expo(", "line 8: no variable 'expo' here"),
        ("exp(", "min(", "line 8: no function 'min' of 1 operands"),
        ("        sum[] add= e", "     sum[] add= e", "line 8: is indented by 5; required 6"),
        ("  input x", "input x", None),
        ("for i", "for 3", "line 4: found '3'; required a name"),
        ("[4, 10]", "[4.5, 10]", "line 2: found '4.5'; required an integer"),
        ("sum[] = 0.0:float32", "sum[] = 0.0:float32 )", "line 6: found '\\)'; required the end"),
        ("float32[4", "float31[4", "line 2: found 'float31'; required a dtype"),
        ("        sum[] add", "       sum[] add", None),
        ("      for j in 10 v", "       for j in 10 v", "line 9: is indented by 7; required 8"),
        ("/ sum[]", "/ sum[]\nfor k in 4:", "line 11: is indented less than what it follows"),
    ],
)
def test_what_is_no_program_is_refused(old: str, new: str, message: str | None) -> None:
    text = SOFTMAX.replace(old, new, 1)
    if message is None:
        assert parse(text) == parse(SOFTMAX)
        return
    with pytest.raises(GraphError, match=message.replace("(", r"\(").replace("[", r"\[")):
        parse(text)


@pytest.mark.parametrize("cut", range(0, len(SOFTMAX), 7))
def test_a_cut_text_is_refused_or_read(cut: int) -> None:
    try:
        function = parse(SOFTMAX[:cut])
    except GraphError:
        return
    assert parse(to_text(function)) == function
