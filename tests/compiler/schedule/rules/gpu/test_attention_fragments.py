"""Attention whose scores stay in registers: NumPy, the loop interpreter and PTX agree."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.define.definition import Definition, Kind
from dovetail.compiler.define.group import define_group
from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError, ScheduleError
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.attention import Attention
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.expressions import as_index
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.intrinsic import BARRIER, WAIT
from dovetail.compiler.loops.ir import Invoke, LoopKind, Stmt
from dovetail.compiler.loops.rewrite import map_statement
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.rules.gpu.choice import Choice, choices_for
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.schedule.steps.trace import replay, to_record
from dovetail.compiler.targets.gpu.kernels import kernels_of
from dovetail.compiler.targets.gpu.llvm.module import ptx_of
from dovetail.compiler.targets.gpu.lower import launches_of
from dovetail.compiler.targets.gpu.tensor_cores import HOPPER, INTRINSICS
from tests.ptx.assembler import PACKAGE, assemble, find_ptxas
from tests.ptx.machine import run_kernel
from tests.ptx.running import program_of, run_ptx
from tests.ptx.text import read_kernels

from .test_tensor_cores import invoked, without

Arrays = Sequence[NDArray[np.generic]]
HALF, BRAIN = DType.FLOAT16, DType.BFLOAT16
LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True)
class Case:
    """Sizes, and which operands have columns of scores as neighbours in memory."""

    heads: int
    rows: int
    columns: int
    depth: int
    values: int
    turned: str = ""
    bias: bool = False
    chosen: bool = False
    other: float = float("-inf")

    @property
    def operator(self) -> Attention:
        """The labels are heads, rows, columns, depth, values."""
        labels = (
            (0, 1, 3),
            (0, 3, 2) if "k" in self.turned else (0, 2, 3),
            (0, 4, 2) if "v" in self.turned else (0, 2, 4),
        )
        masks = self.bias, self.chosen, self.other
        return Attention(*labels, (0, 1, 2), (1, 0, 4), 0.25, *masks)

    def operands(self, dtype: DType, seed: int = 0) -> Arrays:
        """q, k and v, a bias for each column, and a choice for each score."""
        rng = np.random.default_rng(seed)
        shapes = (
            (self.heads, self.rows, self.depth),
            (self.heads, self.columns, self.depth),
            (self.heads, self.columns, self.values),
        )
        given = [rng.standard_normal(each).astype(dtype.numpy) for each in shapes]
        for number, name in ((1, "k"), (2, "v")):
            if name in self.turned:
                given[number] = given[number].swapaxes(1, 2).copy()
        if self.bias:
            given.append(rng.standard_normal(self.columns).astype(np.float32))
        if self.chosen:
            given.append(rng.random((self.rows, self.columns)) < 0.6)
            # Of the first row only the last one.
            given[-1][0], given[-1][:, -1] = False, True
        return given


@cache
def defined(case: Case, dtype: DType) -> Definition:
    builder = GraphBuilder()
    names = [
        builder.input(f"x{n}", TensorType(each.shape, str(each.dtype)))
        for n, each in enumerate(case.operands(dtype))
    ]
    graph = builder.build((builder.node(case.operator, tuple(names), "y", "attention"),))
    return define_group(graph, graph.nodes)


@cache
def scheduled(case: Case, dtype: DType = HALF) -> Schedule:
    return schedule_group(defined(case, dtype), INTRINSICS)


def in_fragments(schedule: Schedule) -> bool:
    return "row_maximum" in invoked(schedule.function)


def named(given: Arrays) -> dict[str, NDArray[np.generic]]:
    return {f"in{n}": each for n, each in enumerate(given)}


def exact(case: Case, given: Arrays) -> NDArray[np.float64]:
    """In float64, by plain softmax."""
    q, k, v, *masks = (each.astype(np.float64) for each in given)
    k, v = (
        k.swapaxes(1, 2) if "k" in case.turned else k,
        v.swapaxes(1, 2) if "v" in case.turned else v,
    )
    scores = np.einsum("hrd,hcd->hrc", q, k) * 0.25
    scores = scores + masks[0] if case.bias else scores
    scores = np.where(masks[-1], scores, case.other) if case.chosen else scores
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("hrc,hce->rhe", weights / weights.sum(axis=-1, keepdims=True), v)


ERRORS = {HALF: 2e-3, BRAIN: 1.6e-2}
"""Weights of at most 1 are rounded to 11 and 8 bits."""


@pytest.mark.parametrize(("turned", "dtype"), [("", HALF), ("kv", BRAIN)])
def test_loops_and_ptx_agree_with_the_definition(turned: str, dtype: DType) -> None:
    case = Case(1, 20, 72, 16, 16, turned, bias=True, chosen=True)
    schedule = scheduled(case, dtype)
    assert in_fragments(schedule)
    verify(schedule.function, INTRINSICS)
    given = case.operands(dtype)
    want = interpret(defined(case, dtype).function, named(given))["out0"]
    np.testing.assert_allclose(want, exact(case, given), atol=ERRORS[dtype])
    found = interpret(schedule.function, named(given), seed=1, intrinsics=INTRINSICS)["out0"]
    np.testing.assert_allclose(found, want, atol=ERRORS[dtype])
    np.testing.assert_allclose(run_ptx(schedule.function, named(given))["out0"], found, atol=1e-5)


@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        (Case(12, 128, 128, 64, 64, bias=True), HALF),
        (Case(2, 197, 197, 64, 64), BRAIN),
        (Case(1, 48, 200, 128, 64, "k"), HALF),
        (Case(2, 16, 384, 32, 128, chosen=True, other=LOWEST), HALF),
        (Case(1, 64, 1024, 64, 64, "k"), BRAIN),
        (Case(1, 20, 72, 32, 48, "v", bias=True), BRAIN),
        (Case(3, 31, 17, 48, 16, bias=True, chosen=True), HALF),
        (Case(2, 32, 32, 64, 64, "kv"), HALF),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_interpreted_ptx_is_near_the_exact_result(case: Case, dtype: DType, seed: int) -> None:
    schedule = scheduled(case, dtype)
    assert in_fragments(schedule)
    given = case.operands(dtype, seed)
    found = run_ptx(schedule.function, named(given))["out0"]
    np.testing.assert_allclose(found, exact(case, given), atol=ERRORS[dtype])


def test_warps_of_two_tiles_are_near_the_exact_result() -> None:
    case = Case(1, 130, 192, 64, 64, "k", bias=True)
    schedule = Schedule.of(defined(case, HALF).function, INTRINSICS)
    schedule = schedule.bind("rows0", LoopKind.BLOCK).attend(2, 4, 64).overlap("columns0")
    given = case.operands(HALF)
    found = run_ptx(schedule.function, named(given))["out0"]
    np.testing.assert_allclose(found, exact(case, given), atol=ERRORS[HALF])


def test_one_tensor_is_queries_keys_and_values() -> None:
    case, builder = Case(1, 48, 48, 32, 32), GraphBuilder()
    given = case.operands(HALF)[0]
    name = builder.input("x", TensorType(given.shape, HALF))
    graph = builder.build((builder.node(case.operator, (name,) * 3, "y", "attention"),))
    schedule = schedule_group(define_group(graph, graph.nodes), INTRINSICS)
    assert in_fragments(schedule)
    found = run_ptx(schedule.function, named([given]))["out0"]
    np.testing.assert_allclose(found, exact(case, [given] * 3), atol=ERRORS[HALF])


def test_rows_of_which_no_score_stays_weigh_all_values_alike() -> None:
    case = Case(1, 16, 70, 16, 16, chosen=True, other=LOWEST)
    *given, chosen = case.operands(HALF)
    chosen[3] = False
    given.append(chosen)
    found = run_ptx(scheduled(case).function, named(given))["out0"]
    np.testing.assert_allclose(found[3, 0], given[2][0].astype(np.float64).mean(axis=0), atol=1e-3)


def test_scores_of_large_differences_neither_overflow_nor_vanish() -> None:
    case = Case(1, 16, 64, 16, 16)
    given = [
        each * np.float16(scale)
        for each, scale in zip(case.operands(HALF), (100, 100, 1), strict=True)
    ]
    found = run_ptx(scheduled(case).function, named(given))["out0"]
    np.testing.assert_allclose(found, exact(case, given), atol=ERRORS[HALF])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (BARRIER, r"in\d.tile: a thread of .* at the same time"),
        (WAIT, r"in\d.tile: .* may touch what a copy of .* has not ended with"),
    ],
)
def test_a_missing_barrier_or_wait_is_found(name: str, message: str) -> None:
    function = scheduled(Case(1, 32, 192, 16, 16)).function
    assert invoked(function).count(name) == 1
    kernels_of(function)
    with pytest.raises(GraphError, match=message):
        kernels_of(without(function, name, 0))


@pytest.mark.parametrize(("name", "axis"), [("power_of_two", 2), ("narrow_float16", 1)])
def test_what_another_thread_has_in_registers_is_refused(name: str, axis: int) -> None:
    function = scheduled(Case(1, 32, 64, 16, 16)).function

    def moved(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Invoke) or stmt.intrinsic != name:
            return stmt
        first, *others = stmt.operands
        start = [*first.start[:axis], as_index(0), *first.start[axis + 1 :]]
        return replace(stmt, operands=(replace(first, start=tuple(start)), *others))

    broken = replace(function, body=map_statement(function.body, None, moved))
    with pytest.raises(GraphError, match="threads of a block use an array of their block"):
        kernels_of(broken)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"cp\.async\.wait_all;", ""),
        (r"shfl\.sync\.bfly\.b32(.*), (%r\d+), [12], 31, -1;", r"mov.b32\1, \2;"),
    ],
)
def test_results_need_waits_and_exchanges(old: str, new: str) -> None:
    case = Case(1, 16, 128, 16, 16)
    given = case.operands(HALF)
    launches = launches_of(program_of(scheduled(case).function))
    text = ptx_of(launches.kernels, "sm_80")
    assert re.search(old, text)
    results = []
    for each in (text, re.sub(old, new, text)):
        (kernel,), (entry,) = read_kernels(each).values(), launches.entries
        buffers = [array.reshape(-1).view(np.uint8).copy() for array in given]
        buffers.append(np.zeros(16 * 16 * 4, np.uint8))
        run_kernel(kernel, entry.blocks, entry.threads, buffers)
        results.append(buffers[-1].view(np.float32).reshape(16, 1, 16))
    np.testing.assert_allclose(results[0], exact(case, given), atol=ERRORS[HALF])
    assert not np.allclose(results[1], results[0], atol=1e-2)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("case", "threads", "registers"),
    [
        (Case(16, 4096, 4096, 64, 64, "k"), 128, 240),
        (Case(16, 4090, 4090, 64, 64, bias=True), 128, 255),
        (Case(16, 4096, 4096, 64, 64, bias=True, chosen=True), 128, 168),
        (Case(16, 1024, 1024, 64, 64), 256, 128),
        (Case(96, 384, 384, 64, 64, bias=True), 128, 168),
        (Case(12, 128, 128, 64, 64, bias=True), 64, 168),
        (Case(16, 1024, 1024, 128, 128), 256, 168),
    ],
)
def test_kernels_are_assembled_and_stay_in_registers(
    case: Case, threads: int, registers: int, architecture: str
) -> None:
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip(f"no ptxas: pip install {PACKAGE} (47 MB)")
    launches = launches_of(program_of(scheduled(case, BRAIN).function))
    assert launches.entries[0].threads == threads
    text = ptx_of(launches.kernels, architecture)
    assert ".local" not in text
    assert text.count("bar.sync") == 1
    ((used, spilled),) = assemble(ptxas, text, architecture).values()
    assert spilled == 0
    assert used <= registers


@pytest.mark.parametrize(
    ("case", "dtype", "products"),
    [
        (Case(1, 16, 64, 40, 16), HALF, 2),
        (Case(1, 16, 64, 16, 24), HALF, 0),
        (Case(1, 16, 64, 256, 16), HALF, 2),
        (Case(1, 16, 61, 16, 16, "k"), HALF, 2),
        (Case(1, 16, 64, 16, 16), DType.FLOAT32, 0),
    ],
)
def test_other_sizes_and_types_are_computed_otherwise(
    case: Case, dtype: DType, products: int
) -> None:
    """products: on tensor cores, by way of shared memory."""
    schedule = scheduled(case, dtype)
    assert not in_fragments(schedule)
    assert invoked(schedule.function).count("mma_float16_float16") == products
    given = case.operands(dtype)
    found = run_ptx(schedule.function, named(given))["out0"]
    np.testing.assert_allclose(found, exact(case, given), atol=ERRORS[HALF])


@pytest.mark.parametrize(("rows", "parts"), [(16, 1), (128, 1), (64, 2)])
def test_a_search_may_choose_rows_and_tiles(rows: int, parts: int) -> None:
    case = Case(1, 40, 72, 64, 32)
    choice = Choice(rows=rows, parts=parts)
    function = schedule_group(defined(case, HALF), INTRINSICS, choice).function
    assert launches_of(program_of(function)).entries[0].threads == 2 * rows // parts
    given = case.operands(HALF)
    found = run_ptx(function, named(given))["out0"]
    np.testing.assert_allclose(found, exact(case, given), atol=ERRORS[HALF])
    assert choices_for(Kind.ATTENTION, INTRINSICS) == ("rows", "parts")
    assert choices_for(Kind.ATTENTION, {}) == ()


@pytest.mark.parametrize(("rows", "parts"), [(256, 1), (16, 2), (64, 4)])
def test_a_choice_that_does_not_suit_is_refused(rows: int, parts: int) -> None:
    definition = defined(Case(1, 40, 72, 64, 32), HALF)
    with pytest.raises(ScheduleError, match=r"attention by \d+ warps of \d tiles"):
        schedule_group(definition, INTRINSICS, Choice(rows=rows, parts=parts))


def test_threads_that_would_have_no_equal_copies_are_fewer() -> None:
    """Eight warps have more threads than a step has copies of rows of 16."""
    function = scheduled(Case(120, 128, 64, 16, 16)).function
    assert launches_of(program_of(function)).entries[0].threads == 128


def test_a_schedule_is_replayed_from_its_record() -> None:
    case = Case(1, 33, 72, 16, 32)
    again = replay(defined(case, HALF).function, to_record(scheduled(case)), HOPPER)
    assert again.function == scheduled(case).function
