"""Two halves of an image in one word: equal to the layers as they were, in fewer cycles."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.assembly import Assemble, Halves
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.rules import Pads, Pair
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Requantize
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta import accelerate
from dovetail.compiler.targets.vta.accelerate import compile_accelerated
from dovetail.compiler.targets.vta.passes import halves
from dovetail.compiler.targets.vta.passes.halves import TwoHalves
from dovetail.compiler.translation.validate import validate
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.vta_sim.timing import time_program
from tests.kept_costs import check_costs

ZYNQ7020 = find_config("zynq7020")
HALVES = TwoHalves(16, ZYNQ7020.act_depth)
NONE = (0, 0, 0, 0)


class Net:
    """First layers of a network, one after the other; ``x``: what the last one makes."""

    def __init__(self, shape: tuple[int, ...], seed: int = 0) -> None:
        self.rng, self.builder = np.random.default_rng(seed), GraphBuilder()
        self.x = self.builder.input("x", TensorType((1, *shape), "int8"))

    def conv(
        self,
        channels: int,
        kernel: Pair = (3, 3),
        strides: Pair = (1, 1),
        pads: Pads = NONE,
        dilations: Pair = (1, 1),
    ) -> "Net":
        """With as many channels as before: depthwise, if ``channels`` is 0."""
        rng, emit, before = self.rng, self.builder, self.builder.types[self.x].shape[3]
        each, groups = (before, 1) if channels else (1, before)
        shape = (channels or before, *kernel, each)
        low, high = rng.integers(-9, 9, 2)
        operator = Conv2d(strides, pads, groups, int(low), int(high), dilations)
        constants = (
            emit.constant("w", rng.integers(-128, 128, shape).astype(np.int8)),
            emit.constant("b", rng.integers(-900, 900, shape[0]).astype(np.int32)),
            emit.constant("s", rng.uniform(1e-3, 1e-2, shape[0]).astype(np.float32)),
        )
        total = emit.node(operator, (self.x, *constants[:2]), "sum", "conv")
        self.x = emit.node(Requantize(3, -100, 120), (total, constants[2]), "y", "conv")
        return self

    def table(self, *, of_channels: bool) -> "Net":
        channels = self.builder.types[self.x].shape[3]
        shape = (channels, 256) if of_channels else (256,)
        table = self.builder.constant("t", self.rng.integers(-128, 128, shape).astype(np.int8))
        self.x = self.builder.node(Lookup(), (self.x, table), "y", "table")
        return self

    def graph(self, *outputs: str) -> Graph:
        return self.builder.build((*outputs, self.x))

    def given(self) -> dict[str, np.ndarray]:
        shape = self.builder.types["x"].shape
        return {"x": self.rng.integers(-128, 128, shape).astype(np.int8)}


def drawn(seed: int) -> Net:
    """Layers of any kernels, steps and padding that the pass takes."""
    rng = np.random.default_rng(seed)

    def one(*choices: int) -> int:
        return int(rng.choice(choices))

    kernel, strides = (one(1, 2, 3, 4), one(1, 3, 4)), (one(1, 2, 3), one(1, 2))
    top, left, bottom, right = (one(0, 1), one(0, 1), one(0, 1), one(0, 1))
    rows = strides[0] * (one(10, 12, 14) - 1) + kernel[0] - top - bottom
    # As many rows more as no window needs.
    rows += one(*range(strides[0]))
    net = Net((rows, one(9, 12, 13), one(1, 3)), seed)
    net.conv(one(2, 3, 8), kernel, strides, (top, left, bottom, right))
    for _ in range(one(1, 2)):
        reach, wide, down = one(0, 1), one(1, 3), one(1, 2)
        pads = (reach * down, one(0, 1), reach * down, one(0, 1))
        if rng.random() < 0.4:
            net.table(of_channels=rng.random() < 0.5)
        net.conv(0, (2 * reach + 1, wide), (1, one(1, 2)), pads, (down, 1))
    reach = one(0, 1)
    net.conv(one(3, 20), (2 * reach + 1, 1), (1, one(1, 2)), (reach, 0, reach, 1))
    return net.table(of_channels=True) if rng.random() < 0.3 else net


@pytest.fixture
def small_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small images have halves too."""
    monkeypatch.setattr(halves, "LEAST_SAVED", 0)


