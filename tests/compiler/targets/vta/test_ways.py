"""All ways that plans may choose from, kept in JSON: where another is chosen, bytes stay right, and
where what is not chosen looks better or worse than it did, nothing else changes.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from pathlib import Path

import onnx
import pytest

from dovetail.compiler.front.integer import integer_graph
from dovetail.compiler.front.table import open_model
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import prepare_graph
from dovetail.compiler.targets.vta.block_cascade import BlockCascade
from dovetail.compiler.targets.vta.cascade import Cascade
from dovetail.compiler.targets.vta.choice import Choice
from dovetail.compiler.targets.vta.layers.lower import lower
from dovetail.compiler.targets.vta.layers.plan_activations import plan_activations
from dovetail.compiler.targets.vta.passes.fuse import fuse
from dovetail.compiler.targets.vta.place import NoRoomError
from dovetail.compiler.targets.vta.plan import Ends
from dovetail.compiler.targets.vta.planner import Planner
from dovetail.compiler.targets.vta.stream import StreamedLayer
from dovetail.isa.config import HardwareConfig
from tests.end_to_end.models import Network, random_network
from tests.end_to_end.test_attention import F32, WIDTH, Rows, attention, np
from tests.kept import check_kept

from .programs import TINY
from .test_cycles import CRAMPED, NARROW, mobile

KEPT = Path(__file__).with_name("kept_ways.json")
SHALLOW = replace(TINY, name="shallow", act_depth=512, acc_depth=64, wgt_depth=64, tap_depth=16)
PRICES = 0.0, 0.25
"""For each cycle of DRAM."""


def rows() -> onnx.ModelProto:
    """Attention of two heads over nine tokens."""
    net = Rows(9)
    x = net.dequantize("x", F32(0.02), np.int8(3))
    y = net.quantize(attention(net, x), F32(0.2), np.int8(-9))
    return net.build({"x": ("int8", (1, 9, WIDTH))}, y)


def deep() -> onnx.ModelProto:
    """Layers of so many channels that sums are made in parts, and of so wide rows."""
    net = Network(np.random.default_rng(2))
    x = net.conv(net.input(96, 9, 9), 24, pads=(1, 1, 1, 1), activation="Relu")
    return net.model(net.conv(net.conv(x, 40, (1, 1)), 8, strides=(2, 2)))


def planner_of(model: onnx.ModelProto, config: HardwareConfig) -> Planner:
    graph = prepare_graph(
        integer_graph(open_model(model)),
        Trace(CompileOptions()),
        config.block,
        act_words=config.act_depth,
    )
    partition = fuse(graph)
    activations = plan_activations(graph, partition, config.block, config)
    layers = [lower(graph, layer, activations) for layer in partition.layers]
    sources = tuple(activations[chain.last] for chain in partition.sources)
    return Planner(layers, Ends(sources, partition.result_roots), config)


def ways_of(planner: Planner) -> Iterator[str]:
    """A line for some layers, of all ways to run them: how many, the range of their cycles, and
    sums; then the tilings of these ways.
    """
    names = frozenset(item.activation.name for item in planner.items)
    count = len(planner.layers)
    for place, gone in (("on chip", frozenset[str]()), ("in DRAM", names)):
        for first in range(count):
            for last in range(first, min(first + 3, count)):
                ways = {way.key: way for way in planner.options(first, last + 1 - first, gone)}
                if ways:
                    found = _described(planner, list(ways.values()), gone)
                    yield f"{place}, layers {first} to {last}: {found}"


def _described(planner: Planner, ways: list[Choice], gone: frozenset[str]) -> str:
    cycles = [way.cycles for way in ways]
    words = sum(getattr(way.how, "words", 0) for way in ways)
    tilings, tiles, room, strips = dict[str, None](), 0, 0, 0
    for way in ways:
        built = planner.chooser.ways.build(way, gone)
        match built:
            case Cascade():
                strips += sum(built.strips)
            case BlockCascade():
                strips += built.parts
        for layer in (built,) if isinstance(built, StreamedLayer) else built.layers:
            tiles += layer.tiles
            room += sum(window.slots * prod(window.shape) for window in layer.windows.values())
            sizes = "/".join(map(str, layer.tiling.sizes.values()))
            tilings[f"{sizes}{''.join(layer.tiling.outer)}{layer.tiling.depth}"] = None
    return (
        f"{len(ways)} of {min(cycles)} to {max(cycles)} cycles, in all {sum(cycles)}, "
        f"{sum(way.dram for way in ways)} of DRAM, {words} words, {tiles} tiles, {strips} strips, "
        f"windows of {room}; {' '.join(tilings)}"
    )


def choices_of(planner: Planner) -> Iterator[str]:
    """A line for each price of the cheapest choices; then of others that are made from them.

    Where not all activations have room on chip, none stays there.
    """
    for edges, chooser in planner.choosers.items():
        gone = frozenset[str]()
        for price in PRICES:
            try:
                found = chooser.cheapest(gone, price)
            except NoRoomError as error:
                yield f"edges {edges}: no room at layer {error.layer}"
                gone = frozenset(item.activation.name for item in planner.items)
                found = chooser.cheapest(gone, price)
            yield f"edges {edges}, price {price}: {_named(found)}"
        changes = [chooser.changes(found, number, gone) for number in range(len(found))]
        for number, each in enumerate(changes):
            cycles = sum(choice.cycles for change in each for choice in change.choices)
            yield f"edges {edges}, changes of {number}: {len(each)} of {cycles} cycles"
        for number, other in enumerate(chooser.grained(found, gone)):
            yield f"edges {edges}, grain {number}: {_named(other)}"
        yield f"edges {edges}, larger: {_named(chooser.larger(found, gone))}"
        yield f"edges {edges}, larger below 900: {_named(chooser.larger(found, gone, 900))}"
        yield f"edges {edges}, by channels: {_named(chooser.by_channels(found))}"
        yield f"edges {edges}, by pixels: {_named(chooser.by_pixels(found))}"


def _named(choices: list[Choice]) -> str:
    """Cycles, and of each choice its layers and grain."""
    grains = (
        f"{each.count}x{each.grain.parts}{'r' * each.grain.by_rows}{'c' * each.grain.by_channels}"
        f"{'p' * each.grain.planes}/{each.grain.tiles}"
        for each in choices
    )
    return f"{sum(each.cycles for each in choices)} cycles, {' '.join(grains)}"


@pytest.mark.parametrize(
    ("make", "config"),
    [(lambda: random_network(1), NARROW), (mobile, CRAMPED), (rows, TINY), (deep, SHALLOW)],
    ids=["random", "mobile", "rows", "deep"],
)
def test_ways_to_run_layers_are_those_that_are_kept(
    make: Callable[[], onnx.ModelProto], config: HardwareConfig, request: pytest.FixtureRequest
) -> None:
    planner = planner_of(make(), config)
    found = [*ways_of(planner), *choices_of(planner), str(planner.roof)]
    check_kept(KEPT, request.node.callspec.id, found)
