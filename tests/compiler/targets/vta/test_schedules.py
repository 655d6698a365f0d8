"""Schedules of layers keep results, fit, and are traces that replay."""

import json
import re
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dovetail.compiler.errors import DoesNotFitError, ScheduleError
from dovetail.compiler.graph.operators.integer.values import Add
from dovetail.compiler.loops.expressions import Buffer, Scope
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.intrinsic import by_name
from dovetail.compiler.loops.ir import Function, LoopKind
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.rewrite import map_buffers
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.schedule.steps.trace import replay, to_record
from dovetail.compiler.targets.vta.grains import PLANES, Grain
from dovetail.compiler.targets.vta.intrinsics import intrinsics
from dovetail.compiler.targets.vta.layers.definition import LoweredLayer
from dovetail.compiler.targets.vta.read_nests import read_nests
from dovetail.compiler.targets.vta.schedules import (
    AXES,
    Limits,
    Schedules,
    Tiling,
    default_tiling,
    tiled,
)
from dovetail.compiler.targets.vta.tensorize import tensorize
from tests.end_to_end.models import Network as Images

from ...graph.graphs import convolution, image_builder
from ...schedule.steps.steps import schedules
from .layers.layers import Network, from_blocked, lower_graph, networks
from .test_stream import LANES, lowered

TAPS = 1000
"""Words of TAP for a tile: enough for all taps of these layers."""


def _conv(height: int = 6, outputs: int = 12) -> Network:
    """A 3x3 convolution of 3 to ``outputs`` channels, in blocks of 4: 9 weight tiles a block."""
    builder = image_builder((1, height, 5, 3))
    return lower_graph(builder.build((convolution(builder, "x", outputs),)), 4, 0)


def _words(function: Function, name: str, lanes: int) -> int:
    return prod(read_nests(function).refs[name].buffer.shape) // lanes


def _plain(layer: LoweredLayer, limits: Limits) -> Schedule:
    return tiled(layer.function, default_tiling(layer.kernel, limits))


@given(networks(), st.integers(1, 40), st.integers(1, 80))
@settings(max_examples=60, deadline=None)
def test_default_schedule_keeps_the_result_and_the_limits(
    network: Network, acc_words: int, wgt_words: int
) -> None:
    for layer in network.layers:
        assume(not layer.inexact_pairs)
        kernel = layer.kernel
        sums = "acc" in kernel.refs
        extents = kernel.extents
        reduced = extents["k"] * extents["ky"] * extents["kx"] if sums else 0
        assume(not sums or reduced <= wgt_words)
        schedule = _plain(layer, Limits(acc_words, wgt_words, TAPS))
        function = schedule.function
        np.testing.assert_array_equal(network.result(layer, function), network.wanted(layer))
        if sums:
            lanes = layer.output.lanes
            assert _words(function, "acc", lanes) <= acc_words
            assert _words(function, "weights", lanes * lanes) <= wgt_words
        scheduled = read_nests(function)
        assert {loop.name for loop in scheduled.tiles} == {"c.outer", "y.outer", "x.outer"}
        for nest in scheduled.nests:
            serial = [loop for loop in nest.loops if loop.kind is LoopKind.SERIAL]
            assert nest.loops[: len(serial)] == scheduled.tiles


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_tiles_in_any_order_keep_the_result_and_replay(data: st.DataObject) -> None:
    network = data.draw(networks(("conv", "depthwise", "max", "average", "lookup"), lanes=2))
    layer = network.layers[0]
    sizes = {
        axis: data.draw(st.sampled_from(_divisors(layer.kernel.extents[axis])))
        for axis in (*AXES, *(("k",) if "k" in layer.kernel.extents else ()))
    }
    axes = data.draw(st.permutations(AXES))
    parted = data.draw(st.sampled_from(((), ("bias", "scale"))))
    schedule = tiled(layer.function, Tiling(sizes, tuple(axes), 2, parted))
    function = schedule.function
    np.testing.assert_array_equal(network.result(layer, function), network.wanted(layer))
    assert parse(to_text(function)) == function
    record = json.loads(json.dumps(to_record(schedule)))
    assert replay(layer.function, record) == schedule


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _residual() -> Network:
    """Three convolutions, and in the layer of the last the sum with the result of the first."""
    builder = image_builder((1, 6, 5, 3))
    y = convolution(builder, "x", 9)
    z = convolution(builder, convolution(builder, y, 9), 9)
    add = Add(0.7364182, 0.5120533, 3, -4, 1, -100, 127)
    return lower_graph(builder.build((builder.node(add, (z, y), "t", "add"),)), 4, 0)


