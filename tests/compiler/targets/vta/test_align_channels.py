"""Tensors that are copied so that their channels lie side by side from a block's first on."""

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.indexing import Gather
from dovetail.compiler.graph.operators.integer.conversions import Dequantize
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Requantize
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d
from dovetail.compiler.graph.operators.movement import Concatenate, Slice
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.align_channels import AlignChannels

from .integer_graphs import inputs_of

LANES = 4


class Net:
    """Images of 2x2 pixels; ``x`` has eight channels."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.x = self.input("x", 8)

    def input(self, name: str, channels: int) -> str:
        return self.builder.input(name, TensorType((1, 2, 2, channels), "int8"))

    def add(self, operator: object, *inputs: str) -> str:
        name = f"t{len(self.builder.nodes)}"
        return self.builder.node(operator, inputs, name, name)  # type: ignore[arg-type]

    def channels(self, x: str) -> int:
        return self.builder.types[x].shape[3]

    def cut(self, x: str, first: int, end: int) -> str:
        return self.add(Slice((0, 0, 0, first), (1, 1, 1, 1), (1, 2, 2, end - first)), x)

    def pool(self, x: str) -> str:
        return self.add(MaxPool2d((2, 2), (1, 1), (0, 0, 1, 1)), x)

    def table(self, x: str, each: bool = False) -> str:
        """each: of its own for each channel."""
        count = self.channels(x) if each else 1
        values = np.resize(np.arange(7, 263), (count, 256)).astype(np.int8)
        name = f"table {len(self.builder.nodes)}"
        return self.add(Lookup(), x, self.builder.constant(name, values if each else values[0]))

    def conv(self, x: str, outputs: int, groups: int = 1) -> str:
        name, inner = f"w{len(self.builder.nodes)}", self.channels(x) // groups
        weights = np.resize(np.arange(-9, 8), (outputs, 1, 1, inner)).astype(np.int8)
        inputs = (
            self.builder.constant(name, weights),
            self.builder.constant(f"{name} bias", np.arange(outputs, dtype=np.int32)),
        )
        total = self.add(Conv2d((1, 1), (0, 0, 0, 0), groups, 3), x, *inputs)
        scale = self.builder.constant(f"{name} scale", np.full(outputs, 0.1, np.float32))
        return self.add(Requantize(1, -128, 127), total, scale)

    def sum(self, x: str) -> str:
        other = self.input(f"other {x}", self.channels(x))
        return self.add(Add(1.0, 0.5, 0, 0, 0, -128, 127), x, other)

    def join(self, *channels: int) -> str:
        """Parts of so many channels, each made by a pool."""
        parts = (self.pool(self.input(f"p{n}", count)) for n, count in enumerate(channels))
        return self.add(Concatenate(3), *parts)

    def copied(self, *outputs: str) -> list[tuple[str, list[int]]]:
        """Tensors that are copied, and the channels of each copy; the bytes stay."""
        graph = self.builder.build(outputs)
        found = AlignChannels(LANES).run(graph)
        values = inputs_of(graph, 1)
        before, after = interpret(graph, values), interpret(found, values)
        for name in outputs:
            np.testing.assert_array_equal(after[name], before[name])
        copies = [node for node in found.nodes if isinstance(node.operator, Gather)]
        assert copies or found is graph
        return [(n.inputs[0], found.constants[n.inputs[1]].tolist()) for n in copies]


@pytest.mark.parametrize(
    ("first", "end", "copies"),
    [
        (0, 4, []),
        (0, 3, []),
        (4, 8, []),
        (2, 6, [("t0/blocks", [2, 3, 4, 5])]),
        (6, 8, [("t0/blocks", [2, 3])]),
        (1, 8, [("x", [1, 2, 3, 4, 5, 6, 7])]),
    ],
)
def test_a_slice_within_a_block_is_copied(
    first: int, end: int, copies: list[tuple[str, list[int]]]
) -> None:
    net = Net()
    cut = net.cut(net.x, first, end)
    assert net.copied(net.pool(cut)) == copies
    net = Net()
    cut = net.cut(net.x, first, end)
    assert net.copied(net.pool(cut), net.conv(cut, 3)) == copies, "once for all that read it"


@pytest.mark.parametrize(
    ("outer", "inner", "copies"),
    [
        ((2, 7), (2, 4), []),
        ((2, 7), (1, 3), [("t1/blocks", [3, 4])]),
        ((4, 8), (1, 3), [("t1/blocks", [1, 2])]),
        ((4, 8), (0, 3), []),
    ],
)
def test_a_slice_of_a_slice_is_one_of_the_whole(
    outer: tuple[int, int], inner: tuple[int, int], copies: list[tuple[str, list[int]]]
) -> None:
    net = Net()
    assert net.copied(net.pool(net.cut(net.cut(net.x, *outer), *inner))) == copies


READERS: dict[str, tuple[Callable[[Net, str], str], int]] = {
    "dense": (lambda net, x: net.conv(x, 5), 0),
    "depthwise": (lambda net, x: net.conv(x, net.channels(x), net.channels(x)), 0),
    "grouped": (lambda net, x: net.conv(x, 6, 2), 1),
    "pool": (lambda net, x: net.pool(x), 0),
    "table": (lambda net, x: net.table(x), 0),
    "tables": (lambda net, x: net.table(x, each=True), 1),
    "sum": (lambda net, x: net.sum(x), 1),
    "sum of a pool": (lambda net, x: net.sum(net.pool(x)), 1),
    "dense of a table of a pool": (lambda net, x: net.conv(net.table(net.pool(x)), 3), 0),
    "host": (lambda net, x: net.add(Dequantize(0.5, 0), x), 0),
    "pool in a whole": (
        lambda net, x: net.add(Concatenate(3), net.pool(x), net.pool(net.x)),
        1,
    ),
    "table of sums in a whole": (
        *(lambda net, x: net.add(Concatenate(3), net.table(net.conv(x, 6, 6)), net.pool(net.x)),),
        1,
    ),
    "aligned slice": (lambda net, x: net.sum(net.cut(x, 3, 6)), 0),
    "slice over a gap": (lambda net, x: net.pool(net.cut(x, 2, 4)), 1),
}


@pytest.mark.parametrize("name", READERS)
def test_a_whole_with_gaps_is_copied_for_what_cannot_read_it(name: str) -> None:
    reader, copies = READERS[name]
    net = Net()
    assert len(net.copied(reader(net, net.join(3, 3)))) == copies


def test_wholes_without_gaps_and_outputs_are_not_copied() -> None:
    net = Net()
    assert not net.copied(net.sum(net.join(4, 3)))
    net = Net()
    whole = net.join(3, 3)
    assert not net.copied(whole, net.pool(whole))
    net = Net()
    assert len(net.copied(net.sum(net.join(8, 1, 3)))) == 1
