"""Pictures as samples: resized, cropped, scaled, in the order of the input's dimensions.

Pillow reads them, an optional package (the extra ``pictures``).
"""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ...errors import CalibrationError
from ...graph.ir import Array
from ..signature import Sample, Signature, require_float
from .dataset import Source

__all__ = ["PICTURES", "Preparation", "picture_source"]

PICTURES = (".png", ".jpg", ".jpeg", ".bmp")
FORMATS = ("PNG", "JPEG", "BMP")
MODES = {1: "L", 3: "RGB"}
"""Pillow's, by channels."""


@frozen
class Preparation:
    """How a picture becomes an input: ``(pixel * scale - mean) / std``, pixels from 0 to 255.

    resize: the shorter side, or height and width; None keeps the size.  crop: take the middle of
    the input's size, of a sound too.  mean, std: one value, or one a channel.  bgr: blue first.
    """

    resize: tuple[int, ...] | None = None
    crop: bool = False
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    bgr: bool = False

    def __post_init__(self) -> None:
        if self.resize is not None and (len(self.resize) > 2 or min(self.resize) < 1):
            raise ValueError(f"resize to {self.resize}; required one or two sizes above 0")
        if not all(self.std) or not self.scale:
            raise ValueError("a scale or deviation of 0; required another number")


@frozen
class _Layout:
    """Where the input has its channels, rows and columns."""

    shape: tuple[int, ...]
    channels: int
    height: int
    width: int
    last: bool


def picture_source(
    name: str, file: Path, inputs: Sequence[Signature], options: Preparation
) -> Source:
    """The sample that a picture is; it is read when the sample is.

    Raises CalibrationError for a model that takes no picture; reading raises it for pictures that
    are damaged or of another size than the input.
    """
    layout = _layout(inputs)
    for what, values in (("mean", options.mean), ("std", options.std)):
        if len(values) not in (1, layout.channels):
            raise CalibrationError(
                f"{len(values)} values of {what}; required 1, or {layout.channels} for the "
                f"channels of input {inputs[0].name!r}"
            )

    def read(places: Sequence[int]) -> Iterator[Sample]:
        pixels = _fitted(_open(file, layout, options), layout, file)
        yield from ({inputs[0].name: _values(pixels, layout, options)} for _ in places)

    return Source(name, 1, read)


def _layout(inputs: Sequence[Signature]) -> _Layout:
    if len(inputs) > 1:
        raise CalibrationError(f"pictures for {len(inputs)} inputs; required arrays, as .npz")
    require_float(inputs[0], "pictures")
    name, shape = inputs[0].name, inputs[0].shape
    if len(shape) in (3, 4) and (len(shape) == 3 or shape[0] == 1):
        image = shape[-3:]
        if image[0] in MODES:
            return _Layout(shape, image[0], image[1], image[2], False)
        if image[2] in MODES:
            return _Layout(shape, image[2], image[0], image[1], True)
    raise CalibrationError(
        f"pictures for input {name!r} of shape {list(shape)}; required 1 or 3 channels, first or "
        "last, and one picture a sample"
    )


def _open(file: Path, layout: _Layout, options: Preparation) -> NDArray[np.uint8]:
    """uint8[height, width, channels]."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=FORMATS) as opened:
                if opened.mode.startswith(("I", "F")):
                    raise CalibrationError(
                        f"picture {file} has more than 8 bits a channel; required 8"
                    )
                image = opened.convert(MODES[layout.channels])
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError) as error:
        raise CalibrationError(f"cannot read picture {file}: {error}") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise CalibrationError(f"picture {file} is too large: {error}") from None
    if options.resize is not None:
        size = _resized(image.size, options.resize)
        image = image.resize(size, Image.Resampling.BILINEAR)
    pixels = np.asarray(image)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if options.crop:
        above = max((pixels.shape[0] - layout.height) // 2, 0)
        left = max((pixels.shape[1] - layout.width) // 2, 0)
        pixels = pixels[above : above + layout.height, left : left + layout.width]
    return pixels


def _resized(size: tuple[int, int], wanted: tuple[int, ...]) -> tuple[int, int]:
    """Width and height."""
    if len(wanted) == 2:
        return wanted[1], wanted[0]
    factor = wanted[0] / min(size)
    width, height = (max(int(side * factor), wanted[0]) for side in size)
    return width, height


def _fitted(pixels: NDArray[np.uint8], layout: _Layout, file: Path) -> NDArray[np.uint8]:
    if pixels.shape[:2] != (layout.height, layout.width):
        raise CalibrationError(
            f"picture {file} is {pixels.shape[0]} high and {pixels.shape[1]} wide; required "
            f"{layout.height} and {layout.width}; resize it, or resize and crop"
        )
    return pixels


def _values(pixels: NDArray[np.uint8], layout: _Layout, options: Preparation) -> Array:
    """float32, in the input's shape."""
    ordered = pixels[..., ::-1] if options.bgr else pixels
    values = ordered * np.float64(options.scale) - np.array(options.mean)
    values = values / np.array(options.std)
    if not layout.last:
        values = values.transpose(2, 0, 1)
    return np.ascontiguousarray(values.reshape(layout.shape), np.float32)