def test_what_is_lowered_and_scheduled_keeps_the_rules_of_loop_programs() -> None:
    for layer in _residual().layers:
        verify(layer.function)
        verify(_plain(layer, Limits(64, 64, TAPS)).function, scheduled=True)


def test_a_sum_in_the_layer_of_a_convolution_lies_where_its_result_goes() -> None:
    network = _residual()
    layer = network.layers[2]
    assert not layer.inexact_pairs
    function = tiled(layer.function, Tiling({"c": 1, "y": 3, "x": 5, "k": 1}, AXES)).function
    np.testing.assert_array_equal(network.result(layer, function), network.wanted(layer))
    sums, finish, add = read_nests(function).nests
    assert [nest.name for nest in (sums, finish, add)] == ["acc", "addend", layer.output.name]
    assert finish.target.buffer.shape == add.target.buffer.shape
    assert finish.target.offset.coefficient("y") == add.target.offset.coefficient("y.inner")
    assert finish.target.offset.coefficient("y.outer") == add.target.offset.coefficient("y.outer")


@given(networks(lanes=4))
@settings(max_examples=30, deadline=None)
def test_every_nest_of_a_scheduled_layer_is_an_instruction(network: Network) -> None:
    for layer in network.layers:
        function = _plain(layer, Limits(64, 2000, TAPS)).function
        for nest in read_nests(function).nests:
            tensorize(nest, 4)


def test_the_step_tensorize_finds_the_matrix_cores_tile() -> None:
    builder = image_builder((1, 4, 5, 3))
    network = lower_graph(builder.build((convolution(builder, "x", 5),)), 4, 0)
    layer = network.layers[0]
    declared = by_name(*(each.declaration for each in intrinsics(4)))
    scheduled = tiled(layer.function, Tiling({"c": 1, "y": 2, "x": 5}, AXES))
    schedule = replace(scheduled, intrinsics=declared).tensorize("acc.l", "gemm")
    assert "invoke gemm(x[" in to_text(schedule.function)
    verify(schedule.function, declared, scheduled=True)
    output, arrays = layer.output, network.arrays(layer)
    inputs = {buffer.name: arrays[buffer.name] for buffer in schedule.function.inputs}
    initial = {output.name: arrays[output.name]}
    found = interpret(schedule.function, inputs, seed=1, intrinsics=declared, initial=initial)
    np.testing.assert_array_equal(from_blocked(found[output.name], output), network.wanted(layer))
    with pytest.raises(ScheduleError, match=r"tensorize of l by vector\.fold"):
        replace(scheduled, intrinsics=declared).tensorize("l", "vector.fold")


