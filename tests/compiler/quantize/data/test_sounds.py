"""WAV files as samples."""

import wave
from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.errors import CalibrationError
from dovetail.compiler.graph.ir import Array
from dovetail.compiler.quantize.data import Preparation, read_data
from dovetail.compiler.quantize.signature import Signature


def write(path: Path, data: bytes, width: int, channels: int = 1) -> None:
    with wave.open(str(path), "wb") as opened:
        opened.setnchannels(channels)
        opened.setsampwidth(width)
        opened.setframerate(16000)
        opened.writeframes(data)


def read(folder: Path, shape: tuple[int, ...], crop: bool = False) -> list[Array]:
    data = read_data(folder, (Signature("x", shape),), Preparation(crop=crop))
    return [each["x"] for each in data]


VALUES = np.array([0, 64, -128, 127])


@pytest.mark.parametrize(
    ("width", "data"),
    [
        (1, (VALUES + 128).astype(np.uint8).tobytes()),
        (2, (VALUES << 8).astype("<i2").tobytes()),
        (3, b"".join((int(v) << 16).to_bytes(3, "little", signed=True) for v in VALUES)),
        (4, (VALUES << 24).astype("<i4").tobytes()),
    ],
)
def test_values_lie_from_minus_one_to_one(tmp_path: Path, width: int, data: bytes) -> None:
    write(tmp_path / "a.wav", data, width)
    (found,) = read(tmp_path, (1, 1, 4))
    np.testing.assert_array_equal(found, [[VALUES / 128]])


def test_channels_become_their_mean_and_the_middle_is_cut(tmp_path: Path) -> None:
    write(tmp_path / "a.wav", (np.arange(12) << 8).astype("<i2").tobytes(), 2, channels=2)
    (found,) = read(tmp_path, (2,), crop=True)
    np.testing.assert_array_equal(found * 128, [4.5, 6.5])


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.wav", bytes(10), 2)
    with pytest.raises(CalibrationError, match=r"5 values; required 4 .*; crop it"):
        read(tmp_path, (4,))
    with pytest.raises(CalibrationError, match="5 values; required 6"):
        read(tmp_path, (6,), crop=True)
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(CalibrationError, match=r"cannot read sound .*a\.wav"):
        read(tmp_path, (5,))
