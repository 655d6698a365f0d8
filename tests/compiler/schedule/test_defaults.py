"""The plain schedule keeps results, and its tiles fit."""

import json
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dovetail.compiler.errors import DoesNotFitError
from dovetail.compiler.schedule.defaults import Limits, default_schedule
from dovetail.compiler.schedule.primitives import Schedule, from_record
from dovetail.compiler.tensor.ir import Kernel, LoopKind
from dovetail.compiler.tensor.tiles import tile_loops
from dovetail.compiler.tensor.verify import verify

from ..graph.graphs import convolution, image_builder
from ..tensor.layers import Network, lower_graph, networks
from .scheduled import scheduled_result, whole_refs


def _conv(height: int = 6, outputs: int = 12) -> Network:
    """A 3x3 convolution of 3 to ``outputs`` channels, in blocks of 4: 9 weight tiles a block."""
    builder = image_builder((1, height, 5, 3))
    return lower_graph(builder.build((convolution(builder, "x", outputs),)), 4, 0)


def _words(kernel: Kernel, name: str, lanes: int) -> int:
    return int(np.prod(whole_refs(kernel)[name].buffer.shape)) // lanes


@given(networks(), st.integers(1, 40), st.integers(1, 80))
@settings(max_examples=80, deadline=None)
def test_default_schedule_keeps_the_result_and_the_limits(
    network: Network, acc_words: int, wgt_words: int
) -> None:
    for layer in network.layers:
        assume(not layer.inexact_pairs)
        kernel = layer.kernel
        sums = len(kernel.stages) == 2
        extents = kernel.stages[0].extents
        reduced = extents["k"] * extents["ky"] * extents["kx"] if sums else 0
        assume(not sums or reduced <= wgt_words)
        schedule = default_schedule(kernel, Limits(acc_words, wgt_words))
        verify(schedule.kernel)
        found = scheduled_result(network, layer, schedule)
        np.testing.assert_array_equal(found, network.wanted(layer))
        if sums:
            lanes = layer.output.lanes
            assert _words(schedule.kernel, "acc", lanes) <= acc_words
            assert _words(schedule.kernel, "weights", lanes * lanes) <= wgt_words
        tiles = tile_loops(schedule.kernel)
        assert {loop.name for loop in tiles} == {"c.outer", "y.outer", "x.outer"}
        for stage in schedule.kernel.stages:
            kinds = [loop.kind for loop in stage.loops]
            order = (LoopKind.SERIAL, LoopKind.HARDWARE, LoopKind.LANE)
            assert kinds == sorted(kinds, key=order.index)
        replayed = Schedule(kernel)
        for record in json.loads(json.dumps(schedule.record)):
            replayed = replayed.then(from_record(record))
        assert replayed == schedule


def test_layer_is_cut_into_tiles_for_overlap() -> None:
    kernel = default_schedule(_conv().layers[0].kernel, Limits(1000, 1000)).kernel
    assert int(np.prod([loop.extent for loop in tile_loops(kernel)])) >= 4


def test_weights_of_a_block_that_do_not_fit_are_refused() -> None:
    kernel = _conv().layers[0].kernel
    default_schedule(kernel, Limits(8, 9))
    message = (
        "layer 'conv': wgt scratchpad: 9 tiles required for one block of output channels, "
        "8 available; use a configuration with a deeper WGT"
    )
    with pytest.raises(DoesNotFitError, match=re.escape(message)):
        default_schedule(kernel, Limits(8, 8))


def test_no_room_for_a_sum_is_refused() -> None:
    kernel = _conv().layers[0].kernel
    default_schedule(kernel, Limits(1, 9))
    with pytest.raises(DoesNotFitError, match="layer 'conv': acc scratchpad: 1 word required"):
        default_schedule(kernel, Limits(0, 9))
