"""Runs on a board behind a link that stands for it: what is sent, what is read, what is refused."""

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.isa.registers import COUNTERS, IDENTITY, REGISTERS, VERSION, Control, Status
from dovetail.runtime.accelerator.device import prepare_launch
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.board import device
from dovetail.runtime.board.device import BoardDevice
from dovetail.runtime.errors import DeviceError

from .sample import OUTPUT, SHAPE, WORDS, copy_module

PART = accelerator_part(copy_module())
CONFIG = PART.configuration
SIZE = 4 * WORDS
OFFSETS = {each.name: each.offset for each in REGISTERS}
FIRST = REGISTERS[-2 * len(COUNTERS)].offset
X = np.random.default_rng(3).integers(-128, 128, SHAPE, dtype=np.int8)


class Board:
    """Registers and memory; a started program copies the sample's input at once."""

    name, repeated = "the board", 3

    def __init__(self) -> None:
        identity = IDENTITY, VERSION, CONFIG.fingerprint
        self.registers = {OFFSETS["ID"] + 4 * n: each for n, each in enumerate(identity)}
        self.memory, self.sent = bytearray(1 << 10), list[tuple[int, int]]()
        self.settings, self.starts, self.stops, self.closed = 0, 0, 0, 0
        self.ends, self.busy, self.lost, self.keeps = True, 0, False, True

    def read_registers(self, offset: int, count: int = 1) -> list[int]:
        return [self.registers.get(offset + 4 * place, 0) for place in range(count)]

    def write_register(self, offset: int, value: int) -> None:
        if offset != OFFSETS["CONTROL"]:
            self.settings += 1
            self.registers[offset] = value if self.keeps else 0
        elif value >> Control.STOP & 1:
            self.stops += 1
            self.busy -= 1
            self.registers[OFFSETS["STATUS"]] = (self.busy > 0) << Status.BUSY
        else:
            self.starts += 1
            self.memory[OUTPUT : OUTPUT + SIZE] = self.memory[:SIZE]
            self.registers[OFFSETS["STATUS"]] = self.ends << Status.DONE
            for place in range(len(COUNTERS)):
                self.registers[FIRST + 8 * place] = 10 + place
                self.registers[FIRST + 8 * place + 4] = place == 1
            if self.lost:
                self.registers[OFFSETS["PROGRAM_COUNT"]] = 0

    def wait_event(self, seconds: float) -> bool:
        return True

    def write_memory(self, address: int, content: bytes) -> None:
        self.sent.append((address, len(content)))
        self.memory[address : address + len(content)] = content

    def read_memory(self, address: int, size: int) -> bytes:
        return bytes(self.memory[address : address + size])

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Board:
    found = Board()
    monkeypatch.setattr(device, "Link", lambda *given, **named: found)
    return found


def test_a_run_sends_what_differs_and_reads_what_is_asked_for(board: Board) -> None:
    opened = BoardDevice("ulx3s@/dev/none")
    assert opened.repeated == 0
    result = opened.run(prepare_launch(PART, {"x": X}))
    assert result.finished
    assert bytes(result.dram[OUTPUT : OUTPUT + SIZE]) == bytes(board.memory[:SIZE])
    names = [name for name, _ in COUNTERS]
    assert result.counters == {
        name: 10 + place + ((place == 1) << 32) for place, name in enumerate(names)
    }
    assert result.seconds == result.counters["cycles"] / CONFIG.clock_hz
    assert (result.dispatched, result.accepted, result.ended) == (None, None, None)
    assert (board.starts, board.settings, board.stops, opened.repeated) == (1, 5, 0, 3)
    board.sent.clear()
    opened.run(prepare_launch(PART, {"x": X}))
    assert board.settings == 5
    assert all(first >= OUTPUT and first + size <= 128 for first, size in board.sent)
    opened.close()
    opened.close()
    assert board.closed == 1


def test_what_another_host_left_running_is_stopped(board: Board) -> None:
    board.registers[OFFSETS["STATUS"]], board.busy = 1 << Status.BUSY, 3
    assert BoardDevice("ulx3s@/dev/none").run(prepare_launch(PART, {"x": X})).finished
    assert board.stops == 3


def test_memory_is_sent_again_to_a_board_that_was_reset(board: Board) -> None:
    opened = BoardDevice("ulx3s@/dev/none")
    opened.run(prepare_launch(PART, {"x": X}))
    everything = list(board.sent)
    board.sent.clear()
    board.registers[OFFSETS["WATCHDOG"]] = 0
    opened.run(prepare_launch(PART, {"x": X}))
    assert board.sent == everything
    assert board.settings == 10


def other(name: str) -> Callable[[Board], None]:
    return lambda board: board.registers.update({OFFSETS[name]: 7})


def busy(board: Board) -> None:
    board.registers[OFFSETS["STATUS"]], board.busy = 1 << Status.BUSY, 1000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other("ID"), r"identity 0x00000007, version \d+; required .*: the board has another bits"),
        (other("VERSION"), "version 7; required .*: the board has another bitstream"),
        (
            other("FINGERPRINT"),
            "bitstream is of configuration 0x00000007; the module is for 'tiny'",
        ),
        (busy, "the board stays busy; reset it"),
        (
            lambda board: setattr(board, "ends", False),
            "the board was reset while it ran; run again",
        ),
        (
            lambda board: setattr(board, "lost", True),
            "the board was reset, or another program uses",
        ),
    ],
)
def test_another_board_or_one_that_was_reset_is_refused_and_left(
    board: Board, change: Callable[[Board], None], message: str
) -> None:
    change(board)
    with pytest.raises(DeviceError, match=f"^the board: .*{message}"):
        BoardDevice("ulx3s@/dev/none").run(prepare_launch(PART, {"x": X}))
    assert board.closed == 1


def test_nothing_is_started_where_settings_are_not_kept(board: Board) -> None:
    board.keeps = False
    with pytest.raises(DeviceError, match="the board was reset, or another program uses it"):
        BoardDevice("ulx3s@/dev/none").run(prepare_launch(PART, {"x": X}))
    assert (board.starts, board.sent) == (0, [])
