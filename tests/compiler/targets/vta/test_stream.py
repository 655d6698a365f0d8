"""Activations that stay in DRAM: what is moved for each tile, and that networks stay exact."""

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.errors import DoesNotFitError
from dovetail.compiler.front.integer import integer_graph
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.passes.eliminate_dead import EliminateDead
from dovetail.compiler.graph.passes.simplify import simplify
from dovetail.compiler.loops.affine import Linear
from dovetail.compiler.loops.expressions import Variable
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import prepare_graph
from dovetail.compiler.targets.vta.emit import compile_partition
from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.compiler.targets.vta.layers.definition import LoweredLayer
from dovetail.compiler.targets.vta.layers.lower import lower
from dovetail.compiler.targets.vta.layers.plan_activations import plan_activations
from dovetail.compiler.targets.vta.passes.dense_to_conv import DenseToConv
from dovetail.compiler.targets.vta.passes.fuse import fuse
from dovetail.compiler.targets.vta.plan import Ends, Plan
from dovetail.compiler.targets.vta.planner import Planner
from dovetail.compiler.targets.vta.stream import best_tile, stream_tiles, streamed_layer
from dovetail.compiler.targets.vta.windows import Slots, Window
from dovetail.isa.config import HardwareConfig
from dovetail.isa.semantics import execute
from dovetail.isa.state import MachineState
from dovetail.runtime import Session
from dovetail.runtime.host import pack, unpack
from dovetail.vta_sim.timing import time_program
from tests.end_to_end.models import Network, Tensor, random_network
from tests.kept_costs import check_costs

from .programs import TINY

STEPS = ["lower", "schedule", "place", "operations", "order", "tokens", "check"]
LANES = TINY.block
CRAMPED = replace(TINY, name="cramped", act_depth=256, act_banks=4)
"""So little ACT that most activations stay in DRAM."""


def lowered(model: onnx.ModelProto) -> tuple[list[LoweredLayer], Ends]:
    layers = integer_graph(open_model(model))
    graph = EliminateDead().run(DenseToConv().run(simplify(layers)))
    partition = fuse(graph)
    activations = plan_activations(graph, partition, LANES, TINY)
    layers = [lower(graph, layer, activations) for layer in partition.layers]
    sources = tuple(activations[chain.last] for chain in partition.sources)
    return layers, Ends(sources, partition.result_roots)


def plan_of(model: onnx.ModelProto, config: HardwareConfig) -> Plan:
    return Planner(*lowered(model), config).best()


def assert_exact(model: onnx.ModelProto, config: HardwareConfig, seed: int) -> None:
    """The program, executed in its order, gives what the graph's interpreter gives."""
    layers = integer_graph(open_model(model))
    graph = EliminateDead().run(DenseToConv().run(simplify(layers)))
    partition = fuse(graph)
    steps = list[str]()
    program = compile_partition(
        graph, partition, config, time_program, lambda name, _: steps.append(name)
    )
    assert steps == STEPS
    check_costs([program])
    shape = graph.types[graph.inputs[0]].shape
    x = np.random.default_rng(seed).integers(-128, 128, shape, np.int8)
    values = run(graph, {graph.inputs[0]: x})
    state = MachineState.zeros(config, np.frombuffer(program.image, np.uint8).copy())
    (source,), (result,) = partition.sources, partition.results
    activation, x = program.activations[source.last], values[source.last]
    image = activation.image
    placed = image.layout(activation.fill or 0).pack(x) if image else pack(x, LANES)
    packed = placed.reshape(-1).view(np.uint8)
    state.dram[program.addresses[source.last] :][: packed.size] = packed
    for instruction in program.instructions:
        execute(state, instruction)
    y = program.activations[result.first]
    blocked = (y.blocks, y.height, y.width, LANES)
    raw = state.dram[program.addresses[result.first] :][: int(np.prod(blocked))].view(np.int8)
    found = unpack(raw.reshape(blocked), graph.types[result.first].shape)
    assert np.array_equal(found, values[result.first])


@pytest.mark.parametrize("seed", range(20))
def test_networks_in_too_little_act_stay_exact(seed: int) -> None:
    assert_exact(random_network(seed), CRAMPED, seed)


def big(net: Network) -> Tensor:
    x = net.conv(net.input(5, 21, 18), 9, pads=(1, 1, 1, 1), activation="Relu")
    y = net.conv(x, 9, pads=(1, 1, 1, 1), depthwise=True)
    x = net.add(net.conv(y, 9, (1, 1)), x, relu=True)
    return net.conv(net.max_pool(x, 3, 2, (1, 1, 1, 1)), 6, strides=(2, 2))


