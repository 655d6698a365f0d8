"""The host's link to a board: frames over a byte stream (a serial port).

A frame is, on the wire, SLIP (RFC 1055): END, the bytes, END, where END and ESC among the bytes
are escaped.  Its bytes are a header of ``HEADER_BYTES``, data, and their CRC-32 (IEEE 802.3,
little-endian).  The host sends one request and waits for its response; a damaged frame is ignored
by whoever gets it, and the host sends its request again.  A board does a request with the
sequence number and CRC of the one before no second time: it only answers again.

    request   sequence u8, operation u8, length u16, address u32, data of a write
    response  sequence u8, operation + RESPONSE u8, length u16, status u32, data of a read

``length`` is that of the data, written or to be read.  Memory is accessed in multiples of
``GRAIN`` bytes, registers one or more at a time, 4 bytes each.  A board sends an EVENT, which is
not answered, when a run ends.

Next to the port of an emulated board is the file PORT + ``CLOCK_SUFFIX``: nanoseconds that have
passed for the board, u64.
"""

import zlib
from enum import IntEnum

from .frozen import frozen

__all__ = [
    "CLOCK_SUFFIX",
    "CRC_BYTES",
    "END",
    "ESCAPE",
    "ESCAPED_END",
    "ESCAPED_ESCAPE",
    "EVENT",
    "GRAIN",
    "HEADER_BYTES",
    "MOST_DATA",
    "RESPONSE",
    "Frame",
    "FrameDecoder",
    "Operation",
    "Status",
    "encode_frame",
]

END, ESCAPE, ESCAPED_END, ESCAPED_ESCAPE = 0xC0, 0xDB, 0xDC, 0xDD
HEADER_BYTES = 8
CRC_BYTES = 4
CLOCK_SUFFIX = ".clock"
MOST_DATA = 1024
"""Bytes of data in a frame, at most."""
GRAIN = 8
"""Memory addresses and lengths are multiples of this."""
RESPONSE = 0x80
"""Added to the operation of a request in its response."""
EVENT = 0xFF
"""Operation of the frame that says that a run has ended; its sequence number is 0."""


class Operation(IntEnum):
    """Kind of a request."""

    READ_MEMORY = 1
    WRITE_MEMORY = 2
    READ_REGISTERS = 3
    """``length / 4`` registers from a byte address of the register map."""
    WRITE_REGISTER = 4


class Status(IntEnum):
    """How a request ended."""

    OK = 0
    REFUSED = 1
    """An unknown operation, or a length or address it cannot have."""
    BUSY = 2
    """Memory, while a program runs."""


@frozen
class Frame:
    """A request or response.

    length: bytes of data; of a request to read, the bytes wanted, with no data.  argument: the
    address of a request, the status of a response.
    """

    sequence: int
    operation: int
    length: int
    argument: int
    data: bytes = b""


def encode_frame(frame: Frame) -> bytes:
    """The bytes on the wire, END at both sides."""
    body = (
        bytes((frame.sequence, frame.operation))
        + frame.length.to_bytes(2, "little")
        + frame.argument.to_bytes(4, "little")
        + frame.data
    )
    body += zlib.crc32(body).to_bytes(CRC_BYTES, "little")
    escape = bytes((ESCAPE,))
    body = body.replace(escape, bytes((ESCAPE, ESCAPED_ESCAPE)))
    body = body.replace(bytes((END,)), bytes((ESCAPE, ESCAPED_END)))
    end = bytes((END,))
    return end + body + end


class FrameDecoder:
    """Finds frames in a byte stream; what is damaged is dropped and counted."""

    def __init__(self) -> None:
        self._body = bytearray()
        self._escaped = False
        self._broken = False
        self.damaged = 0

    def feed(self, received: bytes) -> list[Frame]:
        """The frames that end in ``received``."""
        frames = []
        for byte in received:
            if byte == END:
                if self._body or self._broken:
                    frame = None if self._broken or self._escaped else _parse(bytes(self._body))
                    self.damaged += frame is None
                    frames += [frame] if frame else []
                self._body.clear()
                self._escaped = self._broken = False
            elif self._escaped:
                self._escaped = False
                if byte in (ESCAPED_END, ESCAPED_ESCAPE):
                    self._body.append(END if byte == ESCAPED_END else ESCAPE)
                else:
                    self._broken = True
            elif byte == ESCAPE:
                self._escaped = True
            elif len(self._body) < HEADER_BYTES + MOST_DATA + CRC_BYTES:
                self._body.append(byte)
            else:
                self._broken = True
        return frames


def _parse(body: bytes) -> Frame | None:
    """The frame with these bytes; None when its checksum is wrong."""
    if len(body) < HEADER_BYTES + CRC_BYTES:
        return None
    content, checksum = body[:-CRC_BYTES], body[-CRC_BYTES:]
    if zlib.crc32(content) != int.from_bytes(checksum, "little"):
        return None
    return Frame(
        content[0],
        content[1],
        int.from_bytes(content[2:4], "little"),
        int.from_bytes(content[4:8], "little"),
        content[HEADER_BYTES:],
    )
