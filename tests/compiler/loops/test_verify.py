"""The rules of loop programs; each broken one is named."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    Load,
    Scope,
    Select,
    Variable,
    as_index,
)
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import (
    Allocate,
    For,
    Function,
    If,
    Invoke,
    LoopKind,
    Region,
    Stmt,
    Store,
    loops,
)
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.rewrite import map_statement
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify

from .strategies import arrays_for, functions
from .test_interpreter import DOT

HEAD = """
function "f"
  input x: float32[8, 6]
  input n: int64[4]
  output y: float32[8, 6]
"""


def written(body: str) -> Function:
    return parse(HEAD + body)


@settings(max_examples=150, deadline=None)
@given(functions())
def test_random_functions_are_proved(function: Function) -> None:
    verify(function)


@pytest.mark.parametrize(
    "body",
    [
        # A guarded tail, a tail of fewer iterations, a padded window, a clamped gather.
        """
  for o in 3:
    for i in 3:
      if o * 3 + i < 8:
        y[o * 3 + i, 0] = x[o * 3 + i, 0]""",
        """
  for o in 3:
    for i in min(3, 8 - o * 3):
      y[o * 3 + i, 0] = x[o * 3 + i, 0]""",
        """
  for i in 8 parallel:
    for j in 6 vector:
      for k in 3:
        y[i, j] add= select((0 <= i + k - 1) & (i + k - 1 < 8), x[i + k - 1, j], 0.0:float32)""",
        """
  for i in 4:
    y[i, 0] = x[max(0, min(n[i], 7)), 0]""",
        """
  for f in 48 parallel:
    y[f // 6, f % 6] = x[f // 6, f % 6]""",
        """
  for o in 2 parallel:
    for i in 24:
      let f: int64 = o * 24 + i:
        y[f // 6, f % 6] = x[f // 6, f % 6]""",
        """
  for i in 8 thread:
    alloc t: float32[6] local:
      for j in 6:
        t[j] = x[i, j]
      for j in 6 vector:
        y[i, j] = t[5 - j]""",
        """
  for i in 0:
    y[i + 100, 0] = 0.0:float32""",
        """
  for i in 8:
    for j in i + 1:
      if j < 6:
        y[i, j] = x[i - j, j]""",
        """
  for o in 3:
    for f in min(3, 8 - o * 3) * 2:
      y[o * 3 + f // 2, f % 2] = x[o * 3 + f // 2, f % 2]""",
        # A mirrored border.
        """
  for i in 14:
    let m: int64 = (i - 3) % 10:
      y[i // 2, 0] = x[0, select(m < 6, m, 10 - m)] + x[max(m - 2, 0), min(m, 5)]""",
        """
  for i in 4:
    if min(n[i], n[0]) < 6:
      y[0, max(min(n[i], n[0]), 0)] = x[0, 0]""",
        # A guard in elements for an index in blocks.
        """
  for i in 5:
    for j in 2:
      if (0 <= i * 2 + j - 2) & (i * 2 + j - 2 < 8):
        y[(i * 2 + j - 2) // 2, (i * 2 + j - 2) % 2] = x[(i * 2 + j - 2) // 2, 0]""",
        # A count that a guard holds back, until it grows.
        """
  alloc c: int64[] local:
    c[] = 0
    for i in 8:
      if (0 <= c[]) & (c[] < 6):
        y[0, c[]] = x[i, c[]]
        c[] add= 1""",
        # A horizontal sum in vector lanes.
        """
  for i in 8:
    for j in 6 vector:
      y[i, 0] add= x[i, j]""",
    ],
)
def test_a_program_that_keeps_the_rules_is_accepted(body: str) -> None:
    verify(written(body))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  x[0, 0] = 0.0:float32", "input x is written"),
        ("  for i in 9:\n    y[i, 0] = 0.0:float32", "dimension 0, may be 0 to 8; required 0 to 7"),
        (
            "  for i in 8:\n    y[i, 0] = x[i - 1, 0]",
            "index i - 1 of x, dimension 0, may be -1 to 6",
        ),
        ("  y[n[0], 0] = 0.0:float32", "index n.0. of y, dimension 0, may be -9223372036854775808"),
        (
            "  for i in 8:\n    if i < 7:\n      y[i, 0] = x[i + 2, 0]",
            r"index i \+ 2 of x, dimension 0, may be 2 to 8",
        ),
        (
            "  for i in 8:\n    y[i, 0] = select(i < 7, 0.0:float32, x[i + 1, 0])",
            "may be 8 to 8",
        ),
        ("  for i in 2:\n    for i in 2:\n      y[i, i] = 0.0:float32", "a variable i already"),
        ("  alloc y: float32[] local:\n    y[] = 0.0:float32", "a buffer y already"),
        ("  for i in n[0] vector:\n    y[0, 0] = 0.0:float32", "must be constant"),
        (
            "  alloc t: float32[4] register:\n    for i in 4:\n      t[i] = 0.0:float32",
            "register t is indexed by i; required constants",
        ),
        (
            "  for i in 8 parallel:\n    y[0, 0] = x[i, 0]",
            "iterations touch the same element of y, by 'y.*' in two iterations",
        ),
        ("  for i in 8 parallel:\n    y[0, 0] add= x[i, 0]", "touch the same element of y"),
        (
            "  for i in 7 vector:\n    y[i + 1, 0] = y[i, 0]",
            r"same element of y, by 'y\[i \+ 1, 0\] = y\[i, 0\]' in two iterations",
        ),
        (
            "  for i in 7 block:\n    y[i, 0] = x[i, 0]\n    y[i + 1, 1] = y[i, 0] + y[i, 1]",
            "same element of y",
        ),
        (
            "  alloc t: float32[] local:\n    for i in 8 parallel:\n      t[] = x[i, 0]\n"
            "      y[i, 0] = t[]",
            "same element of t",
        ),
        (
            "  alloc c: int64[] local:\n    c[] = 0\n    if (0 <= c[]) & (c[] < 6):\n"
            "      c[] = 9\n      y[0, c[]] = 0.0:float32",
            "index c.. of y, dimension 1, may be -9223372036854775808",
        ),
        (
            "  alloc c: int64[] local:\n    c[] = 0\n    let v: int64 = c[]:\n      c[] = 9\n"
            "      if (0 <= v) & (v < 6):\n        y[0, v] = 0.0:float32\n"
            "        y[0, c[]] = 0.0:float32",
            "index c.. of y, dimension 1",
        ),
        (
            "  alloc c: int64[] local:\n    c[] = 0\n    if (0 <= c[]) & (c[] < 6):\n"
            "      for i in 2:\n        y[0, c[]] = 0.0:float32\n        c[] add= 7",
            "index c.. of y, dimension 1, may be -9223372036854775808",
        ),
        (
            "  alloc c: int64[8] local:\n    for j in 8:\n      c[j] = 0\n"
            "    for i in 4 parallel:\n      if (0 <= c[i]) & (c[i] < 3):\n"
            "        let v: int64 = c[i]:\n          c[i] = 9\n"
            "          if (0 <= v) & (v < 3):\n            y[i + v, 0] = x[i, 0]",
            "same element of y",
        ),
        (
            "  for i in 4 parallel:\n    let v: int32 = cast(int32, n[i]):\n"
            "      if (0 <= cast(int64, v)) & (cast(int64, v) < 3):\n"
            "        y[i + cast(int64, v), 0] = x[i, 0]",
            "same element of y",
        ),
        ("  for f in 48 parallel:\n    y[f // 7, f % 6] = 0.0:float32", "same element of y"),
        (
            "  for o in 3 parallel:\n    for i in 3:\n      y[o * 2 + i, 0] = 0.0:float32",
            "same element of y",
        ),
    ],
)
def test_a_broken_rule_is_named(body: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        verify(written("\n" + body), scheduled=True)


Y = Buffer("y", (4,), DType.FLOAT32)
N = Buffer("n", (4,), DType.INT32)
ZERO = Constant(0.0, DType.FLOAT32)
YES = Constant(True, DType.BOOL)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (Store(Y, (Variable("i"),), ZERO), "no variable i here; required int64"),
        (Store(Y, (Constant(0, DType.INT32),), ZERO), "index of y is int32; required int64"),
        (Store(Y, (as_index(0),), Buffer("z", (), DType.FLOAT32)[()]), "no buffer z here"),
        (Store(replace(Y, shape=(5,)), (as_index(0),), ZERO), "it was declared as"),
        (If(ZERO, Store(Y, (as_index(0),), ZERO)), "condition is float32; required bool"),
        (
            For("i", Constant(4, DType.INT32), LoopKind.SERIAL, Store(Y, (as_index(0),), ZERO)),
            "extent",
        ),
        (
            Store(Y, (as_index(0),), Binary(BinaryFunction.XOR, ZERO, ZERO)),
            "xor of float32; required integers or bool",
        ),
        (
            Store(Y, (as_index(0),), Binary(BinaryFunction.SHL, ZERO, ZERO)),
            "shl of float32; required integers",
        ),
        (
            Store(Y, (as_index(0),), Cast(DType.FLOAT32, Binary(BinaryFunction.ADD, YES, YES))),
            "add of bool; cast to an integer",
        ),
        (Allocate(replace(Y, name="t", shape=(-1,)), Store(Y, (as_index(0),), ZERO)), "negative"),
        (
            Invoke("any", (Region(Y, (as_index(0), as_index(0)), (1, 1)),)),
            "the region of y has a wrong rank",
        ),
        (
            Store(Y, (as_index(0),), Bitcast(DType.FLOAT32, Constant(1, DType.INT64))),
            "bitcast of int64 to float32",
        ),
    ],
)
def test_a_wrong_type_or_name_is_named(body: Stmt, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        verify(Function("f", (N,), (Y,), body))


def test_indices_of_data_may_be_trusted() -> None:
    gather = written("\n  for i in 4:\n    let v: int64 = n[i]:\n      y[v + 1, 0] = x[n[v], 0]")
    with pytest.raises(GraphError, match="may be -9223372036854775808"):
        verify(gather)
    verify(gather, trust_data=True)
    with pytest.raises(GraphError, match="may be 0 to 8"):
        verify(written("\n  for i in 9:\n    y[i, 0] = x[n[0], 0]"), trust_data=True)


def test_parameters_of_one_name_or_not_global_are_refused() -> None:
    store = Store(Y, (as_index(0),), ZERO)
    with pytest.raises(GraphError, match="two parameters are named y"):
        verify(Function("f", (Y,), (Y,), store))
    with pytest.raises(GraphError, match="parameter z is local; required global"):
        verify(Function("f", (Buffer("z", (), DType.INT8, Scope.LOCAL),), (Y,), store))


def test_regions_of_an_intrinsic_are_checked() -> None:
    text = """
        function "f"
          input x: int8[8]
          output y: int32[2]
          for i in 2:
            invoke dot(x[i * 4 : 4], x[4 : 4], y[i : 1])
        """
    verify(parse(text), {"dot": DOT})
    with pytest.raises(GraphError, match="may be 0 to 8"):
        verify(parse(text.replace("i * 4 : 4", "i * 5 : 4")), {"dot": DOT})
    with pytest.raises(GraphError, match="same element of y"):
        verify(parse(text.replace("y[i", "y[0").replace("in 2:", "in 2 parallel:")), {"dot": DOT})


@settings(max_examples=150, deadline=None)
@given(functions(), st.data())
def test_loops_that_are_accepted_as_parallel_run_in_any_order(
    function: Function, data: st.DataObject
) -> None:
    loops_ = [each.variable for each in walk(function.body) if isinstance(each, For)]
    if not loops_:
        return
    name = data.draw(st.sampled_from(loops_))

    def change(stmt: Stmt) -> Stmt:
        chosen = isinstance(stmt, For) and stmt.variable == name
        return replace(stmt, kind=LoopKind.PARALLEL) if chosen else stmt

    parallel = replace(function, body=map_statement(function.body, None, change))
    try:
        verify(parallel)
    except GraphError:
        return
    arrays = arrays_for(function)
    expected = interpret(function, arrays)["y"]
    for seed in range(2):
        found = interpret(parallel, arrays, seed=seed)["y"]
        np.testing.assert_array_equal(found, expected, err_msg=to_text(parallel))


def test_a_large_nest_is_checked_quickly() -> None:
    x = Buffer("x", (1, 64, 58, 58), DType.FLOAT32)
    w = Buffer("w", (64, 64, 3, 3), DType.FLOAT32)
    y = Buffer("y", (1, 64, 56, 56), DType.FLOAT32)
    n, o, r, c, i, kr, kc = (Variable(name) for name in ("n", "o", "r", "c", "i", "kr", "kc"))
    product = Load(x, (n, i, r + kr, c + kc)) * Load(w, (o, i, kr, kc))
    around = (("n", 1), ("o", 64), ("r", 56), ("c", 56), ("i", 64), ("kr", 3), ("kc", 3))
    store = loops(around[:4], Store(y, (n, o, r, c), product), LoopKind.PARALLEL)
    del store
    verify(Function("conv", (x, w), (y,), loops(around, Store(y, (n, o, r, c), product))))


def test_many_nested_selects_are_checked_quickly() -> None:
    sizes = range(100)
    inputs = tuple(Buffer(f"x{n}", (8,), DType.FLOAT32) for n in sizes)
    i = Variable("i")
    value: Expr = inputs[-1][i - 8 * 99]
    for n in reversed(sizes[:-1]):
        value = Select(i < 8 * (n + 1), inputs[n][i - 8 * n], value)
    y = Buffer("y", (800,), DType.FLOAT32)
    verify(Function("concat", inputs, (y,), loops((("i", 800),), Store(y, (i,), value))))
    shared: Expr = inputs[0][i % 8]
    for n in range(40):
        inside = (as_index(0) <= i - n) & (i < 800 - n)
        shared = Select(inside, shared + 1.0, shared * 0.5)
    verify(Function("pads", inputs, (y,), loops((("i", 800),), Store(y, (i,), shared))))