def test_a_large_network_streams_all_kinds_of_layers() -> None:
    model = (net := Network(np.random.default_rng(2))).model(big(net))
    assert len(plan_of(model, CRAMPED).streamed) >= 4
    assert_exact(model, CRAMPED, 1)


def test_the_simulator_runs_a_network_that_does_not_fit() -> None:
    net = Network(np.random.default_rng(2))
    model = net.model(net.conv(net.conv(net.input(3, 60, 60), 8, pads=(1, 1, 1, 1)), 4))
    module, oracle = compile(model, "vta:tiny"), compile(model, "cpu")
    x = {"x": np.random.default_rng(1).integers(-128, 128, (1, 3, 60, 60), np.int8)}
    (found,), (wanted,) = (Session(m).run(x).outputs.values() for m in (module, oracle))
    assert np.array_equal(found, wanted)


def test_what_fits_stays_on_chip() -> None:
    model = (net := Network(np.random.default_rng(2))).model(
        net.conv(net.conv(net.input(3, 8, 8), 8), 8)
    )
    plan = plan_of(model, TINY)
    assert not plan.streamed
    assert not any(layer.windows for layer in plan.layers)


@pytest.mark.parametrize("act_depth", [128, 256, 512, 1024, 2048])
def test_sums_in_the_layer_of_a_convolution_stay_exact(act_depth: int) -> None:
    """Both operands on chip, one of them, or none."""
    net = Network(np.random.default_rng(2))
    x = net.conv(net.input(4, 12, 12), 12, pads=(1, 1, 1, 1))
    y = net.conv(net.conv(x, 12, pads=(1, 1, 1, 1)), 12, pads=(1, 1, 1, 1))
    x = net.conv(net.add(y, x, relu=True), 9, strides=(2, 2), pads=(1, 1, 1, 1))
    y = net.conv(net.conv(x, 20, (1, 1)), 9, (1, 1))
    assert_exact(net.model(net.add(x, y)), replace(TINY, act_depth=act_depth), 1)


@pytest.mark.parametrize(("size", "held"), [((5, 6), 4), ((1, 3), 16)])
def test_windows_of_some_channels_at_a_time_stay_exact(size: tuple[int, int], held: int) -> None:
    """A pixel of all channels reads 288 words of ACT, more than there are; weights come by 4."""
    net, config = Network(np.random.default_rng(2)), replace(TINY, act_depth=256)
    x = net.conv(net.input(3, *size), 128, (1, 1))
    y = net.conv(x, 8, pads=(1, 1, 1, 1), activation="Relu")
    model = net.model(net.add(net.conv(x, 8, pads=(1, 1, 1, 1)), y))
    parts = [layer.tiling for layer in plan_of(model, config).layers if layer.tiling.held]
    assert [(tiling.sizes["k"], tiling.held) for tiling in parts] == [(4, held)] * 2
    assert_exact(model, config, 3)


def test_a_tile_that_cannot_be_smaller_is_an_error() -> None:
    layers, ends = lowered(
        (net := Network(np.random.default_rng(1))).model(net.conv(net.input(20, 9, 9), 4))
    )
    kernel = layers[0].kernel
    tiles = stream_tiles(kernel, {x.name: x for x in ends.sources}, TINY)
    with pytest.raises(
        DoesNotFitError,
        match=r"act scratchpad: 90 words required for the smallest tile, 89 available",
    ):
        best_tile(kernel, tiles, 89)


def window() -> Window:
    """Rows of 3, four at a time, moving by 2, of an activation with a halo of 1, 2, 1, 0."""
    x = Activation("x", 2 * LANES, 5, 3, LANES, (1, 2, 1, 0), 7)
    nothing = Linear(0, {})
    return Window(x, (2, 4, 5), (nothing, Linear(0, {Variable("y"): 2}), nothing))


