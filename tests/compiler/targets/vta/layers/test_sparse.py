"""Tiles of weights that are all 0 are left out, and what is left is the convolution still."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.layers.sparse import find_band

from .layers import Network, lower_graph

LANES = 4


@given(st.data())
def test_a_band_is_the_narrowest_that_has_every_used_tile(data: st.DataObject) -> None:
    outputs, inputs = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    flags = st.lists(st.booleans(), min_size=outputs * inputs, max_size=outputs * inputs)
    used = np.array(data.draw(flags)).reshape(outputs, inputs)
    band, count = find_band(used)
    held = band.of(np.arange(outputs)[:, None], np.arange(count))
    assert held.min() >= 0
    assert held.max() < inputs
    rest = used.copy()
    np.put_along_axis(rest, held, False, 1)
    assert not rest.any()
    for step in (0, 1):
        for first in range(inputs):
            fewer = np.arange(outputs)[:, None] * step + first + np.arange(count - 1)
            if count > 1 and fewer.max() < inputs:
                rest = used.copy()
                np.put_along_axis(rest, fewer, False, 1)
                assert rest.any()


def convolved(weights: np.ndarray, zero_point: int) -> Network:
    """A convolution of int8[1, 3, 3, C] with OHWI ``weights``."""
    outputs, _, _, channels = weights.shape
    builder = GraphBuilder(["x"], [], {}, {"x": TensorType((1, 3, 3, channels), DType.INT8)})
    inputs = (
        "x",
        builder.constant("weights", weights),
        builder.constant("bias", np.arange(outputs, dtype=np.int32)),
    )
    total = builder.node(Conv2d((1, 1), (0, 0, 0, 0), 1, 3, zero_point), inputs, "sum", "conv")
    scale = builder.constant("scale", np.full(outputs, 0.05, np.float32))
    y = builder.node(Requantize(-2, -128, 127), (total, scale), "y", "conv")
    return lower_graph(builder.build((y,)), LANES, 0)


@pytest.mark.parametrize("zero_point", [0, 7])
@pytest.mark.parametrize(
    ("places", "parts"),
    [
        # channels picked; input blocks that a result block comes from
        (range(8, 16), 1),
        (range(6, 14), 2),
        (range(9), 1),
        ((0, 1, 2, 4, 5, 6, 8, 9, 10), 2),
        (range(15, -1, -1), 4),
    ],
    ids=["blocks", "within blocks", "the first", "gaps", "turned round"],
)
def test_picked_channels_come_from_the_blocks_that_have_them(
    places: tuple[int, ...], parts: int, zero_point: int
) -> None:
    picks = np.eye(16, dtype=np.int8)[list(places), None, None] * 20
    network = convolved(picks + np.int8(zero_point), zero_point)
    (layer,) = network.layers
    assert layer.constants["weights"].shape[1] == parts
    assert np.array_equal(network.result(layer), network.wanted(layer))
