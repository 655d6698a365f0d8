"""Running modules: what goes in, what comes out, and every way to be refused."""

import numpy as np
import pytest

from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.errors import DeviceError, InputError

from .sample import SHAPE, copy_module

X = np.random.default_rng(5).integers(-128, 128, SHAPE, dtype=np.int8)


def test_the_sample_copies_its_input_and_accounts_for_every_byte() -> None:
    result = run(copy_module(), {"x": X}, device="sim")
    np.testing.assert_array_equal(result.outputs["y"], X)
    assert result.dram_bytes_read == 2 * 64 + X.size
    assert result.dram_bytes_written == X.size
    assert result.gemm_busy_cycles == 0
    assert result.cycles is not None
    assert result.cycles > 0
    figures = result.figures()
    assert figures["device"] == "sim"
    assert {"wall_seconds", "host_seconds", "macs", "gemm_utilization"} <= set(figures)


def test_the_timeline_has_every_instruction_in_order() -> None:
    result = run(copy_module(), {"x": X})
    load, store = result.timeline
    assert [(e.index, e.unit, e.layer) for e in (load, store)] == [(0, "LOAD", 0), (1, "STORE", 0)]
    for entry in (load, store):
        assert 0 <= entry.queued < entry.start < entry.end < (result.cycles or 0)
    assert store.start > load.end, "STORE waits for the token of LOAD"
    assert store.waited_token
    assert load.waited_token == 0


def test_running_changes_neither_module_nor_input() -> None:
    module, given = copy_module(), X.copy()
    before = module.to_bytes()
    run(module, {"x": given})
    assert module.to_bytes() == before
    np.testing.assert_array_equal(given, X)


def test_inputs_may_be_strided() -> None:
    strided = np.asfortranarray(X)
    np.testing.assert_array_equal(run(copy_module(), {"x": strided}).outputs["y"], X)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, r"input 'x' is missing; required int8\[1, 2, 3, 8\]"),
        ({"z": X}, "no input 'z'; its inputs are: x"),
        ({"x": X, "z": X}, "no input 'z'"),
        ({"x": X[0]}, r"input 'x' is int8\[2, 3, 8\]; required int8\[1, 2, 3, 8\]"),
        ({"x": np.concatenate([X, X])}, r"is int8\[2, 2, 3, 8\]; required int8\[1, 2, 3, 8\]"),
        ({"x": X.astype(np.uint8)}, r"is uint8\[1, 2, 3, 8\]; required int8"),
        ({"x": X.astype(np.float32)}, r"is float32\[1, 2, 3, 8\]; required int8"),
        ({"x": X.tolist()}, r"input 'x' is a list; required an array, int8\[1, 2, 3, 8\]"),
    ],
)
def test_a_wrong_input_is_refused(inputs: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(copy_module(), inputs)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("gpu", "no device is called 'gpu'; there are: sim, rtl, board, cpu"),
        ("", "no device is called ''"),
        ("cpu", "compiled for 'vta:tiny' cannot run on 'cpu'"),
        ("sim:zynq7020", "compiled for 'vta:tiny' cannot run on 'sim:zynq7020'"),
        ("sim:nonsense", "compiled for 'vta:tiny' cannot run on 'sim:nonsense'"),
    ],
)
def test_a_wrong_device_is_refused(device: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        run(copy_module(), {"x": X}, device=device)


def test_a_device_may_name_the_configuration() -> None:
    result = run(copy_module(), {"x": X}, device="sim:tiny")
    np.testing.assert_array_equal(result.outputs["y"], X)


def test_an_illegal_instruction_is_reported_with_its_index() -> None:
    code = bytearray(accelerator_part(copy_module()).code)
    code[64] = 0xFF
    with pytest.raises(DeviceError, match="ILLEGAL_INSTRUCTION at instruction 1 of 2"):
        run(copy_module(code=bytes(code)), {"x": X})


def test_an_access_out_of_the_window_is_reported_with_its_index() -> None:
    program = "load memory=act sram_address=0 dram_address=0x100000 count_x=4"
    with pytest.raises(DeviceError, match="WINDOW at instruction 0 of 1"):
        run(copy_module(program), {"x": X})


def test_a_program_that_waits_for_ever_is_stopped() -> None:
    program = "store sram_address=0 dram_address=64 count_x=1 wait=load"
    with pytest.raises(DeviceError, match="WATCHDOG at instruction 0 of 1"):
        run(copy_module(program), {"x": X})
