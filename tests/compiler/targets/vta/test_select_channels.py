"""Channels that are picked: by fewer rows of weights, by other columns, or by weights of 1."""

from collections.abc import Sequence

import numpy as np
import pytest

from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.indexing import Gather
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.select_channels import SelectChannels

from ...graph.graphs import assert_same_meaning, kinds

CONV, FINISH = ["Conv2d", "Requantize"], Requantize(-3, -128, 127)


class Net:
    """An image ``x`` of eight channels."""

    def __init__(self, dtype: str = "int8", batch: int = 1) -> None:
        self.builder = GraphBuilder()
        self.x = self.builder.input("x", TensorType((batch, 3, 4, 8), dtype))
        self.count = 0

    def add(self, operator: object, *inputs: str) -> str:
        self.count += 1
        return self.builder.node(operator, inputs, f"t{self.count}", "n")  # type: ignore[arg-type]

    def pick(self, x: str, places: Sequence[int], axis: int = 3) -> str:
        array = np.array(places, np.int64)
        return self.add(Gather(axis), x, self.builder.constant(f"places {self.count}", array))

    def conv(self, x: str, kernel: tuple[int, int] = (1, 1), outputs: int = 4) -> str:
        rng, inner = np.random.default_rng(outputs), self.builder.types[x].shape[3]
        constants = (
            rng.integers(-127, 128, (outputs, *kernel, inner)).astype(np.int8),
            rng.integers(-900, 900, outputs).astype(np.int32),
        )
        names = [self.builder.constant(f"c{self.count}{n}", c) for n, c in enumerate(constants)]
        total = self.add(Conv2d((1, 1), (0, 0, 0, 0), 1, -2, 5), x, *names)
        scales = rng.uniform(1e-3, 5e-3, outputs).astype(np.float32)
        return self.add(FINISH, total, self.builder.constant(f"s{self.count}", scales))

    def found(self, *outputs: str) -> Graph:
        """The graph rewritten for blocks of four lanes, with the same meaning."""
        graph = self.builder.build(outputs)
        made = SelectChannels(4).run(graph)
        assert_same_meaning(graph, made)
        return made


def channels(graph: Graph) -> list[int]:
    """Channels of each convolution's result."""
    nodes = (node for node in graph.nodes if isinstance(node.operator, Conv2d))
    return [graph.types[node.output].shape[3] for node in nodes]


def test_picked_rows_of_a_convolution_are_made_alone() -> None:
    net = Net()
    y = net.conv(net.x)
    found = net.found(net.pick(y, [3, 0]))
    assert (kinds(found), channels(found)) == (CONV, [2])
    net = Net()
    y = net.conv(net.x)
    found = net.found(net.pick(y, [3, 0]), net.pick(y, [1, 3]))
    assert (kinds(found), channels(found)) == (CONV * 2, [2, 2])


def test_rows_are_not_made_twice_nor_where_all_are_read() -> None:
    net = Net()
    y = net.conv(net.x)
    found = net.found(net.pick(y, [3, 0]), net.pick(y, [1, 3, 2]))
    assert (kinds(found), channels(found)) == (CONV * 3, [4, 2, 3])
    net = Net()
    y = net.conv(net.x)
    assert channels(net.found(net.pick(y, [3, 0]), y)) == [4, 2]
    net = Net()
    y = net.conv(net.x)
    assert channels(net.found(net.pick(y, [3]), net.conv(y, outputs=5))) == [4, 1, 5]


@pytest.mark.parametrize(
    ("places", "kernel", "outputs", "made"),
    [
        ([6, 1], (1, 2), 4, [4]),
        ([6, 1], (1, 3), 4, [2, 4]),
        ([6, 1], (2, 2), 4, [2, 4]),
        ([6, 1, 0, 2, 7], (3, 4), 4, [4]),  # as many blocks as there are
        ([6, 1], (1, 1), 8, [8]),
        ([6, 1], (1, 1), 9, [2, 9]),
        ([6, 1], (1, 2), 5, [2, 5]),
        ([6, 6], (1, 1), 4, [2, 4]),
    ],
)
def test_columns_lie_elsewhere_where_a_pick_would_take_more(
    places: list[int], kernel: tuple[int, int], outputs: int, made: list[int]
) -> None:
    net = Net()
    found = net.found(net.conv(net.pick(net.x, places), kernel, outputs))
    assert channels(found) == made


def test_other_picks_are_convolutions_of_one_pixel() -> None:
    net = Net()
    found = net.found(net.pick(net.x, [5, 5, 0]))
    assert (kinds(found), channels(found)) == (CONV, [3])


@pytest.mark.parametrize(
    ("dtype", "batch", "axis"), [("int32", 1, 3), ("int8", 2, 3), ("int8", 1, 2)]
)
def test_what_is_no_channel_of_an_image_is_not_picked_so(dtype: str, batch: int, axis: int) -> None:
    net = Net(dtype, batch)
    graph = net.builder.build((net.pick(net.x, [1, 0], axis),))
    assert SelectChannels(4).run(graph) is graph
