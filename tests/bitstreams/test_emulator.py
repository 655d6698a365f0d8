"""The real driver against the real gateware, bit by bit, through a pseudo-terminal."""

from collections.abc import Iterator

import numpy as np
import pytest

from dovetail.bitstreams.emulator import Emulator
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Load, Store
from dovetail.isa.launch import Launch
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.program import program_to_bytes
from dovetail.isa.registers import ErrorCode
from dovetail.runtime.board.device import BoardDevice
from dovetail.runtime.board.link import BoardBusyError, Link
from dovetail.runtime.errors import DeviceError
from dovetail.vta_sim.device import SimulatorDevice

from .boards import SMALL_BOARD, device_name

CONFIG = SMALL_BOARD.config
PROGRAM, END = 512, 640
"""Addresses of the programs and behind them: every byte travels over the serial line."""
COPY = (
    Load(
        memory=Memory.ACT, dram_address=0, sram_address=0, count_x=16, post=frozenset({Unit.STORE})
    ),
    Store(dram_address=256, sram_address=0, count_x=16, wait=frozenset({Unit.LOAD})),
)


def launch_of(program: tuple[Load | Store, ...], seed: int = 0, watchdog: int = 100_000) -> Launch:
    dram = np.random.default_rng(seed).integers(0, 256, END, dtype=np.uint8)
    code = np.frombuffer(program_to_bytes(program), np.uint8)
    dram[PROGRAM : PROGRAM + code.size] = code
    return Launch(CONFIG, dram, PROGRAM, len(program), watchdog)


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator(SMALL_BOARD, garbage=True) as running:
        yield running


@pytest.fixture
def device(emulator: Emulator) -> Iterator[BoardDevice]:
    board = BoardDevice(device_name(emulator.port))
    yield board
    board.close()


def test_memory_is_written_and_read_at_any_size(emulator: Emulator) -> None:
    rng = np.random.default_rng(1)
    with Link(emulator.port, SMALL_BOARD.baud) as link:
        for start, size in ((0, 8), (8, 1024), (4096, 1032), (1 << 20, 64)):
            content = rng.integers(0, 256, size, dtype=np.uint8).tobytes()
            link.write_memory(start, content)
            assert link.read_memory(start, size) == content
            assert link.read_memory(start + 3, size - 5) == content[3:-2]


def test_a_program_takes_the_simulators_cycles(device: BoardDevice) -> None:
    for seed in range(3):
        launch = launch_of(COPY, seed)
        found, expected = device.run(launch), SimulatorDevice().run(launch)
        assert found.finished
        assert np.array_equal(found.dram, expected.dram)
        assert found.counters == expected.counters


def test_cycles_are_the_same_in_every_run(device: BoardDevice) -> None:
    launch = launch_of(COPY)
    cycles = {device.run(launch).counters["cycles"] for _ in range(4)}
    assert len(cycles) == 1


def test_an_error_stop_is_reported(device: BoardDevice) -> None:
    launch = launch_of((Load(memory=Memory.ACT, dram_address=1 << 20, sram_address=0),))
    found = device.run(launch)
    assert not found.finished
    assert (found.error_code, found.error_index) == (ErrorCode.WINDOW, 0)


def test_memory_is_refused_while_a_program_runs(emulator: Emulator) -> None:
    stuck = launch_of((Store(dram_address=0, sram_address=0, wait=frozenset({Unit.LOAD})),))
    board = BoardDevice(device_name(emulator.port))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(board, "_wait", lambda link, launch: 0)
        with pytest.raises(BoardBusyError, match="runs a program"):
            board.run(stuck)
    board.close()
    # The next host stops it.
    after = BoardDevice(device_name(emulator.port))
    assert after.run(launch_of(COPY)).finished
    after.close()


def test_another_configuration_is_refused(device: BoardDevice) -> None:
    other = find_config("ecp5_85")
    launch = Launch(other, np.zeros(64, np.uint8), 0, 0)
    with pytest.raises(DeviceError, match=r"bitstream is of configuration .* 'ecp5_85'"):
        device.run(launch)


def test_a_reset_between_two_runs_costs_only_time(emulator: Emulator, device: BoardDevice) -> None:
    launch = launch_of(COPY)
    expected = device.run(launch)
    emulator.reset()
    found = device.run(launch)
    assert np.array_equal(found.dram, expected.dram)
    assert found.counters == expected.counters


def test_a_host_that_dies_within_a_frame_leaves_the_board_usable(emulator: Emulator) -> None:
    first = Link(emulator.port, SMALL_BOARD.baud)
    first._port.write(b"\xc0\x05\x02\x40\x00half a frame")
    first.close()
    with Link(emulator.port, SMALL_BOARD.baud) as second:
        assert second.read_registers(8) == [CONFIG.fingerprint]


@pytest.mark.parametrize("name", [None, "ulx3s", "ulx3s@", "@/dev/x", "ulx3s@/dev/x,fast"])
def test_a_name_without_a_port_is_refused(name: str | None) -> None:
    with pytest.raises(DeviceError, match="required board:MODEL@PORT"):
        BoardDevice(name)


def test_a_missing_port_is_refused() -> None:
    with pytest.raises(DeviceError, match="is the board plugged in"):
        BoardDevice("ulx3s@/dev/no-such-port").run(launch_of(COPY))


def test_a_silent_port_is_given_up() -> None:
    import os
    import pty

    keeper, far = pty.openpty()
    link = Link(os.ttyname(far), 1_000_000, patience=0.05, tries=3)
    with pytest.raises(DeviceError, match=r"does not answer \(3 tries"):
        link.read_registers(0)
    link.close()
    os.close(keeper)
    os.close(far)


def test_damaged_lines_delay_results_and_never_change_them() -> None:
    with Emulator(SMALL_BOARD, seed=7, drop=2000, flip=2000) as emulator:
        board = BoardDevice(device_name(emulator.port), patience=0.02, chunk=64)
        launch = launch_of(COPY, 5)
        assert np.array_equal(board.run(launch).dram, SimulatorDevice().run(launch).dram)
        assert board.repeated > 0
        board.close()
