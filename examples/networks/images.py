"""Images to calibrate with: random, but smooth as photographs are."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["calibration_images"]


def calibration_images(count: int, size: int, seed: int = 0) -> NDArray[np.float32]:
    """float32[count, 3, size, size], each channel of an image with mean 0 and variance 1.

    The amplitude of a frequency falls with the frequency, as in natural images (D. Field,
    "Relations between the statistics of natural images", 1987).
    """
    rng = np.random.default_rng(seed)
    rows, columns = np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None]
    amplitude = 1 / np.maximum(np.hypot(rows, columns), 1 / size)
    noise = rng.standard_normal((count, 3, size, size))
    images = np.fft.irfft2(np.fft.rfft2(noise) * amplitude, s=(size, size))
    images -= images.mean(axis=(2, 3), keepdims=True)
    images /= images.std(axis=(2, 3), keepdims=True)
    return images.astype(np.float32)