@pytest.mark.parametrize(
    ("tile", "above", "rows", "below"), [(0, 1, 3, 0), (1, 0, 4, 0), (2, 0, 2, 1)]
)
def test_a_load_adds_the_halo_that_a_tile_reaches(
    tile: int, above: int, rows: int, below: int
) -> None:
    part = replace(window(), shape=(2, above + rows + below, 5))
    (load,) = part.loads({"y": tile}, 40, 1024, TINY.bus_bytes)
    assert (load.pad_y_before, load.count_y, load.pad_y_after) == (above, rows, below)
    assert (load.pad_x_before, load.count_x, load.pad_x_after) == (2, 3, 0)
    first_row = max(2 * tile - 1, 0)
    assert load.dram_address == 1024 + first_row * 3 * LANES
    assert (load.count_z, load.dram_stride_z) == (2, 5 * 3 * LANES)
    assert load.pad_value == 7


def test_a_buffer_that_holds_the_part_is_not_filled_again() -> None:
    slots = Slots(window(), 100, 0, TINY.bus_bytes)
    tiles = [{"y": y, "c": c} for y, c in product(range(3), range(2))]
    starts, loads = zip(*(slots.fetch(tile) for tile in tiles), strict=True)
    assert starts == (100, 100, 140, 140, 100, 100)
    assert [len(load) for load in loads] == [1, 0] * 3


@pytest.mark.parametrize(
    ("channels", "kernel", "outputs"), [(60, (3, 3), 8), (200, (1, 1), 150), (3, (9, 9), 5)]
)
def test_weights_beyond_wgt_are_loaded_in_parts(
    channels: int, kernel: tuple[int, int], outputs: int
) -> None:
    """Parts of input channels, which accumulate; of output channels; half a window too many."""
    net = Network(np.random.default_rng(4))
    x = net.conv(net.input(5, 10, 9), channels, (1, 1))
    assert_exact(net.model(net.conv(x, outputs, kernel)), TINY, 1)


def test_taps_and_parameters_beyond_their_memories_are_loaded_in_parts() -> None:
    net = Network(np.random.default_rng(4))
    x = net.conv(net.input(5, 6, 5), 150, (1, 1))
    assert_exact(net.model(net.conv(x, 150, depthwise=True, activation="Relu")), TINY, 1)


def test_parameters_of_a_sum_outlast_those_of_many_channels() -> None:
    net = Network(np.random.default_rng(4))
    x = net.conv(net.input(5, 6, 5), 150, (1, 1))
    y = net.conv(net.conv(x, 5, (1, 1)), 150, (1, 1))
    assert_exact(net.model(net.add(x, y)), replace(TINY, act_depth=1024), 1)


@pytest.mark.parametrize(("kernel", "rows"), [(1, [0, 2, 4, 6, 8]), (3, list(range(9)))])
def test_rows_that_steps_skip_are_not_loaded(kernel: int, rows: list[int]) -> None:
    """A 1x1 convolution with steps of 2 reads 5 of 9 rows, a 3x3 one all."""
    net, config = Network(np.random.default_rng(2)), replace(TINY, act_depth=128, act_banks=2)
    x, size = net.conv(net.input(3, 9, 9), 16, (1, 1)), (kernel, kernel)
    model = net.model(net.conv(x, 16, size, strides=(2, 2), pads=(kernel // 2,) * 4))
    layer = lowered(model)[0][1]
    (source,) = layer.inputs
    whole = {source.name: source}
    tile = next(x for x in stream_tiles(layer.kernel, whole, TINY) if x.sizes["y"] == 5)
    window = streamed_layer(layer, whole, tile).windows[source.name]
    (load,) = window.loads({}, 0, 0, TINY.bus_bytes)
    row = source.width * LANES
    assert [y * load.dram_stride_y // row for y in range(load.count_y)] == rows
    assert tile.words == window.words == prod(window.shape)
    assert_exact(model, config, 3)


def test_of_few_columns_that_a_layer_reads_the_others_are_not_loaded() -> None:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(8, 4, 64), 8, (1, 1))
    bounds = [net._constant(np.array([each])) for each in (2, 8, 3)]
    part = replace(x, name=net._node("Slice", [x.name, *bounds]), shape=(1, 8, 4, 6))
    model = net.model(x, net.conv(part, 8, (1, 1)))
    graph = prepare_graph(integer_graph(open_model(model)), Trace(CompileOptions()), LANES)
    partition = fuse(graph)
    activations = plan_activations(graph, partition, LANES, TINY)
    cut = lower(graph, partition.layers[1], activations)
    (source,) = cut.inputs
    for tile in stream_tiles(cut.kernel, {source.name: source}, TINY):
        window = streamed_layer(cut, {source.name: source}, tile).windows[source.name]
        assert window.shape[2] <= 6
        assert tile.words <= tile.depth * 2 * 4 * 6
