"""Reads the PNG files of the tests, 8 bits a channel.

Source: "Portable Network Graphics (PNG) Specification", W3C, sections 5, 9.
"""

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_png"]

CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""By colour type."""


def read_png(path: Path) -> NDArray[np.uint8]:
    """uint8[height, width, channels]."""
    data, place, packed = path.read_bytes(), 8, b""
    width = height = channels = 0
    while place < len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + length]
        place += 12 + length
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", body)
            assert depth == 8
            channels = CHANNELS[colour]
        elif kind == b"IDAT":
            packed += body
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    image = np.zeros((height + 1, width + 1, channels), np.int64)
    for row, line in enumerate(lines, 1):
        pixels = line[1:].reshape(width, channels).astype(np.int64)
        for column in range(1, width + 1):
            left, above = image[row, column - 1], image[row - 1, column]
            corner = image[row - 1, column - 1]
            predicted = (0, left, above, (left + above) // 2, _paeth(left, above, corner))
            image[row, column] = (pixels[column - 1] + predicted[line[0]]) % 256
    return image[1:, 1:].astype(np.uint8)


def _paeth(left: NDArray, above: NDArray, corner: NDArray) -> NDArray:
    guess = left + above - corner
    far = [np.abs(guess - each) for each in (left, above, corner)]
    first = (far[0] <= far[1]) & (far[0] <= far[2])
    return np.where(first, left, np.where(far[1] <= far[2], above, corner))
