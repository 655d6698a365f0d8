"""Requests to a board over a serial port that stands for it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import serial

from dovetail.isa.link import EVENT, RESPONSE, Frame, FrameDecoder, Operation, Status, encode_frame
from dovetail.runtime.board import link
from dovetail.runtime.board.link import BoardBusyError, Link
from dovetail.runtime.errors import DeviceError

BAUD = 1_000_000
MEMORY = bytes(range(256)) * 2


class Port:
    """Answers at once.  change: of each answer.  lost: how many requests get none, at first."""

    timeout = 0.0

    def __init__(self) -> None:
        self.decoder, self.waiting = FrameDecoder(), b""
        self.requests, self.lost, self.closed = list[tuple[str, int, int, bytes]](), 0, False
        self.change: Callable[[Frame], Frame] = lambda frame: frame

    def write(self, content: bytes) -> None:
        for frame in self.decoder.feed(content):
            asked = Operation(frame.operation)
            self.requests.append((asked.name, frame.argument, frame.length, frame.data))
            if self.lost:
                self.lost -= 1
                continue
            reads = asked in (Operation.READ_MEMORY, Operation.READ_REGISTERS)
            data = MEMORY[frame.argument :][: frame.length] if reads else b""
            fields = frame.sequence, frame.operation | RESPONSE, frame.length, Status.OK, data
            self.waiting += encode_frame(self.change(Frame(*fields)))

    def read(self, size: int) -> bytes:
        found, self.waiting = self.waiting[:size], self.waiting[size:]
        return found

    def reset_input_buffer(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Port:
    found = Port()
    monkeypatch.setattr(link.serial, "Serial", lambda *given, **named: found)
    return found


def test_memory_is_read_in_whole_grains_and_pieces(port: Port) -> None:
    with Link("none", BAUD, chunk=16) as opened:
        for first, size in ((0, 16), (3, 2), (5, 40), (8, 0)):
            assert opened.read_memory(first, size) == MEMORY[first : first + size]
        port.requests.clear()
        opened.read_memory(5, 20)
        assert [each[:3] for each in port.requests] == [
            ("READ_MEMORY", 0, 16), ("READ_MEMORY", 16, 16),
        ]  # fmt: skip
        port.requests.clear()
        opened.write_memory(64, MEMORY[:24])
        assert port.requests == [
            ("WRITE_MEMORY", 64, 16, MEMORY[:16]), ("WRITE_MEMORY", 80, 8, MEMORY[16:24]),
        ]  # fmt: skip
    assert port.closed


def test_registers_are_words_from_the_lowest_byte(port: Port) -> None:
    opened = Link("none", BAUD)
    assert opened.read_registers(4, 2) == [0x07060504, 0x0B0A0908]
    opened.write_register(12, 0x01020304)
    assert port.requests[-1] == ("WRITE_REGISTER", 12, 4, bytes([4, 3, 2, 1]))


def test_a_request_is_sent_until_it_is_answered(port: Port) -> None:
    opened = Link("none", BAUD, patience=0.001, tries=3)
    port.lost = 2
    assert opened.read_registers(0) == [0x03020100]
    assert opened.repeated == 2
    port.lost = 3
    with pytest.raises(DeviceError, match=r"none does not answer \(3 tries of 0\.0 s\): no board"):
        opened.read_registers(0)


def test_answers_to_other_requests_are_not_taken(port: Port) -> None:
    opened = Link("none", BAUD, patience=0.001, tries=2)
    for field, step in (("sequence", 1), ("operation", 1)):
        port.change = lambda frame, field=field, step=step: replace(
            frame, **{field: getattr(frame, field) + step & 255}
        )
        with pytest.raises(DeviceError, match="does not answer"):
            opened.read_registers(0)


def test_ends_of_runs_are_counted(port: Port) -> None:
    opened = Link("none", BAUD)
    assert not opened.wait_event(0.0)
    port.waiting = encode_frame(Frame(0, EVENT, 0, 0, b""))
    assert opened.wait_event(1.0)
    assert opened.events == 1


def changed(**fields: Any) -> Callable[[Frame], Frame]:
    return lambda frame: replace(frame, **fields)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (changed(argument=Status.BUSY), BoardBusyError, "none: the board runs a program; wait"),
        (changed(argument=Status.REFUSED), DeviceError, "refuses READ_REGISTERS at 0x4: status 1"),
        (changed(data=b"abc"), DeviceError, "3 bytes in an answer; required 4"),
        (changed(length=8), DeviceError, "4 bytes in an answer; required 4"),
    ],
)
def test_answers_of_another_form_are_refused(
    port: Port, change: Callable[[Frame], Frame], kind: type[DeviceError], message: str
) -> None:
    port.change = change
    with pytest.raises(kind, match=message):
        Link("none", BAUD).read_registers(4)


@pytest.mark.parametrize("name", ["read", "write"])
def test_a_port_that_is_gone_is_said(
    port: Port, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Link("none", BAUD)

    def gone(given: object) -> bytes:
        raise serial.SerialException("unplugged")

    monkeypatch.setattr(port, name, gone)
    with pytest.raises(DeviceError, match="none: the link is lost: unplugged"):
        opened.read_registers(0)
