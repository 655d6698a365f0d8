"""No plan goes below the roof, and the roof counts what any program has to do."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from math import prod
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions, Overlap
from dovetail.compiler.targets.vta.model import issue_counts
from dovetail.compiler.targets.vta.needs import needs
from dovetail.compiler.targets.vta.roof import roof_of
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Vector
from dovetail.isa.memories import Unit
from dovetail.isa.program import program_from_bytes
from dovetail.runtime.accelerator.part import accelerator_part
from tests.end_to_end.models import Network, random_network
from tests.kept_costs import check_costs
from tests.once import short_searches

from .test_stream import lowered

TINY = find_config("tiny")

Array = NDArray[Any]
Change = Callable[[Array], Array]


@pytest.fixture
def any_plan() -> Iterator[None]:
    """For tests of the roof itself, which does not depend on the plan."""
    with short_searches():
        yield


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("overlap", [Overlap.TILES, Overlap.LAYERS])
def test_no_program_is_faster_than_the_roof(seed: int, overlap: Overlap) -> None:
    config = TINY if seed % 2 else replace(TINY, wgt_depth=64)
    part = accelerator_part(compile(random_network(seed), config, CompileOptions(overlap=overlap)))
    check_costs([part])
    assert 0 < part.roof_cycles <= part.expected_cycles


def roof(channels: int, config: HardwareConfig) -> int:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(4, 8, 8), channels, pads=(1, 1, 1, 1))
    model = net.model(net.dense(net.global_average(x), 32))
    return accelerator_part(compile(model, config)).roof_cycles


def test_weights_that_wgt_cannot_hold_raise_the_roof(any_plan: None) -> None:
    """12 blocks in, 8 out: 96 tiles, of which WGT holds 32; all pixels of a channel come before."""
    small, large = replace(TINY, wgt_depth=32, name="s"), replace(TINY, wgt_depth=256, name="l")
    found = roof(48, small)
    assert found >= 64 * TINY.block**2 // TINY.bus_bytes
    assert found >= roof(48, large)


def test_the_last_results_go_through_all_groups_of_channels(any_plan: None) -> None:
    """As below; each second one of the later layers is two, which read halves of the one before."""
    config = replace(TINY, wgt_depth=32, act_depth=2048)
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(16, 12, 12), 32, pads=(1, 1, 1, 1))
    early = 144 * 8 * 4 * 9
    for _ in range(4):
        x = net.max_pool(x, 3, 2, (1, 1, 1, 1))
    for _ in range(6):
        x = net.conv(x, 32, (1, 1))
        halves = (net.part(x, first, 16) for first in (0, 16))
        x = net.concat(*(net.conv(half, 16, (1, 1)) for half in halves))
    part = accelerator_part(compile(net.model(x), config))
    weights = 5 * (8 * 8 + 2 * 4 * 4) - 32
    assert part.roof_cycles >= early + weights * TINY.block**2 // TINY.bus_bytes
    assert part.roof_cycles <= part.expected_cycles


def test_the_last_results_need_all_later_weights(any_plan: None) -> None:
    """The last pixel of the first layers, which keep GEMM busy, goes through all layers behind a
    pool that overlaps; their weights come after it, but for as many as WGT holds.
    """
    config = replace(TINY, wgt_depth=32, act_depth=2048)
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(16, 16, 16), 32, pads=(1, 1, 1, 1))
    early = 256 * 8 * 4 * 9
    for _ in range(4):
        x = net.max_pool(x, 3, 2, (1, 1, 1, 1))
    for _ in range(4):
        x = net.conv(x, 32, (1, 1))
    cycles = accelerator_part(compile(net.model(x), config)).roof_cycles
    # The weights of the first of the four may come with that pixel's first block.
    assert cycles >= early + (3 * 8 * 8 - 32) * TINY.block**2 // TINY.bus_bytes


def changed_weights(model: onnx.ModelProto, shape: tuple[int, ...], *change: Change) -> None:
    """Put ``change`` of them, in turn, in place of the weights of ``shape``."""
    found = [each for each in model.graph.initializer if tuple(each.dims) == shape]
    for initializer, one in zip(found, cycle(change), strict=False):
        array = one(numpy_helper.to_array(initializer)).astype(np.int8)
        initializer.CopyFrom(numpy_helper.from_array(array, initializer.name))


def first_blocks(weights: Array) -> Array:
    """Weights of the last 8 of 32 channels become 0."""
    return weights * (np.arange(32) < 24).reshape(1, -1, 1, 1)


def last_blocks(weights: Array) -> Array:
    """Weights of the first 8 of 32 channels become 0."""
    return weights * (np.arange(32) >= 8).reshape(1, -1, 1, 1)


def test_weights_of_halves_that_are_shuffled_come_after_the_first_layers(any_plan: None) -> None:
    """As above; each later layer is two, which read all but two of the 8 blocks before.

    So the last block of a result may change some blocks only.  But products with one tile of
    weights, at all pixels, need all pixels of a block, and so all that comes before.
    """
    config = replace(TINY, wgt_depth=32, act_depth=2048)
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(16, 12, 12), 32, pads=(1, 1, 1, 1))
    early = 144 * 8 * 4 * 9
    for _ in range(4):
        x = net.max_pool(x, 3, 2, (1, 1, 1, 1))
    for _ in range(6):
        x = net.concat(*(net.conv(x, 16, (1, 1)) for _ in range(2)))
    model = net.model(net.conv(x, 32, (1, 1)))
    changed_weights(model, (16, 32, 1, 1), first_blocks, last_blocks)
    part = accelerator_part(compile(model, config))
    weights = 4 * 2 * 4 * 6 - 32
    assert part.roof_cycles >= early + weights * TINY.block**2 // TINY.bus_bytes
    assert part.roof_cycles <= part.expected_cycles


def test_blocks_that_two_layers_read_are_all_needed() -> None:
    """Two layers read 6 of 8 blocks: together all that two others make."""
    net = Network(np.random.default_rng(0))
    image = net.input(4, 6, 6)
    x = net.concat(*(net.conv(image, 16, (1, 1)) for _ in range(2)))
    model = net.model(net.add(*(net.conv(x, 16, (1, 1)) for _ in range(2))))
    changed_weights(model, (16, 32, 1, 1), first_blocks, last_blocks)
    layers, _ = lowered(model)
    *_, whole = needs(layers)
    assert np.all(whole.parts[-1, :2] == 1)
    assert np.all(whole.wholly[-1, :2])


def test_words_of_weights_that_are_equal_need_come_once() -> None:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(16, 6, 6), 16, (1, 1))
    model = net.model(net.conv(x, 16, (1, 1)))

    def dram() -> int:
        layers, ends = lowered(model)
        return roof_of(layers, ends.sources, ends.results, TINY).dram

    apart = dram()
    same = np.random.default_rng(1).integers(-9, 9, (16, 16, 1, 1))
    changed_weights(model, (16, 16, 1, 1), lambda array: same)
    assert apart - dram() == 16 * TINY.block**2 // TINY.bus_bytes


def test_all_that_comes_after_a_barrier_counts(any_plan: None) -> None:
    """Two layers that no other reads both, behind a product with a mean of all pixels."""
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(4, 12, 12), 8, pads=(1, 1, 1, 1))
    x = net.multiply(x, net.global_average(x))
    both = [net.conv(x, 8, (5, 5), depthwise=True) for _ in range(2)]
    # The mean of one of two blocks may be there before the other block.
    # Rows of five taps are two groups; a row of eight results needs two columns more.
    early, late = 144 * 9, 2 * 2 * 8 * 5 * 2 * (8 + 2)
    part = accelerator_part(compile(net.model(*both), TINY))
    assert early + late <= part.roof_cycles <= part.expected_cycles


def test_a_sum_of_two_tensors_reads_a_word_of_each_in_a_cycle() -> None:
    net = Network(np.random.default_rng(0))
    x = net.input(8, 6, 6)
    model = net.model(net.add(x, net.max_pool(x, 3, 1, (1, 1, 1, 1))))
    pool, add = (issue_counts(layer.kernel, TINY)[Unit.VECTOR] for layer in lowered(model)[0])
    part = accelerator_part(compile(model, TINY))
    code = bytes(part.dram[part.program_address :][: part.program_bytes])
    vectors = [each for each in program_from_bytes(code) if isinstance(each, Vector)]
    assert pool + add == sum(prod(each.extent) for each in vectors)


def test_readers_of_other_places_want_no_more_than_both_read() -> None:
    """All blocks of one pixel, and one block of 25: not all blocks of 25."""
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(16, 8, 8), 32, pads=(1, 1, 1, 1))
    deep = net.conv(x, 32, (5, 5), depthwise=True)
    total = net.add(net.conv(x, 32, (1, 1), strides=(2, 2)), deep)
    layers, _ = lowered(net.model(net.conv(total, 16, (1, 1))))
    blocks, pixels = layers[0].output.blocks, 64
    first, *_ = needs(layers)
    assert 0 < first.parts[-1, 0] <= (blocks + 25 - 1) / (blocks * pixels)
