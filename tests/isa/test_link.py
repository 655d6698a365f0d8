"""Frames of the host's link: round trips, and what damage does to them."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.isa.link import END, ESCAPE, MOST_DATA, Frame, FrameDecoder, encode_frame

BYTES = st.integers(0, 255)
DATA = st.lists(st.sampled_from([END, ESCAPE, 0, 0xDC, 0xDD, 7]), max_size=64).map(bytes)
FRAMES = st.builds(
    lambda sequence, operation, argument, data: Frame(
        sequence, operation, len(data), argument, data
    ),
    BYTES,
    BYTES,
    st.integers(0, 2**32 - 1),
    DATA | st.binary(max_size=MOST_DATA),
)


@given(st.lists(FRAMES, max_size=4), st.integers(1, 50))
def test_frames_come_back_in_whatever_pieces_they_arrive(frames: list[Frame], piece: int) -> None:
    wire = b"".join(map(encode_frame, frames))
    decoder = FrameDecoder()
    found = [
        frame
        for start in range(0, len(wire), piece)
        for frame in decoder.feed(wire[start : start + piece])
    ]
    assert found == frames
    assert decoder.damaged == 0


@given(FRAMES, FRAMES, st.data())
def test_a_damaged_frame_is_dropped_and_the_next_one_is_found(
    frame: Frame, following: Frame, data: st.DataObject
) -> None:
    wire = bytearray(encode_frame(frame))
    place = data.draw(st.integers(1, len(wire) - 2))
    if data.draw(st.booleans()):
        del wire[place]
    else:
        wire[place] ^= 1 << data.draw(st.integers(0, 7))
    decoder = FrameDecoder()
    found = decoder.feed(bytes(wire) + encode_frame(following))
    assert found[-1] == following
    # A byte of the frame that became END may leave two pieces; neither is a frame.
    assert found[:-1] == []


def test_the_layout_is_the_documented_one() -> None:
    wire = encode_frame(Frame(1, 2, 8, 0x12345678, b"\xc0\xdb345678"))
    body = bytes([1, 2, 8, 0, 0x78, 0x56, 0x34, 0x12]) + b"\xc0\xdb345678"
    checksum = zlib.crc32(body).to_bytes(4, "little")
    assert not {0xC0, 0xDB} & set(checksum)
    escaped = body.replace(b"\xdb", b"\xdb\xdd").replace(b"\xc0", b"\xdb\xdc")
    assert wire == b"\xc0" + escaped + checksum + b"\xc0"


@pytest.mark.parametrize("size", [MOST_DATA + 1, 5000])
def test_what_is_too_long_is_no_frame(size: int) -> None:
    decoder = FrameDecoder()
    assert decoder.feed(encode_frame(Frame(0, 1, size & 0xFFFF, 0, bytes(size)))) == []
    assert decoder.damaged == 1