def test_a_tile_has_its_part_of_sums_and_weights() -> None:
    layer = _conv().layers[0]
    kernel = read_nests(_plain(layer, Limits(10, 9, TAPS)).function)
    tiles = {loop.name: loop.extent for loop in kernel.tiles}
    assert kernel.refs["acc"].buffer.shape == (1, 6 // tiles["y.outer"], 5 // tiles["x.outer"], 4)
    assert kernel.refs["weights"].buffer.shape == (1, 1, 3, 3, 4, 4)
    assert kernel.refs["bias"].buffer.shape == (3, 4)
    parted = tiled(layer.function, Tiling({"c": 1, "y": 6, "x": 5}, AXES, 2, ("bias", "scale")))
    assert read_nests(parted.function).refs["bias"].buffer.shape == (1, 4)


def test_layer_is_cut_into_tiles_for_overlap() -> None:
    function = _plain(_conv().layers[0], Limits(1000, 1000, TAPS)).function
    assert prod(loop.extent for loop in read_nests(function).tiles) >= 4


def test_weights_of_a_block_that_do_not_fit_are_refused() -> None:
    layer = _conv().layers[0]
    _plain(layer, Limits(8, 9, TAPS))
    message = (
        "layer 'conv': wgt scratchpad: 9 tiles required for one block of output channels, "
        "8 available; use a configuration with a deeper WGT"
    )
    with pytest.raises(DoesNotFitError, match=re.escape(message)):
        _plain(layer, Limits(8, 8, TAPS))


def test_no_room_for_a_sum_is_refused() -> None:
    layer = _conv().layers[0]
    _plain(layer, Limits(1, 9, TAPS))
    with pytest.raises(DoesNotFitError, match="layer 'conv': acc scratchpad: 1 word required"):
        _plain(layer, Limits(0, 9, TAPS))


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_steps_keep_what_a_layer_computes(data: st.DataObject) -> None:
    network = data.draw(networks(("conv", "depthwise", "max", "add"), lanes=2))
    layer = network.layers[0]
    assume(not layer.inexact_pairs)
    schedule = data.draw(schedules(layer.function))
    found = network.result(layer, schedule.function)
    np.testing.assert_array_equal(found, network.wanted(layer))


def _other(buffer: Buffer) -> Buffer:
    """An activation by another name."""
    return replace(buffer, name=f"{buffer.name}2") if buffer.scope is Scope.ACT else buffer


def test_layers_that_differ_in_names_share_a_schedule() -> None:
    """Each gets that which it would have had alone."""
    (layer,) = _conv().layers
    tiling = default_tiling(layer.kernel, Limits(40, 80, TAPS))
    body = map_buffers(layer.function.body, _other)
    inputs, outputs = (
        tuple(map(_other, each)) for each in (layer.function.inputs, layer.function.outputs)
    )
    other = Function("another", inputs, outputs, body)
    found = Schedules()
    made = [found.of(function, tiling) for function in (layer.function, other)]
    for function, scheduled in zip((layer.function, other), made, strict=True):
        alone = tiled(function, tiling)
        assert scheduled.schedule == alone
        assert scheduled.kernel == read_nests(alone.function)
    assert to_text(made[0].schedule.function) != to_text(made[1].schedule.function)
    assert made[0].schedule.trace is made[1].schedule.trace


def test_tiles_of_windows_of_columns_have_whole_rows() -> None:
    """Else the first columns of each part of a row, which make nothing, are read again."""
    net = Images(np.random.default_rng(0))
    x = net.conv(net.input(32, 6, 6), 32, pads=(1, 1, 1, 1), depthwise=True)
    (layer,), _ = lowered(net.model(x))
    for parts in (1, 2, 4):
        tiling = default_tiling(layer.kernel, Limits(64, 64, TAPS), 2, Grain(parts))
        assert tiling.sizes["x"] == 6


@pytest.mark.parametrize("grain", [Grain(), Grain(2), Grain(1, by_rows=True)])
def test_tiles_have_some_channels_where_tap_has_no_room_for_all_taps(grain: Grain) -> None:
    net = Images(np.random.default_rng(3))
    net_output = net.conv(
        net.conv(net.input(3, 6, 6), 48), 48, (5, 5), pads=(2,) * 4, depthwise=True
    )
    (layer,) = (x for x in lowered(net.model(net_output))[0] if "taps" in x.constants)
    blocks, words = layer.constants["taps"].shape[:2]
    room = 3 * words
    tiling = default_tiling(layer.kernel, Limits(64, 64, room), 2, grain)
    assert blocks * words > 2 * room
    assert tiling.sizes["c"] * words <= room
    assert tiling.outer[0] == "c", "rows outside would load all taps for each tile"
    whole = default_tiling(layer.kernel, Limits(64, 64, blocks * words), 2, grain)
    assert whole.outer == (("y", "x", "c") if grain.by_rows else AXES)


@pytest.mark.parametrize(("blocks", "tile"), [(10, 2), (37, 1)])
def test_tiles_of_what_overlaps_channel_by_channel_have_all_pixels(blocks: int, tile: int) -> None:
    net = Images(np.random.default_rng(0))
    ((layer,), _) = lowered(net.model(net.conv(net.input(3, 6, 6), blocks * LANES, (1, 1))))
    limits = Limits(2048, 2048, TAPS)
    sizes = default_tiling(layer.kernel, limits, grain=PLANES).sizes
    assert [sizes[axis] for axis in AXES] == [tile, 6, 6]
    assert dict(default_tiling(layer.kernel, limits).sizes) != dict(sizes)
    small = default_tiling(layer.kernel, Limits(35, 2048, TAPS), grain=PLANES).sizes
    assert prod(small[axis] for axis in AXES) <= 35