@pytest.mark.usefixtures("small_images")
@pytest.mark.parametrize("seed", range(30))
def test_halves_are_what_the_whole_was(seed: int) -> None:
    net = drawn(seed)
    graph = net.graph()
    found = HALVES.run(graph)
    assert any(isinstance(node.operator, Halves) for node in found.nodes)
    assert any(isinstance(node.operator, Assemble) for node in found.nodes)
    assert HALVES.run(found) is found
    given = net.given()
    assert np.array_equal(run(found, given)[net.x], run(graph, given)[net.x])


def first(rows: int = 16, channels: int = 4) -> Net:
    return Net((2 * rows, 24, 3)).conv(channels, strides=(2, 2), pads=(0, 0, 1, 1))


def with_a_sum() -> Net:
    net = first().conv(0, pads=(1, 1, 1, 1)).conv(4, (1, 1))
    operator, x = Add(0.75, 0.5, 3, -4, 1, -128, 127), net.x
    net.x = net.builder.node(operator, (net.conv(4, (1, 1)).x, x), "sum", "add")
    return net


LEFT = {
    "odd rows": lambda: first(rows=15).conv(0, pads=(1, 1, 1, 1)).conv(8, (1, 1)),
    "many channels": lambda: first(channels=9).conv(0, pads=(1, 1, 1, 1)).conv(8, (1, 1)),
    "other padding below": lambda: first().conv(0, pads=(0, 1, 2, 1)).conv(8, (1, 1)),
    "steps": lambda: first().conv(0, strides=(2, 2), pads=(1, 1, 1, 1)).conv(8, (1, 1)),
    "nothing folded by the vector unit": lambda: first().conv(8, (1, 1)),
    "nothing behind": lambda: first().conv(0, pads=(1, 1, 1, 1)),
    "a residual sum": with_a_sum,
}


@pytest.mark.usefixtures("small_images")
@pytest.mark.parametrize("name", LEFT)
def test_layers_are_left_alone_with(name: str) -> None:
    graph = LEFT[name]().graph()
    assert HALVES.run(graph) is graph


@pytest.mark.usefixtures("small_images")
def test_layers_whose_results_are_read_elsewhere_are_left_alone() -> None:
    net = first().conv(0, pads=(1, 1, 1, 1))
    inner = net.x
    assert HALVES.run(net.conv(8, (1, 1)).graph()).nodes != net.graph().nodes
    graph = net.graph(inner)
    assert HALVES.run(graph) is graph


def large(rows: int) -> Net:
    """The first layers of a network for images of ``2 * rows`` rows."""
    net = Net((2 * rows, 2 * rows, 3)).conv(8, strides=(2, 2), pads=(1, 1, 0, 1))
    return net.conv(0, pads=(1, 1, 1, 1)).conv(20, (1, 1))


def test_only_large_images_that_fit_have_halves() -> None:
    assert HALVES.run(large(40).graph()).nodes != large(40).graph().nodes
    for rows, act_words in ((20, HALVES.act_words), (40, HALVES.act_words // 2)):
        graph = large(rows).graph()
        assert TwoHalves(16, act_words).run(graph) is graph


def compiled(net: Net, config: HardwareConfig, monkeypatch: pytest.MonkeyPatch, lanes: int) -> int:
    """Cycles of the program, which is shown to compute the graph; lanes: of the pass."""
    monkeypatch.setattr(accelerate, "TwoHalves", lambda _, words: TwoHalves(lanes, words))
    graph, options = net.graph(), CompileOptions(effort=0)
    part = compile_accelerated(graph, config, options, Trace(options), time_program)
    validate(graph, part)
    check_costs([part])
    return part.expected_cycles


def test_programs_stay_exact_and_become_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, folded = (compiled(large(40), ZYNQ7020, monkeypatch, lanes) for lanes in (0, 16))
    assert folded < whole


@pytest.mark.usefixtures("small_images")
def test_halves_may_be_put_together_in_dram(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "ROOM", 9)
    compiled(large(12), replace(ZYNQ7020, act_depth=256), monkeypatch, 16)
