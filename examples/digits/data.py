"""The digits: 1,797 scans of handwritten digits, 8x8 pixels of 0 to 16, from scikit-learn.

Source: E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI repository, 1998.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

__all__ = ["Digits", "load"]

TEST_SHARE = 0.3
SEED = 7


@dataclass(frozen=True, slots=True)
class Digits:
    """images: float32[N, 8, 8, 1] from 0 to 1.  labels: int64[N]."""

    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.float32]
    test_labels: NDArray[np.int64]


def load() -> Digits:
    """The fixed split: 70 % to train, 30 % to test, each digit in proportion."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[..., None]
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=TEST_SHARE, random_state=SEED, stratify=digits.target
    )
    return Digits(train_x, train_y, test_x, test_y)
