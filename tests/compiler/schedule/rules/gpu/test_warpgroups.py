"""Products by warpgroups: NumPy, the loop interpreter and interpreted PTX agree."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dovetail.compiler.define.definition import Kind
from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError, ScheduleError
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.intrinsic import BARRIER, WAIT, WAIT_BEFORE
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.rules.gpu.choice import Choice, choices_for
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.compiler.schedule.rules.gpu.tensor_cores import on_tensor_cores
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.schedule.steps.trace import replay, to_record
from dovetail.compiler.targets.gpu.kernels import kernels_of
from dovetail.compiler.targets.gpu.llvm.module import ptx_of
from dovetail.compiler.targets.gpu.lower import launches_of
from dovetail.compiler.targets.gpu.tensor_cores import HOPPER, INTRINSICS
from tests.ptx.assembler import PACKAGE, assemble, find_ptxas
from tests.ptx.machine import PtxError, run_kernel
from tests.ptx.operations import UnknownInstructionError
from tests.ptx.running import program_of, run_ptx
from tests.ptx.text import read_kernels

from .products import by_rows
from .test_tensor_cores import expected, invoked, operands, without

HALF, BYTES = (DType.FLOAT16, DType.FLOAT16), (DType.INT8, DType.INT8)
SMALL = Choice(rows=64, columns=16, groups=1, parts=1)
Sizes = tuple[int, int, int]
Types = tuple[DType, DType]


@cache
def scheduled(sizes: Sizes, choice: Choice, dtypes: Types = HALF) -> Schedule:
    schedule = Schedule.of(by_rows(*sizes, dtypes).function, HOPPER)
    return on_tensor_cores(schedule, choice)


def test_loops_and_ptx_agree_with_numpy() -> None:
    sizes = (64, 16, 64)
    function = scheduled(sizes, SMALL).function
    assert invoked(function).count("wgmma_float16_float16_16") == 1
    verify(function, HOPPER)
    given = operands(np.random.default_rng(0), *sizes, HALF)
    want = expected(given, np.float32)
    found = interpret(function, given, seed=1, intrinsics=HOPPER)["out0"]
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(run_ptx(function, given, "sm_90a")["out0"], want)


@pytest.mark.parametrize(
    ("sizes", "choice", "dtypes"),
    [
        ((128, 128, 128), Choice(rows=128, columns=64, groups=2, parts=1), HALF),
        ((100, 40, 256), Choice(rows=128, columns=32, groups=1), (DType.BFLOAT16,) * 2),
        ((64, 192, 128), Choice(rows=64, columns=192, groups=1, parts=1), BYTES),
        ((64, 16, 512), Choice(rows=64, columns=16, groups=1), (DType.UINT8, DType.INT8)),
        ((64, 32, 384), Choice(rows=64, columns=32, groups=1, parts=1, buffers=4), HALF),
    ],
)
def test_ptx_of_tiles_and_types_agrees_with_numpy(
    sizes: Sizes, choice: Choice, dtypes: Types
) -> None:
    given = operands(np.random.default_rng(1), *sizes, dtypes)
    found = run_ptx(scheduled(sizes, choice, dtypes).function, given, "sm_90a")["out0"]
    want = expected(given, np.float32 if dtypes[0].is_float else np.int32)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    ("choice", "dtypes", "registers"),
    [
        (Choice(rows=256, columns=192, groups=2, parts=1, buffers=4), HALF, 248),
        (Choice(rows=128, columns=128, groups=2), BYTES, 128),
    ],
)
def test_large_tiles_are_assembled_without_spills_or_waits_between_products(
    choice: Choice, dtypes: Types, registers: int
) -> None:
    """The assembler says where it makes products wait for each other: as a note on performance."""
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip(f"no ptxas: pip install {PACKAGE} (47 MB)")
    function = scheduled((4096, 4096, 4096), choice, dtypes).function
    text = ptx_of(launches_of(program_of(function)).kernels, "sm_90a")
    tiles = choice.rows // choice.groups // 64
    assert text.count("wgmma.mma_async") == 4 * choice.parts * tiles
    assert text.count("cp.async.wait_group") == (2 if choice.buffers == 4 else 0)
    assert ".local" not in text
    # Neighbouring sums of a thread are stored together, but for some that may be beyond the matrix.
    sums = choice.rows * choice.columns // (128 * choice.groups)
    assert text.count("st.global.v4.b32") > sums // 6
    notes: list[str] = []
    ((used, spilled),) = assemble(ptxas, text, "sm_90a", notes).values()
    assert spilled == 0
    assert used <= registers
    assert not any("wgmma" in each for each in notes)


@pytest.mark.parametrize(
    ("depth", "name", "number", "message"),
    [
        (128, BARRIER, 0, r"in\d.tile: a thread of .* at the same time"),
        (128, BARRIER, 1, r"in\d.tile: a thread of .* at the same time"),
        (128, WAIT, 0, r"in\d.tile: o0.group.sum may touch what a copy of .* has not ended with"),
        (128, WAIT, 1, r"in\d.tile: .* may touch what a copy of .* has not ended with"),
        (64, WAIT, 1, r"acc0: o0.group.end may touch what a copy of o0.* has not ended with"),
    ],
)
def test_a_missing_barrier_or_wait_is_found(
    depth: int, name: str, number: int, message: str
) -> None:
    function = scheduled((64, 16, depth), SMALL).function
    assert invoked(function).count(BARRIER) == invoked(function).count(WAIT) == 2
    kernels_of(function)
    with pytest.raises(GraphError, match=message):
        kernels_of(without(function, name, number))


def run(change: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """A small product, from PTX with one text in place of another, and what it should be."""
    sizes = (64, 16, 128)
    launches = launches_of(program_of(scheduled(sizes, SMALL).function))
    text = ptx_of(launches.kernels, "sm_90a")
    assert change[0] in text
    (kernel,), (entry,) = read_kernels(text.replace(*change)).values(), launches.entries
    given = operands(np.random.default_rng(2), *sizes, HALF)
    buffers = [given[name].reshape(-1).view(np.uint8).copy() for name in ("in0", "in1")]
    buffers.append(np.zeros(64 * 16 * 4, np.uint8))
    run_kernel(kernel, entry.blocks, entry.threads, buffers, entry.shared_bytes)
    return buffers[2].view(np.float32).reshape(64, 16), expected(given, np.float32)


DEEP = replace(SMALL, buffers=4)


@pytest.mark.parametrize(
    ("name", "number", "message"),
    [
        (BARRIER, 0, r"in\d.tile: a thread of .* at the same time"),
        (WAIT_BEFORE, 0, r"in\d.tile: o0.group.sum may touch what a copy of .* has not ended"),
        (WAIT_BEFORE, 1, r"in\d.tile: .* may touch what a copy of o0.group.sum has not ended"),
        (WAIT, 0, r"acc0: o0.group.end may touch what a copy of o0.* has not ended with"),
        (BARRIER, 1, "a wait that no barrier follows"),
    ],
)
def test_what_goes_on_in_the_next_step_is_waited_for_then(
    name: str, number: int, message: str
) -> None:
    function = scheduled((64, 16, 384), DEEP).function
    assert invoked(function).count(WAIT_BEFORE) == invoked(function).count(BARRIER) == 2
    kernels_of(function)
    with pytest.raises(GraphError, match=message):
        kernels_of(without(function, name, number))


def test_too_few_buffers_for_what_goes_on_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With three, a step's copies are those that the wait before it leaves."""
    monkeypatch.setattr("dovetail.compiler.schedule.steps.overlap.DEEP", 3)
    schedule = Schedule.of(by_rows(64, 16, 384, HALF).function, HOPPER)
    function = on_tensor_cores(schedule, replace(SMALL, buffers=3)).function
    with pytest.raises(
        GraphError, match=r"in\d.tile: .* may touch what a copy of .* has not ended"
    ):
        kernels_of(function)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("fence.proxy.async.shared::cta;", "reads what no fence has shown to the proxy"),
        ("wgmma.fence.sync.aligned;", "registers were touched since the last fence"),
        ("wgmma.wait_group.sync.aligned 0;", "of a product that nothing has waited for"),
    ],
)
def test_a_missing_line_of_ptx_is_found_by_the_interpreter(line: str, error: str) -> None:
    with pytest.raises(PtxError, match=error):
        run((line, ""))


