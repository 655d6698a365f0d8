"""PTX, interpreted, computes what the loop interpreter does."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from dovetail.compiler import compile
from dovetail.compiler.define.definition import Definition, Kind
from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.runtime.session import Session
from tests.compiler.loops.strategies import arrays_for, functions
from tests.compiler.schedule.rules.gpu.products import product

from .device import InterpreterDevice
from .machine import PtxError, run_kernel
from .operations import UnknownInstructionError
from .running import run_ptx
from .text import read_kernels


def agree(function: Function) -> None:
    inputs = arrays_for(function)
    expected = interpret(function, inputs)
    scheduled = schedule_group(Definition(function, (), (), Kind.ELEMENTS)).function
    found = run_ptx(scheduled, inputs)
    for buffer in function.outputs:
        array, want = found[buffer.name], expected[buffer.name]
        if buffer.dtype.is_float:
            np.testing.assert_allclose(
                array.astype(float), want.astype(float), rtol=2e-5, atol=1e-5, equal_nan=True
            )
        else:
            np.testing.assert_array_equal(array, want)


@given(function=functions(dtypes=tuple(DType), max_size=9))
@settings(max_examples=40)
def test_random_kernels_equal_the_loop_interpreter(function: Function) -> None:
    agree(function)


def interpret_random(count: int) -> None:
    """As the test before, of so many."""

    @given(function=functions(dtypes=tuple(DType), max_size=9))
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    def check(function: Function) -> None:
        agree(function)

    check()
    print(f"{count} random kernels: PTX interpreted equals the loop interpreter", flush=True)


def test_a_product_in_shared_memory_waits_at_its_barriers() -> None:
    function = schedule_group(product(32, 16, 32)).function
    rng = np.random.default_rng(0)
    a, b, bias = (rng.integers(-9, 9, shape) for shape in ((32, 32), (32, 16), (16,)))
    given = {f"in{n}": each.astype(np.float32) for n, each in enumerate((a, b, bias))}
    np.testing.assert_array_equal(run_ptx(function, given)["out0"], a @ b + bias)


def test_digits_in_ptx_gives_the_bytes_of_the_cpu(digits_model: Path) -> None:
    session = Session(compile(digits_model, "cuda"), InterpreterDevice())
    reference = Session(compile(digits_model, "cpu"))
    image = np.random.default_rng(8).random((1, 1, 8, 8), np.float32)
    np.testing.assert_array_equal(session.run(None, image)[0], reference.run(None, image)[0])


KERNEL = """
.visible .entry k(
	.param .u64 k_param_0
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<5>;
	.reg .b64 %rd<4>;
	ld.param.b64 	%rd1, [k_param_0];
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd2, %r1, 4;
	add.s64 	%rd3, %rd1, %rd2;
LINES
	st.global.b32 	[%rd3], %r1;
	ret;
}
"""


def run(lines: str, size: int = 16) -> list[int]:
    buffer = np.zeros(size, np.uint8)
    run_kernel(read_kernels(KERNEL.replace("LINES", lines))["k"], 1, 4, [buffer])
    return list(buffer.view(np.uint32))


def test_threads_that_part_meet_again() -> None:
    lines = "setp.lt.u32 %p1, %r1, 2;\n@%p1 bra $L;\nadd.s32 %r1, %r1, 10;\n$L:\nbar.sync 0;"
    assert run(lines) == [0, 1, 12, 13]


def test_what_no_kernel_may_do_is_refused() -> None:
    with pytest.raises(PtxError, match="byte 8 of buffer 0, which ends before"):
        run("", 8)
    with pytest.raises(PtxError, match="an address of 4 bytes that is no multiple"):
        run("add.s64 %rd3, %rd3, 2;", 20)


def test_a_warp_multiplies_together_or_not_at_all() -> None:
    with pytest.raises(PtxError, match="mma: some threads of a warp are elsewhere"):
        run("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1}, {%r1}, {%r1}, {%r1};")


def test_an_instruction_that_is_not_known_is_named() -> None:
    with pytest.raises(UnknownInstructionError, match=r"ldmatrix.*x2"):
        run("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r1];")
    with pytest.raises(UnknownInstructionError, match="vabsdiff4"):
        run("vabsdiff4.u32.u32.u32.add %r1, %r1, %r1, %r1;")


def test_threads_of_a_warp_exchange_registers() -> None:
    buffer = np.zeros(32 * 4, np.uint8)
    lines = "shfl.sync.bfly.b32 \t%r1, %r1, 2, 31, -1;"
    run_kernel(read_kernels(KERNEL.replace("LINES", lines))["k"], 1, 32, [buffer])
    assert list(buffer.view(np.uint32)) == [each ^ 2 for each in range(32)]
    with pytest.raises(PtxError, match="shfl: some threads of a warp are elsewhere"):
        run(lines)
    with pytest.raises(UnknownInstructionError, match=r"shfl.*2, 31, 15"):
        run(lines.replace("-1", "15"))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("mov.b32 %r2, 0fC0000000;\nex2.approx.ftz.f32 %r1, %r2;", 0x3E800000),
        ("mov.b32 %r2, 0fC3020000;\nex2.approx.ftz.f32 %r1, %r2;", 0),
        ("mov.b32 %r2, 0f7FC00000;\nmax.NaN.f32 %r1, %r2, 0f3F800000;", 0x7FC00000),
        ("mov.b32 %r2, 0f3F800000;\ncvt.rn.f16x2.f32 %r1, %r2, 0fC0000000;", 0x3C00C000),
        ("mov.b32 %r2, 0f3F800000;\ncvt.rn.bf16x2.f32 %r1, %r2, 0fC0000000;", 0x3F80C000),
        ("mov.b32 %r2, 12;\nbfe.s32 %r1, %r2, 3, 1;", 0xFFFFFFFF),
        ("mov.b32 %r2, 12;\nbfe.s32 %r1, %r2, 1, 3;", 0xFFFFFFFE),
        ("mov.b32 %r2, 12;\nbfe.u32 %r1, %r2, 1, 3;", 6),
        ("mov.b32 %r2, 12;\nbfe.s32 %r1, %r2, 4, 0;", 0),
    ],
)
def test_an_instruction_computes_what_the_manual_says(lines: str, expected: int) -> None:
    assert run(lines) == [expected] * 4
