"""More of one thing never costs a cycle: some of ``monotony``'s networks, on accelerators whose
memories they fill.
"""

from dataclasses import replace

import pytest

from dovetail.compiler.targets.vta.stream import stream_tiles
from dovetail.compiler.targets.vta.target import find_vta
from tests.end_to_end.models import random_network

from .monotony import dearer
from .test_stream import lowered


@pytest.mark.parametrize("seed", [1, 2])
def test_more_memory_and_a_faster_bus_never_cost_a_cycle(seed: int) -> None:
    assert not dearer(seed)


@pytest.mark.parametrize("seed", range(3))
def test_with_more_weights_on_chip_no_layer_needs_more_words_of_act(seed: int) -> None:
    layers, _ = lowered(random_network(seed))
    for layer in layers:
        streamed = {x.name: x.all_channels for x in (*layer.inputs, layer.output)}
        least = []
        for depth in (16, 32, 64, 128):
            config = replace(find_vta("tiny").config, act_depth=16, wgt_depth=depth)
            least.append(min(x.words for x in stream_tiles(layer.kernel, streamed, config)))
        assert least == sorted(least, reverse=True), layer.name
