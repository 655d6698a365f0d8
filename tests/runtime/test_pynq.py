"""The driver for PYNQ, on a stand-in whose registers start the simulator."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Load, Store
from dovetail.isa.launch import Launch
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.program import program_to_bytes
from dovetail.isa.registers import COUNTERS, IDENTITY, REGISTERS, VERSION, Status
from dovetail.runtime.board import pynq as driver
from dovetail.runtime.board.device import BoardDevice
from dovetail.runtime.errors import DeviceError
from dovetail.vta_sim.device import SimulatorDevice

CONFIG = find_config("zynq7020")
NAMES = {register.offset: register.name for register in REGISTERS}
PROGRAM = (
    Load(
        memory=Memory.ACT, dram_address=0, sram_address=0, count_x=8, post=frozenset({Unit.STORE})
    ),
    Store(dram_address=256, sram_address=0, count_x=8, wait=frozenset({Unit.LOAD})),
)


class Buffer(np.ndarray):  # type: ignore[type-arg]
    """Contiguous memory; what it holds is lost when it is given back."""

    physical_address = 0x1000_0000

    def flush(self) -> None: ...
    def invalidate(self) -> None: ...
    def freebuffer(self) -> None:
        self[:] = 0


class Zynq:
    """A PYNQ board with the accelerator of ``CONFIG`` in it."""

    def __init__(self) -> None:
        self.registers: dict[str, int] = {
            "ID": IDENTITY,
            "VERSION": VERSION,
            "FINGERPRINT": CONFIG.fingerprint,
        }
        self.base = 0
        self.memory: NDArray[np.uint8] = np.zeros(0, np.uint8).view(Buffer)
        self.loaded: list[str] = []
        self.written = 0
        self.module = SimpleNamespace(
            Bitstream=self._bitstream,
            Clocks=SimpleNamespace(fclk0_mhz=0.0),
            MMIO=lambda address, size: SimpleNamespace(read=self._read, write=self._write),
            allocate=self._allocate,
        )

    def _bitstream(self, name: str) -> Any:
        if not name.endswith(".bit"):
            raise OSError(f"{name} does not exist")
        return SimpleNamespace(download=lambda: self.loaded.append(name))

    def _allocate(self, shape: tuple[int], dtype: Any) -> Any:
        self.memory = np.zeros(shape, dtype).view(Buffer)
        return self.memory

    def _read(self, offset: int) -> int:
        return self.registers.get(NAMES[offset], 0)

    def _write(self, offset: int, value: int) -> None:
        if offset == driver.MEMORY_BASE:
            self.base = value
        elif NAMES[offset] == "CONTROL" and value & 1:
            self._start()
        else:
            self.registers[NAMES[offset]] = value

    def _start(self) -> None:
        assert self.base == Buffer.physical_address
        size = self.registers["WINDOW_LIMIT"] + 1
        launch = Launch(
            CONFIG,
            np.array(self.memory[:size]),
            self.registers["PROGRAM_ADDRESS"],
            self.registers["PROGRAM_COUNT"],
        )
        done = SimulatorDevice().run(launch)
        self.memory[:size] = done.dram
        self.registers["STATUS"] = 1 << (Status.DONE if done.finished else Status.ERROR)
        self.registers |= {"ERROR_CODE": done.error_code, "ERROR_INDEX": done.error_index}
        for name, _ in COUNTERS:
            self.registers[f"{name.upper()}_LOW"] = done.counters[name]


@pytest.fixture
def zynq(monkeypatch: pytest.MonkeyPatch) -> Zynq:
    board = Zynq()
    monkeypatch.setitem(sys.modules, "pynq", board.module)
    return board


def launch_of(seed: int) -> Launch:
    dram = np.random.default_rng(seed).integers(0, 256, 1024, dtype=np.uint8)
    code = np.frombuffer(program_to_bytes(PROGRAM), np.uint8)
    dram[512 : 512 + code.size] = code
    return Launch(CONFIG, dram, 512, len(PROGRAM))


def test_programs_run_one_after_the_other(zynq: Zynq) -> None:
    device = BoardDevice("pynq@accelerator.bit")
    for seed in range(3):
        launch = launch_of(seed)
        found, expected = device.run(launch), SimulatorDevice().run(launch)
        assert np.array_equal(found.dram, expected.dram)
        assert found.counters == expected.counters
    assert zynq.loaded == ["accelerator.bit"]
    assert zynq.module.Clocks.fclk0_mhz == CONFIG.clock_hz / 1e6


def test_threads_take_turns(zynq: Zynq, monkeypatch: pytest.MonkeyPatch) -> None:
    device, start = BoardDevice("pynq@accelerator.bit"), zynq._start
    monkeypatch.setattr(zynq, "_start", lambda: (time.sleep(0.02), start()))
    launches = [launch_of(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        for launch, found in zip(launches, pool.map(device.run, launches), strict=True):
            assert np.array_equal(found.dram, SimulatorDevice().run(launch).dram)


def test_another_bitstream_is_refused(zynq: Zynq) -> None:
    zynq.registers["FINGERPRINT"] = 1
    with pytest.raises(DeviceError, match="the board's bitstream is of configuration 0x00000001"):
        BoardDevice("pynq@accelerator.bit").run(launch_of(0))


def test_a_missing_file_is_refused(zynq: Zynq) -> None:
    with pytest.raises(DeviceError, match="does not exist"):
        BoardDevice("pynq@accelerator").run(launch_of(0))


def test_elsewhere_than_on_a_board_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynq", None)
    with pytest.raises(DeviceError, match="runs on the board itself"):
        BoardDevice("pynq@accelerator.bit").run(launch_of(0))


def test_its_addresses_are_those_of_the_gateware() -> None:
    axi3 = pytest.importorskip("dovetail.bitstreams.axi3", reason="needs the extra hw")
    archive = pytest.importorskip("dovetail.bitstreams.zynq_archive", reason="needs the extra hw")
    assert driver.MEMORY_BASE == axi3.MEMORY_BASE
    assert driver.CONTROL_ADDRESS == archive.GENERAL_PURPOSE_0