FIXED = 1 << 62 | 64 << 32 | 1 << 16
"""A descriptor without an address: 128-byte mode, 1024 bytes from eight rows to the next."""


def test_what_is_not_waited_for_or_lies_elsewhere_changes_the_result() -> None:
    for change in (("cp.async.wait_all;", ""), (str(FIXED), str(FIXED - (32 << 32)))):
        found, want = run(change)
        assert (found != want).any()


def test_a_descriptor_of_another_mode_is_refused() -> None:
    with pytest.raises(UnknownInstructionError, match="a matrix descriptor 0x800000400001"):
        run((str(FIXED), str(FIXED + (1 << 62))))


@pytest.mark.parametrize(
    ("sizes", "choice", "message"),
    [
        ((64, 16, 96), SMALL, "sums of 96: required multiples of 64"),
        ((64, 8, 64), SMALL, "64, 8, 64: too small"),
        ((64, 16, 64), DEEP, "4 buffers for 1 iterations"),
        ((128, 16, 64), Choice(rows=128, columns=16, groups=2, parts=1), "not all would copy"),
        ((128, 64, 128), Choice(rows=128, columns=64, groups=4), "4 warpgroups, 128 rows"),
        ((64, 96, 64), Choice(rows=64, columns=96, groups=1), "with 96 columns"),
        ((256, 256, 256), Choice(rows=256, columns=256, groups=2, parts=4), "524288 bytes"),
    ],
)
def test_tiles_that_do_not_fit_are_refused(sizes: Sizes, choice: Choice, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        scheduled(sizes, choice)
    with pytest.raises(ScheduleError, match=message):
        schedule_group(by_rows(*sizes, HALF), HOPPER, choice)


@pytest.mark.parametrize(
    ("sizes", "dtypes", "tile"),
    [
        ((4096, 4096, 4096), HALF, "wgmma_float16_float16_256"),
        ((1024, 768, 3072), HALF, "wgmma_float16_float16_64"),
        ((4096, 4096, 4096), BYTES, "wgmma_int8_int8_256"),
        ((4096, 4096, 4000), HALF, "mma_float16_float16_beside"),
        ((16, 4096, 4096), HALF, "wgmma_float16_float16_32"),
    ],
)
def test_the_rule_takes_warpgroups_where_they_suit(sizes: Sizes, dtypes: Types, tile: str) -> None:
    definition = by_rows(*sizes, dtypes)
    schedule = schedule_group(definition, HOPPER)
    assert tile in invoked(schedule.function)
    again = replay(definition.function, to_record(schedule), HOPPER)
    assert again.function == schedule.function
    other = schedule_group(definition, INTRINSICS).function
    assert not any(map(re.compile("wgmma").match, invoked(other)))


def test_warpgroups_are_a_choice_on_hopper_alone() -> None:
    definition = by_rows(128, 128, 128, HALF)
    chosen = schedule_group(definition, HOPPER, Choice(rows=64, columns=128, groups=1, parts=1))
    assert "wgmma_float16_float16_128" in invoked(chosen.function)
    assert "groups" in choices_for(Kind.CONTRACTION, HOPPER)
    assert "groups" not in choices_for(Kind.CONTRACTION, INTRINSICS)
    with pytest.raises(ScheduleError, match="no such intrinsic"):
        replay(definition.function, to_record(chosen), INTRINSICS)
