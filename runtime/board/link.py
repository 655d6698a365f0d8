"""Requests to a board, sent again until they are answered."""

import itertools
import random
import time
from typing import Protocol

import serial

from dovetail.isa.link import (
    EVENT,
    GRAIN,
    MOST_DATA,
    RESPONSE,
    Frame,
    FrameDecoder,
    Operation,
    Status,
    encode_frame,
)

from ..errors import DeviceError
from .clock import open_clock

__all__ = ["BoardBusyError", "Link", "SerialPort"]

BITS_PER_BYTE = 10
LONGEST_READ = 0.05
"""Seconds until the clock is looked at again."""


class BoardBusyError(DeviceError):
    """The board runs a program and cannot reach its memory."""


class SerialPort(Protocol):
    """The interface of a serial port that is used; ``timeout`` of a read, in seconds."""

    timeout: float | None

    def read(self, size: int) -> bytes: ...
    def write(self, data: bytes) -> int | None: ...
    def reset_input_buffer(self) -> None: ...
    def close(self) -> None: ...


class Link:
    """One board's link; see ``dovetail.isa.link``.

    patience: seconds without an answer, besides the time on the wire, until a request is sent
    again; of an emulated board less, and of its time.  tries: how often one is sent.  chunk: bytes
    of memory in a request, a multiple of ``GRAIN``.
    Raises DeviceError when the port cannot be opened, and BoardBusyError or DeviceError from every
    request that the board refuses or never answers.
    """

    def __init__(
        self,
        port: str,
        baud: int,
        *,
        patience: float = 1.0,
        tries: int = 10,
        chunk: int = MOST_DATA,
    ) -> None:
        self.name = port
        self._byte_seconds = BITS_PER_BYTE / baud
        self._clock = open_clock(port)
        self._patience = patience * self._clock.pace
        self._tries, self._chunk = tries, chunk
        # A host that starts again must not seem to repeat the last one's request.
        self._sequence = itertools.count(random.SystemRandom().randrange(256))
        self._decoder = FrameDecoder()
        self.repeated = 0
        """Requests sent again."""
        self.events = 0
        """Ends of runs that the board reported."""
        try:
            self._port: SerialPort = serial.Serial(port, baud, timeout=0)
            self._port.reset_input_buffer()
        except (OSError, ValueError) as error:
            raise DeviceError(
                f"serial port {port}: {error}; is the board plugged in, and may you use the port?"
            ) from None

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the port back."""
        self._port.close()

    def read_memory(self, address: int, size: int) -> bytes:
        """``size`` bytes of the board's memory from ``address``, whatever their alignment."""
        first, end = address - address % GRAIN, -(-(address + size) // GRAIN) * GRAIN
        parts = []
        for place in range(first, end, self._chunk):
            length = min(self._chunk, end - place)
            answer = self._ask(Operation.READ_MEMORY, place, length)
            parts.append(self._data(answer, length))
        return b"".join(parts)[address - first :][:size]

    def write_memory(self, address: int, content: bytes) -> None:
        """Write ``content``; both ends are multiples of ``GRAIN``."""
        assert address % GRAIN == 0
        assert len(content) % GRAIN == 0
        for start in range(0, len(content), self._chunk):
            part = content[start : start + self._chunk]
            self._ask(Operation.WRITE_MEMORY, address + start, len(part), part)

    def read_registers(self, offset: int, count: int = 1) -> list[int]:
        """``count`` registers from byte ``offset`` of the register map."""
        answer = self._ask(Operation.READ_REGISTERS, offset, 4 * count)
        content = self._data(answer, 4 * count)
        return [int.from_bytes(content[i : i + 4], "little") for i in range(0, 4 * count, 4)]

    def write_register(self, offset: int, value: int) -> None:
        """Write one register."""
        self._ask(Operation.WRITE_REGISTER, offset, 4, value.to_bytes(4, "little"))

    def wait_event(self, seconds: float) -> bool:
        """True if the board reports the end of a run within ``seconds``."""
        before = self.events
        end = time.monotonic() + seconds
        while self.events == before and time.monotonic() < end:
            self._receive(min(0.05, seconds))
        return self.events > before

    def _ask(self, operation: Operation, argument: int, length: int, data: bytes = b"") -> Frame:
        """The answer to one request, sent until it comes."""
        sequence = next(self._sequence) % 256
        request = encode_frame(Frame(sequence, operation, length, argument, data))
        wire = (len(request) + 2 * length + 32) * self._byte_seconds
        for attempt in range(self._tries):
            self.repeated += attempt > 0
            self._send(request)
            end = self._clock.seconds() + wire + self._patience
            while (left := end - self._clock.seconds()) > 0:
                for frame in self._receive(min(left / self._clock.pace, LONGEST_READ)):
                    if frame.sequence == sequence and frame.operation == operation | RESPONSE:
                        return self._checked(frame, operation, argument)
        raise DeviceError(
            f"{self.name} does not answer ({self._tries} tries of "
            f"{(wire + self._patience) / self._clock.pace:.1f} s): no board of this project "
            "there, another baud rate, or the link is lost; check cable and bitstream, then run "
            "again"
        )

    def _checked(self, answer: Frame, operation: Operation, argument: int) -> Frame:
        if answer.argument == Status.BUSY:
            raise BoardBusyError(f"{self.name}: the board runs a program; wait, or stop it")
        if answer.argument != Status.OK:
            raise DeviceError(
                f"{self.name}: the board refuses {operation.name} at {argument:#x}: status "
                f"{answer.argument}; its bitstream is of another version of this project"
            )
        return answer

    def _data(self, answer: Frame, length: int) -> bytes:
        if len(answer.data) != length or answer.length != length:
            raise DeviceError(
                f"{self.name}: {len(answer.data)} bytes in an answer; required {length}; the "
                "board's bitstream is of another version of this project"
            )
        return answer.data

    def _send(self, request: bytes) -> None:
        try:
            self._port.write(request)
        except (OSError, serial.SerialException) as error:
            raise DeviceError(f"{self.name}: the link is lost: {error}") from None

    def _receive(self, seconds: float) -> list[Frame]:
        """Bytes that arrive within ``seconds``; returns with the first ones."""
        try:
            self._port.timeout = seconds
            found = self._port.read(1)
            self._port.timeout = 0
            found += self._port.read(2 * MOST_DATA + 64)
        except (OSError, serial.SerialException) as error:
            raise DeviceError(f"{self.name}: the link is lost: {error}") from None
        frames = self._decoder.feed(found)
        self.events += sum(frame.operation == EVENT for frame in frames)
        return [frame for frame in frames if frame.operation != EVENT]
