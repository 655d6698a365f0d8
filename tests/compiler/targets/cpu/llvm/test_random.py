"""Random loop programs give the interpreter's result, as scalar code and in lanes."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import For, Function, LoopKind, Stmt
from dovetail.compiler.loops.rewrite import map_statement
from dovetail.compiler.loops.traverse import expressions, walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions

from ....loops.strategies import arrays_for, functions
from .kernels import LEVELS, require


def check(function: Function, level: str = "native") -> None:
    agree(function, function, level)


def agree(function: Function, compiled: Function, level: str = "native") -> None:
    """``compiled`` as machine code computes what ``function`` means."""
    require(level)
    inputs = arrays_for(function)
    expected = interpret(function, inputs)
    found = compile_functions([compiled], LlvmOptions(level)).run(function.name, inputs)
    for buffer, array in zip(function.outputs, found, strict=True):
        want = expected[buffer.name]
        if buffer.dtype.is_float:
            wide = np.float64
            np.testing.assert_allclose(
                array.astype(wide), want.astype(wide), rtol=2e-5, atol=1e-5, equal_nan=True
            )
        else:
            np.testing.assert_array_equal(array, want)


def with_kinds(function: Function, source: random.Random) -> Function:
    """Its loops made vector, parallel or unrolled where ``verify`` finds no race.

    The order of sums of narrow floats is kept: another one is rounded too differently.
    """
    narrow = {DType.FLOAT16, DType.BFLOAT16} & {each.dtype for each in expressions(function.body)}
    for name in [stmt.variable for stmt in walk(function.body) if isinstance(stmt, For)]:
        if narrow and ".k" in name:
            continue
        kind = source.choice([LoopKind.VECTOR, LoopKind.VECTOR, *LoopKind][:6])

        def change(stmt: Stmt, name: str = name, kind: LoopKind = kind) -> Stmt:
            return replace(stmt, kind=kind) if getattr(stmt, "variable", None) == name else stmt

        changed = replace(function, body=map_statement(function.body, None, change))
        try:
            verify(changed)
        except GraphError:
            continue
        function = changed
    return function


@given(functions())
@settings(max_examples=60)
def test_random_programs_equal_the_interpreter(function: Function) -> None:
    check(function)


@given(functions(dtypes=tuple(DType), max_size=9), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_random_programs_with_loops_of_all_kinds(function: Function, source: random.Random) -> None:
    check(with_kinds(function, source))


@pytest.mark.parametrize("level", LEVELS[:3])
@given(functions(max_size=17), st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_random_programs_at_every_level(
    level: str, function: Function, source: random.Random
) -> None:
    check(with_kinds(function, source), level)
