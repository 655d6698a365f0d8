"""Needs of parts of layers, and layers that come after the last of others: counted by hand."""

import numpy as np
import pytest

from dovetail.compiler.targets.vta.follows import follows
from dovetail.compiler.targets.vta.layers.definition import LoweredLayer
from dovetail.compiler.targets.vta.needs import Needs, needs
from tests.end_to_end.models import Network

from .test_stream import lowered


@pytest.fixture(scope="module")
def chain() -> list[LoweredLayer]:
    """A 3x3 convolution to 4 blocks of 4x4 pixels, one to 2, a depthwise one, a mean, a dense one
    to 3.
    """
    net = Network(np.random.default_rng(1))
    x = net.conv(net.input(8, 4, 4), 16, pads=(1, 1, 1, 1))
    x = net.conv(net.conv(x, 8, (1, 1)), 8, pads=(1, 1, 1, 1), depthwise=True)
    return lowered(net.model(net.dense(net.global_average(x), 12)))[0]


@pytest.fixture(scope="module")
def joined() -> list[LoweredLayer]:
    """Two layers that make 2 blocks and 1 of a tensor of 2x2 pixels, which a fourth reads."""
    net = Network(np.random.default_rng(1))
    a = net.conv(net.input(8, 2, 2), 8, (1, 1))
    parts = net.concat(net.conv(a, 8, (1, 1)), net.conv(a, 4, (1, 1)))
    return lowered(net.model(net.conv(parts, 8, (1, 1))))[0]


def check(found: Needs, parts: list[list[float]], wholly: list[tuple[int, int]]) -> None:
    np.testing.assert_array_equal(found.parts, np.array(parts))
    assert [tuple(each) for each in np.argwhere(found.wholly).tolist()] == wholly


def test_layers_come_from_blocks_and_pixels_of_others(chain: list[LoweredLayer]) -> None:
    first, tile, whole = needs(chain)
    first_parts = [
        [0, 0, 0, 0, 0],
        [1 / 64, 0, 0, 0, 0],  # a block of a pixel
        [4 / 64, 1 / 32, 0, 0, 0],  # all blocks of that pixel
        [1, 1 / 2, 1 / 2, 0, 0],  # all pixels of a block
        [1, 1 / 2, 1 / 2, 1 / 2, 0],
    ]
    check(first, first_parts, [(2, 0), (3, 0), (4, 0)])
    tile_parts = [
        [0, 0, 0, 0, 0],
        [1 / 4, 0, 0, 0, 0],  # a block of all pixels
        [4 / 16, 4 / 32, 0, 0, 0],  # a window of a corner
        [4 / 64, 1 / 32, 1 / 32, 0, 0],  # a mean has no weights
        [1, 1 / 2, 1 / 2, 1 / 2, 0],
    ]
    check(tile, tile_parts, [(2, 0), (3, 0), (4, 0)])
    below = np.tril(np.ones((5, 5)))
    np.testing.assert_array_equal(whole.parts, below)
    np.testing.assert_array_equal(whole.wholly, below.astype(bool))


def test_what_comes_after_the_last_block_of_a_layer(chain: list[LoweredLayer]) -> None:
    some, all_weights = follows(chain)
    np.testing.assert_array_equal(some, np.triu(np.ones((5, 5), bool), 1))
    # After the first layer's come all blocks of a pixel of the next, and so all of the mean; after
    # the last block of another one of them, of which the dense layer's other weights need nothing.
    assert np.argwhere(all_weights).tolist() == [[0, 4]]


def test_of_what_several_layers_make_any_may_come_first(joined: list[LoweredLayer]) -> None:
    first, tile, whole = needs(joined)
    check(first, [[0] * 4, [1 / 8, 0, 0, 0], [1 / 8, 0, 0, 0], [1 / 4, 0, 0, 0]], [(3, 0)])
    check(tile, [[0] * 4, [1 / 2, 0, 0, 0], [1 / 2, 0, 0, 0], [1, 0, 0, 0]], [(3, 0)])
    assert whole.parts.tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]]
    some, all_weights = follows(joined)
    assert np.argwhere(some).tolist() == [[0, 1], [0, 2], [0, 3], [1, 3], [2, 3]]
    assert np.argwhere(all_weights).tolist() == [[0, 3]]
