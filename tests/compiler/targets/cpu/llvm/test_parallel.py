"""Parallel loops on several threads give what one gives, however often and from wherever called."""

import multiprocessing
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import (
    BinaryFunction,
    Buffer,
    Constant,
    Scope,
    Variable,
    as_index,
)
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import (
    Allocate,
    For,
    Function,
    If,
    Let,
    LoopKind,
    Store,
    Update,
    block,
)
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions
from dovetail.compiler.targets.cpu.llvm.module import CompiledModule

from ....loops.strategies import arrays_for, functions

ROWS, COLUMNS = 57, 40


def row_sums(scratch: int = 4) -> Function:
    """Each row is copied to a buffer of the thread, scaled by a value from outside, and summed."""
    x = Buffer("x", (ROWS, COLUMNS), DType.FLOAT32)
    y = Buffer("y", (ROWS,), DType.FLOAT32)
    flag = Buffer("flag", (), DType.BOOL)
    row = Buffer("row", (COLUMNS, scratch), DType.FLOAT32, Scope.LOCAL)
    i, j, scale, chosen = (Variable(name) for name in ("i", "j", "scale", "chosen"))
    scale, chosen = replace(scale, dtype=DType.FLOAT32), replace(chosen, dtype=DType.BOOL)
    copy = For("j", as_index(COLUMNS), LoopKind.VECTOR, Store(row, (j, as_index(0)), x[i, j]))
    total = For(
        "j",
        as_index(COLUMNS),
        LoopKind.SERIAL,
        If(chosen, Update(y, (i,), BinaryFunction.ADD, row[j, 0] * scale)),
    )
    start = Store(y, (i,), Constant(0.0, DType.FLOAT32))
    body = For("i", as_index(ROWS), LoopKind.PARALLEL, Allocate(row, block(start, copy, total)))
    outer = Let(scale, x[0, 0] + 1.0, Let(chosen, flag[()], body))
    return Function("sums", (x, flag), (y,), outer)


def compiled(function: Function, threads: int) -> CompiledModule:
    return compile_functions([function], LlvmOptions(threads=threads))


def inputs(seed: int = 0) -> tuple[list, np.ndarray]:
    x = np.random.default_rng(seed).integers(-4, 5, (ROWS, COLUMNS)).astype(np.float32)
    return [x, np.array(True)], (x * (x[0, 0] + 1)).sum(1)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("scratch", [4, 3000])
def test_rows_are_summed_with_memory_of_each_thread(threads: int, scratch: int) -> None:
    module = compiled(row_sums(scratch), threads)
    for seed in range(30):
        given_arrays, expected = inputs(seed)
        np.testing.assert_array_equal(module.run("sums", given_arrays)[0], expected)


def test_large_scratch_memory_is_counted_for_each_thread() -> None:
    sizes = [compiled(row_sums(3000), n).signatures["sums"].workspace_bytes for n in (1, 3)]
    assert sizes == [COLUMNS * 3000 * 4, 3 * COLUMNS * 3000 * 4]


def test_modules_share_a_pool_and_several_callers_do_not_meet() -> None:
    modules = [compiled(row_sums(), 3), compiled(row_sums(3000), 3)]
    wrong: list[int] = []

    def call(number: int) -> None:
        arrays, expected = inputs(number)
        for repeat in range(60):
            found = modules[(number + repeat) % 2].run("sums", arrays)[0]
            if not np.array_equal(found, expected):
                wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def _in_child(queue: "multiprocessing.Queue[bool]") -> None:
    arrays, expected = inputs(3)
    queue.put(bool(np.array_equal(_MODULE[0].run("sums", arrays)[0], expected)))


_MODULE: list[CompiledModule] = []


def test_a_forked_process_has_a_pool_of_its_own() -> None:
    _MODULE.append(compiled(row_sums(), 2))
    arrays, expected = inputs(3)
    np.testing.assert_array_equal(_MODULE[0].run("sums", arrays)[0], expected)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get()
    child.join()


@given(functions())
@settings(max_examples=25)
def test_random_programs_with_parallel_outer_loops(function: Function) -> None:
    if not isinstance(function.body, For):
        return
    if isinstance(function.body.body, Update):
        return
    changed = replace(function, body=replace(function.body, kind=LoopKind.PARALLEL))
    arrays = arrays_for(function)
    expected = interpret(function, arrays)["y"]
    found = compiled(changed, 3).run("random", arrays)[0]
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), 2e-5, 1e-5)
