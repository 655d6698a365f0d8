"""Random loop programs give the interpreter's result, as scalar code and in lanes."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.backends.llvm.compile import LlvmOptions, compile_functions
from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Allocate, Block, For, Function, If, Let, LoopKind, Stmt

from ...loops.strategies import arrays_for, functions
from .kernels import LEVELS


def check(function: Function, level: str = "native") -> None:
    inputs = arrays_for(function)
    expected = interpret(function, inputs)
    found = compile_functions([function], LlvmOptions(level)).run(function.name, inputs)
    for buffer, array in zip(function.outputs, found, strict=True):
        want = expected[buffer.name]
        if buffer.dtype.is_float:
            wide = np.float64
            np.testing.assert_allclose(
                array.astype(wide), want.astype(wide), rtol=2e-5, atol=1e-5, equal_nan=True
            )
        else:
            np.testing.assert_array_equal(array, want)


def with_kinds(stmt: Stmt, source: random.Random) -> Stmt:
    """Innermost loops made vector or unrolled where the program's order does not matter."""
    match stmt:
        case For():
            body = with_kinds(stmt.body, source)
            kind = stmt.kind
            if not stmt.variable.endswith(".first") and source.random() < 0.6:
                kind = LoopKind.UNROLLED
            return replace(stmt, body=body, kind=kind)
        case Block():
            return Block(tuple(with_kinds(inner, source) for inner in stmt.statements))
        case Allocate() | Let():
            return replace(stmt, body=with_kinds(stmt.body, source))
        case If():
            other = None if stmt.otherwise is None else with_kinds(stmt.otherwise, source)
            return replace(stmt, then=with_kinds(stmt.then, source), otherwise=other)
        case _:
            return stmt


@given(functions())
@settings(max_examples=60)
def test_random_programs_equal_the_interpreter(function: Function) -> None:
    check(function)


@given(functions(dtypes=tuple(DType)), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_random_programs_of_all_dtypes_partly_unrolled(
    function: Function, source: random.Random
) -> None:
    check(replace(function, body=with_kinds(function.body, source)))


@pytest.mark.parametrize("level", LEVELS[:3])
@given(functions())
@settings(max_examples=15)
def test_random_programs_at_every_level(level: str, function: Function) -> None:
    check(function, level)
