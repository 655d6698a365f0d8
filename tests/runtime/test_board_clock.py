"""Boards are waited for by their own clock: a busy machine is not taken for a dead board."""

import os
import pty
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from dovetail.isa.link import CLOCK_SUFFIX, RESPONSE, Frame, FrameDecoder, encode_frame
from dovetail.runtime.board import clock
from dovetail.runtime.board.link import Link
from dovetail.runtime.errors import DeviceError

BAUD = 1_000_000


class Board:
    """The far end of a line, and the clock beside its port."""

    def __init__(self, folder: Path) -> None:
        self.end, self.far = pty.openpty()
        self.port = str(folder / "board")
        Path(self.port).symlink_to(os.ttyname(self.far))
        self.clock = Path(self.port + CLOCK_SUFFIX)
        self.clock.write_bytes(bytes(8))

    def set(self, seconds: float) -> None:
        with self.clock.open("r+b", buffering=0) as file:
            file.write(struct.pack("<Q", round(seconds * 1e9)))

    def answer(self, delay: float) -> None:
        """Read one request, and answer it as late."""
        decoder, frames = FrameDecoder(), list[Frame]()
        while not frames:
            frames = decoder.feed(os.read(self.end, 64))
        time.sleep(delay)
        asked = frames[0]
        data = bytes(asked.length)
        reply = Frame(asked.sequence, asked.operation | RESPONSE, len(data), 0, data)
        os.write(self.end, encode_frame(reply))


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    made = Board(tmp_path)
    yield made
    os.close(made.end)
    os.close(made.far)


def test_an_emulation_that_gets_no_time_is_waited_for(board: Board) -> None:
    thread = threading.Thread(target=board.answer, args=(0.3,))
    with Link(board.port, BAUD, patience=0.05, tries=3) as link:
        thread.start()
        assert link.read_registers(0) == [0]
        assert link.repeated == 0
    thread.join()


def test_an_emulation_that_goes_on_without_an_answer_is_given_up(board: Board) -> None:
    over = threading.Event()

    def go_on() -> None:
        for step in range(10_000):
            board.set(step * 1e-4)
            if over.wait(0.001):
                return

    thread = threading.Thread(target=go_on)
    thread.start()
    with (
        Link(board.port, BAUD, patience=0.5, tries=3) as link,
        pytest.raises(DeviceError, match=r"does not answer \(3 tries"),
    ):
        link.read_registers(0)
    over.set()
    thread.join()


def test_an_emulation_that_stands_still_or_ends_is_given_up(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock.EmulatedClock, "standstill", 0.2)
    with Link(board.port, BAUD) as link:
        with pytest.raises(DeviceError, match=r"has not moved for .* is its process stopped"):
            link.read_registers(0)
        board.clock.unlink()
        with pytest.raises(DeviceError, match="has ended"):
            link.read_registers(0)


def test_a_clock_is_that_of_the_wall_or_of_the_file_beside_the_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, port = [100.0], tmp_path / "board"
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: now[0]))
    wall = clock.open_clock(str(port))
    assert (wall.pace, wall.seconds()) == (1, 100)
    file = tmp_path / f"board{CLOCK_SUFFIX}"
    file.write_bytes(struct.pack("<Q", 1_500_000_000))
    emulated = clock.open_clock(str(port))
    assert (emulated.pace, emulated.seconds()) == (0.002, 1.5)
    now[0] += 60
    assert emulated.seconds() == 1.5
    file.write_bytes(struct.pack("<Q", 1_500_000_001))
    assert emulated.seconds() == 1.500000001
    now[0] += 60
    assert emulated.seconds() == 1.500000001
    now[0] += 0.001
    with pytest.raises(DeviceError, match="has not moved for 60 s"):
        emulated.seconds()
    file.write_bytes(bytes(7))
    with pytest.raises(DeviceError, match="has ended"):
        emulated.seconds()
