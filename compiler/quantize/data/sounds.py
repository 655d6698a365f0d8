"""WAV files as samples: values from -1 to 1, in the shape of the input."""

import wave
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ...errors import CalibrationError
from ...graph.ir import Array
from ..signature import Sample, Signature, require_float
from .dataset import Source

__all__ = ["SOUNDS", "sound_source"]

SOUNDS = (".wav",)


def sound_source(name: str, file: Path, inputs: Sequence[Signature], crop: bool) -> Source:
    """The sample that a sound is, read when the sample is; ``crop``: the middle of a longer one.

    Channels become one, their mean.  Reading raises CalibrationError for files that are damaged,
    or have another number of values than the input.
    """
    if len(inputs) > 1:
        raise CalibrationError(f"sounds for {len(inputs)} inputs; required arrays, as .npz")
    require_float(inputs[0], "sounds")
    shape = inputs[0].shape
    count = int(np.prod(shape))

    def read(places: Sequence[int]) -> Iterator[Sample]:
        values = _read(file)
        if crop and len(values) > count:
            start = (len(values) - count) // 2
            values = values[start : start + count]
        if len(values) != count:
            raise CalibrationError(
                f"sound {file} has {len(values)} values; required {count} for input "
                f"{inputs[0].name!r} {list(shape)}" + ("" if len(values) < count else "; crop it")
            )
        yield from ({inputs[0].name: values.reshape(shape)} for _ in places)

    return Source(name, 1, read)


def _read(file: Path) -> Array:
    """float32[values]."""
    try:
        with wave.open(str(file), "rb") as opened:
            width, channels = opened.getsampwidth(), opened.getnchannels()
            data = np.frombuffer(opened.readframes(opened.getnframes()), np.uint8)
    except (OSError, EOFError, wave.Error) as error:
        raise CalibrationError(f"cannot read sound {file}: {error or 'it ends early'}") from None
    if width not in (1, 2, 3, 4) or len(data) % (width * channels):
        raise CalibrationError(f"cannot read sound {file}: values of {width} bytes, or cut short")
    if width == 1:
        values = (data.astype(np.float32) - 128) / 128
    else:
        padded = np.zeros((len(data) // width, 4), np.uint8)
        padded[:, 4 - width :] = data.reshape(-1, width)
        values = padded.reshape(-1).view("<i4").astype(np.float64) / 2.0**31
    return values.reshape(-1, channels).mean(axis=1).astype(np.float32)
