"""The answer at a serial port is named."""

import os
import pty
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dovetail.isa.configs import find_config
from dovetail.isa.link import RESPONSE, Frame, FrameDecoder, encode_frame
from dovetail.isa.registers import IDENTITY, VERSION
from dovetail.runtime.board import find
from dovetail.runtime.board.find import find_boards, plugged_ports

TINY = find_config("tiny")


@pytest.fixture
def line() -> Iterator[tuple[int, str]]:
    keeper, far = pty.openpty()
    yield keeper, os.ttyname(far)
    os.close(far)
    os.close(keeper)


def answer_with(keeper: int, registers: tuple[int, ...]) -> None:
    """Answer the first request there with ``registers``."""

    def serve() -> None:
        decoder, frames = FrameDecoder(), list[Frame]()
        while not frames:
            frames = decoder.feed(os.read(keeper, 256))
        data = b"".join(value.to_bytes(4, "little") for value in registers)
        first = frames[0]
        answer = replace(
            first, operation=first.operation | RESPONSE, length=len(data), argument=0, data=data
        )
        os.write(keeper, encode_frame(answer))

    threading.Thread(target=serve, daemon=True).start()


def test_a_board_with_a_bitstream_says_its_configuration(line: tuple[int, str]) -> None:
    keeper, port = line
    answer_with(keeper, (IDENTITY, VERSION, TINY.fingerprint))
    (board,) = find_boards([("ulx3s", port)])
    assert (board.device, board.config) == (f"board:ulx3s@{port}", "tiny")
    assert board.state == "ready, for modules of vta:tiny"


@pytest.mark.parametrize(
    ("registers", "state"),
    [
        ((1, 2, TINY.fingerprint), "another bitstream: identity 0x00000001, version 2"),
        ((IDENTITY, VERSION, 7), "of a configuration without a name, 0x00000007"),
    ],
)
def test_another_bitstream_is_no_board_of_a_named_configuration(
    line: tuple[int, str], registers: tuple[int, ...], state: str
) -> None:
    keeper, port = line
    answer_with(keeper, registers)
    (board,) = find_boards([("ulx3s", port)])
    assert (board.config, board.state) == (None, state)


def test_a_silent_port_is_listed_as_such(
    line: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find, "PATIENCE", 0.02)
    (board,) = find_boards([("ulx3s", line[1])], baud=1_000_000)
    assert board.device == f"board:ulx3s@{line[1]},1000000"
    assert board.config is None
    assert "does not answer" in board.state


def test_ports_of_known_boards_alone_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is plugged in, an adapter of the same maker or a modem, is left alone."""
    plugged = [("/dev/b", 0x0403, 0x6015), ("/dev/a", 0x0403, 0x6015), ("/dev/c", 0x0403, 0x6001)]
    plugged += [("/dev/d", 0x1234, 0x6015), ("/dev/e", None, None)]
    ports = [SimpleNamespace(device=each, vid=vid, pid=pid) for each, vid, pid in plugged]
    monkeypatch.setattr(find.list_ports, "comports", lambda: ports)
    assert plugged_ports() == [("ulx3s", "/dev/a"), ("ulx3s", "/dev/b")]
