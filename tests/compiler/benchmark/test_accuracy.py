"""Shares and differences, on outputs that one sees through."""

import numpy as np
import pytest

from dovetail.compiler.benchmark.accuracy import Accuracy, accuracy_of

FOUND = np.array([[3, 1], [2, 4], [0, 5], [6, 0]], np.float32)


def test_labels_and_reference_are_compared_with() -> None:
    wanted = FOUND.copy()
    wanted[1] = [4, 2]
    found = accuracy_of([FOUND], [wanted], np.array([0, 1, 0, 1]))
    assert (found.top1, found.agreement, found.equal) == (0.5, 0.75, False)
    assert found.error == pytest.approx((8 / (9 + 1 + 16 + 4 + 25 + 36)) ** 0.5)


def test_equal_means_every_byte() -> None:
    assert accuracy_of([FOUND], [FOUND.copy()], None) == Accuracy(None, 1.0, 0.0, True)
    zero = FOUND * np.where(FOUND == 0, -1, 1).astype(np.float32)
    assert accuracy_of([zero], [FOUND], None) == Accuracy(None, 1.0, 0.0, False)
    assert accuracy_of([FOUND], None, None) == Accuracy()


def test_outputs_are_flat_before_the_largest_is_sought() -> None:
    image = np.zeros((2, 3, 4, 5))
    image[0, 1, 2, 3] = image[1, 2, 3, 4] = 1
    assert accuracy_of([image], None, np.array([33, 59])).top1 == 1.0
