"""Products on tensor cores: NumPy, the loop interpreter and interpreted PTX agree."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.define.group import define_group
from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.contractions import Convolution
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.expressions import Scope
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.intrinsic import BARRIER, WAIT, WAIT_BEFORE
from dovetail.compiler.loops.ir import Allocate, Function, Invoke, Region, Stmt, block
from dovetail.compiler.loops.rewrite import map_statement
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.rules.gpu.choice import DEFAULT, Choice
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.compiler.schedule.rules.gpu.tensor_tiles import TILES, registers_of
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.schedule.steps.trace import replay, to_record
from dovetail.compiler.targets.gpu.kernels import kernels_of
from dovetail.compiler.targets.gpu.llvm.module import ARCHITECTURES, ptx_of
from dovetail.compiler.targets.gpu.lower import launches_of
from dovetail.compiler.targets.gpu.tensor_cores import INTRINSICS, PRODUCTS
from tests.ptx.assembler import PACKAGE, assemble, find_ptxas
from tests.ptx.machine import run_kernel
from tests.ptx.running import program_of, run_ptx
from tests.ptx.text import read_kernels

from .products import by_rows

BYTES = (DType.INT8, DType.INT8)
Change = Callable[[Region, Region], tuple[Region, Region]]
SMALL = Choice(rows=16, columns=32, warps=1)
DEEP = replace(SMALL, column_warps=2, buffers=3)


def scheduled(
    rows: int,
    columns: int,
    depth: int,
    dtypes: tuple[DType, DType] = BYTES,
    choice: Choice = DEFAULT,
) -> Schedule:
    schedule = schedule_group(by_rows(rows, columns, depth, dtypes), INTRINSICS, choice)
    name = f"mma_{dtypes[0]}_{dtypes[1]}_beside"
    assert name in invoked(schedule.function)
    return schedule


def invoked(function: Function) -> list[str]:
    return [each.intrinsic for each in walk(function.body) if isinstance(each, Invoke)]


def operands(
    rng: np.random.Generator, rows: int, columns: int, depth: int, dtypes: tuple[DType, DType]
) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    given = {}
    for number, (count, dtype) in enumerate(zip((rows, columns), dtypes, strict=True)):
        limits = (-4, 5) if dtype.is_float else (0, 256) if dtype is DType.UINT8 else (-128, 128)
        given[f"in{number}"] = rng.integers(*limits, (count, depth)).astype(dtype.numpy)
    return given


def expected(given: dict[str, np.ndarray], total: type) -> np.ndarray:  # type: ignore[type-arg]
    return given["in0"].astype(total) @ given["in1"].astype(total).T


@pytest.mark.parametrize(
    ("sizes", "dtypes"),
    [
        ((16, 17, 19), BYTES),
        ((16, 18, 16), (DType.FLOAT16, DType.FLOAT16)),
    ],
)
def test_loops_ptx_and_numpy_agree(
    sizes: tuple[int, int, int], dtypes: tuple[DType, DType]
) -> None:
    function = scheduled(*sizes, dtypes).function
    verify(function, INTRINSICS)
    given = operands(np.random.default_rng(0), *sizes, dtypes)
    want = expected(given, np.float32 if dtypes[0].is_float else np.int32)
    found = interpret(function, given, seed=1, intrinsics=INTRINSICS)["out0"]
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(run_ptx(function, given)["out0"], want)


@pytest.mark.parametrize("seed", range(len(PRODUCTS)))
def test_ptx_of_random_sizes_and_types_agrees_with_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    every = [tuple(each.meaning.inputs[n].dtype for n in (0, 1)) for each in PRODUCTS.values()]
    first, second = every[seed]
    rows, columns, depth = (int(each) for each in rng.integers(16, 80, 3))
    if seed % 2:
        depth = 128
    given = operands(rng, rows, columns, depth, (first, second))
    found = run_ptx(scheduled(rows, columns, depth, (first, second)).function, given)["out0"]
    want = expected(given, np.float32 if first.is_float else np.int32)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    ("architecture", "dtype"),
    list(zip(ARCHITECTURES, (DType.INT8, DType.FLOAT16, DType.BFLOAT16), strict=True)),
)
def test_large_tiles_are_assembled_and_stay_in_registers(architecture: str, dtype: DType) -> None:
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip(f"no ptxas: pip install {PACKAGE} (47 MB)")
    choice = Choice(rows=128, columns=128, warps=2, column_warps=4, parts=2)
    function = scheduled(2048, 2048, 256, (dtype, dtype), choice).function
    text = ptx_of(launches_of(program_of(function)).kernels, architecture)
    # 4 x 2 products of 16 x 16, from 4 + 2 fragments, for each of two depths.
    assert text.count("mma.sync") == 2 * 2 * 4 * 2
    assert text.count("ldmatrix") == 2 * (4 + 2)
    assert ".local" not in text
    ((_, spilled),) = assemble(ptxas, text, architecture).values()
    assert spilled == 0


@pytest.mark.parametrize("tile", TILES)
def test_every_tile_is_assembled_and_stays_in_registers(tile: tuple[int, int, int, int]) -> None:
    """As many registers as the estimate takes it to have, or fewer."""
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip(f"no ptxas: pip install {PACKAGE} (47 MB)")
    rows, columns, row_warps, column_warps = tile
    choice = Choice(
        rows=rows, columns=columns, warps=row_warps, column_warps=column_warps, parts=4, buffers=3
    )
    function = scheduled(1024, 1024, 512, (DType.FLOAT16, DType.FLOAT16), choice).function
    launches = launches_of(program_of(function))
    ((used, spilled),) = assemble(ptxas, ptx_of(launches.kernels, "sm_80"), "sm_80").values()
    assert spilled == 0
    assert used <= registers_of(choice)
    (entry,) = launches.entries
    declared = [3 * each * (128 + 16) for each in (rows, columns)]
    given = sum(-(-each // 1024) * 1024 for each in declared) + 1024
    assert entry.shared_bytes == (0 if sum(declared) <= 48 << 10 else given)


def without(function: Function, name: str, number: int) -> Function:
    """The function without one of its calls of an intrinsic."""
    seen: list[Stmt] = []

    def change(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Invoke) and stmt.intrinsic == name:
            seen.append(stmt)
            return block() if len(seen) - 1 == number else stmt
        return stmt

    return replace(function, body=map_statement(function.body, None, change))


@pytest.mark.parametrize(
    ("depth", "name", "number", "message"),
    [
        (100, BARRIER, 0, r"in\d.tile: a thread of .* at the same time"),
        (100, BARRIER, 1, r"in\d.tile: a thread of .* at the same time"),
        (128, BARRIER, 0, r"in\d.tile: a thread of .* at the same time"),
        (128, WAIT, 0, r"in\d.tile: o0.warp.sum may touch what a copy of .* has not ended with"),
    ],
)
def test_a_missing_barrier_or_wait_is_found(
    depth: int, name: str, number: int, message: str
) -> None:
    function = scheduled(32, 32, depth, choice=SMALL).function
    assert invoked(function).count(BARRIER) == (2 if depth % 64 else 1)
    kernels_of(function)
    with pytest.raises(GraphError, match=message):
        kernels_of(without(function, name, number))


@pytest.mark.parametrize(
    ("name", "number", "message"),
    [
        (BARRIER, 0, r"in\d.tile: a thread of .* at the same time"),
        (WAIT_BEFORE, 0, r"in\d.tile: o0.warp.sum may touch what a copy of .* has not ended with"),
        (WAIT_BEFORE, 1, r"in\d.tile: .* may touch what a copy of .* has not ended with"),
    ],
)
def test_copies_of_two_steps_are_waited_for(name: str, number: int, message: str) -> None:
    function = scheduled(32, 32, 256, choice=DEEP).function
    kernels_of(function)
    with pytest.raises(GraphError, match=message):
        kernels_of(without(function, name, number))


@pytest.mark.parametrize("depth", [128, 192, 320])
def test_loops_and_ptx_with_three_buffers_agree_with_numpy(depth: int) -> None:
    function = scheduled(32, 64, depth, choice=DEEP).function
    verify(function, INTRINSICS)
    given = operands(np.random.default_rng(5), 32, 64, depth, BYTES)
    want = expected(given, np.int32)
    found = interpret(function, given, seed=1, intrinsics=INTRINSICS)["out0"]
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(run_ptx(function, given)["out0"], want)


def test_interpreted_copies_are_there_only_after_a_wait() -> None:
    function = scheduled(16, 32, 128, choice=SMALL).function
    given = operands(np.random.default_rng(2), 16, 32, 128, BYTES)
    launches = launches_of(program_of(function))
    text = ptx_of(launches.kernels, "sm_80")
    results = []
    for each in (text, text.replace("cp.async.wait_all;", "")):
        (kernel,) = read_kernels(each).values()
        buffers = [given[name].reshape(-1).view(np.uint8).copy() for name in ("in0", "in1")]
        buffers.append(np.zeros(16 * 32 * 4, np.uint8))
        run_kernel(kernel, launches.entries[0].blocks, launches.entries[0].threads, buffers)
        results.append(buffers[2].view(np.int32).reshape(16, 32))
    np.testing.assert_array_equal(results[0], expected(given, np.int32))
    assert (results[1] != results[0]).any()


def test_sums_that_are_not_those_of_a_warp_are_refused() -> None:
    function = scheduled(16, 32, 32).function

    def moved(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Invoke) and stmt.intrinsic != BARRIER:
            a, b, c = stmt.operands
            c = type(c)(c.buffer, (c.start[0], c.start[1], c.start[3] + 1, *c.start[3:]), c.shape)
            return Invoke(stmt.intrinsic, (a, b, c))
        return stmt

    broken = Function(
        "f", function.inputs, function.outputs, map_statement(function.body, None, moved)
    )
    with pytest.raises(GraphError, match="threads of a block use an array of their block"):
        kernels_of(broken)


def test_places_that_an_instruction_does_not_reach_are_refused() -> None:
    function = scheduled(16, 32, 128, choice=SMALL).function
    product = "mma_int8_int8_beside"

    def on(each: Region) -> Region:
        return replace(each, start=(*each.start[:-1], each.start[-1] + 8))

    def anywhere(each: Region) -> Region:
        return replace(each, buffer=replace(each.buffer, scope=Scope.GLOBAL))

    for name, change, message in (
        ("copy_int8", lambda a, b: (on(a), b), "in.: a thread copies 16 bytes; required rows at"),
        ("copy_int8", lambda a, b: (b, a), "found a copy from shared to global memory; required"),
        ("copy_int8", lambda a, b: (a, a), "found a copy from global to global memory; required"),
        (product, lambda a, b: (a, on(b)), "in1.tile: a warp reads rows of 32 bytes; required"),
        (product, lambda a, b: (anywhere(a), b), "a warp reads global memory; required shared"),
    ):

        def moved(stmt: Stmt, name: str = name, change: Change = change) -> Stmt:
            if isinstance(stmt, Invoke) and stmt.intrinsic == name:
                return replace(stmt, operands=(*change(*stmt.operands[:2]), *stmt.operands[2:]))
            return stmt

        broken = replace(function, body=map_statement(function.body, None, moved))
        with pytest.raises(GraphError, match=message):
            ptx_of(launches_of(program_of(broken)).kernels, "sm_80")


def test_a_schedule_is_replayed_from_its_record() -> None:
    definition = by_rows(20, 33, 40, BYTES)
    schedule = schedule_group(definition, INTRINSICS)
    again = replay(definition.function, to_record(schedule), INTRINSICS)
    assert again.function == schedule.function


def test_small_products_and_other_targets_have_no_tiles_of_warps() -> None:
    assert invoked(schedule_group(by_rows(8, 64, 64, BYTES), INTRINSICS).function) == [BARRIER]
    function = schedule_group(by_rows(64, 64, 64, BYTES)).function
    assert not any(each.startswith("mma") for each in invoked(function))
    assert any(isinstance(each, Allocate) for each in walk(function.body))


def test_a_convolution_of_one_pixel_has_no_tiles() -> None:
    """Such as after a mean over the image: only its channels are loops."""
    builder = GraphBuilder()
    kinds = TensorType((1, 32, 1, 1), "float16"), TensorType((48, 32, 1, 1), "float16")
    names = [builder.input(name, kind) for name, kind in zip("xw", kinds, strict=True)]
    operator = Convolution((1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1, DType.FLOAT32)
    graph = builder.build((builder.node(operator, tuple(names), "y", "convolution"),))
    function = schedule_group(define_group(graph, graph.nodes), INTRINSICS).function
    assert invoked(function) == []
    rng = np.random.default_rng(4)
    given = {
        f"in{number}": rng.integers(-4, 5, kind.shape).astype(np.float16)
        for number, kind in enumerate(kinds)
    }
    want = given["in1"].reshape(48, 32).astype(np.float32) @ given["in0"].reshape(32)
    np.testing.assert_array_equal(run_ptx(function, given)["out0"].reshape(48), want)
