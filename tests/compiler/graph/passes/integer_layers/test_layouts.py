"""Reshaped tensors keep the order that their bytes are stored in, as far as they can."""

import numpy as np
import pytest

from dovetail.compiler.graph.passes.integer_layers.layouts import reshaped_order

Shape = tuple[int, ...]


@pytest.mark.parametrize(
    ("before", "after", "stored", "wanted"),
    [
        ((1, 8, 3, 4), (1, 8, 12), (0, 2, 3, 1), ((0, 2, 3, 1), (0, 2, 1))),
        ((1, 8, 12), (1, 8, 3, 4), (0, 2, 1), ((0, 2, 1), (0, 2, 3, 1))),
        ((1, 8, 1, 1), (1, 8), (0, 2, 3, 1), ((0, 2, 3, 1), (0, 1))),
        ((1, 8, 12), (1, 8, 12, 1), (0, 2, 1), ((0, 2, 1), (0, 2, 3, 1))),
        ((1, 8, 3, 4), (1, 2, 4, 3, 4), (0, 2, 3, 1), ((0, 2, 3, 1), (0, 3, 4, 1, 2))),
        # Heads, stored before rows, become channels.
        ((1, 2, 5, 12), (1, 10, 3, 4), (0, 1, 3, 2), ((0, 3, 1, 2), (0, 2, 3, 1))),
        # Channels and rows become one: what lies last cannot go on to do so.
        ((1, 8, 3, 4), (1, 24, 4), (0, 2, 3, 1), None),
        ((1, 8, 3, 4), (1, 96), (0, 2, 3, 1), None),
    ],
)
def test_bytes_stay_where_they_are(
    before: Shape, after: Shape, stored: Shape, wanted: tuple[Shape, Shape] | None
) -> None:
    found = reshaped_order(before, after, stored)
    assert found == wanted
    if found is not None:
        x = np.arange(np.prod(before)).reshape(before)
        first, last = found
        moved = x.transpose(first).reshape([after[axis] for axis in last])
        np.testing.assert_array_equal(moved.transpose(np.argsort(last)), x.reshape(after))
