"""Heads of a convolution's result get channels up to whole blocks, or stay as they are."""

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Lookup, Requantize
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d
from dovetail.compiler.graph.operators.movement import Slice
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.head_lanes import HeadLanes
from dovetail.compiler.targets.vta.passes.spread import find_spread, spread

from .integer_graphs import inputs_of

HEADS = (0, 3), (3, 6)
COPY = AveragePool2d((1, 1), (1, 2), 7, 7, 1.0)


class Net:
    """``y`` has six channels, made by a convolution and rounded about a zero point of 3."""

    def __init__(self, low: int = -128, groups: int = 1) -> None:
        self.builder, rng = GraphBuilder(), np.random.default_rng(4)
        x = self.builder.input("x", TensorType((1, 2, 2, 6), "int8"))
        constants = (
            rng.integers(-127, 128, (6, 1, 1, 6 // groups)).astype(np.int8),
            rng.integers(-900, 900, 6).astype(np.int32),
        )
        names = [self.builder.constant(f"c{n}", each) for n, each in enumerate(constants)]
        conv = Conv2d((1, 1), (0, 0, 0, 0), groups, -2, 5)
        scale = self.builder.constant("scale", np.full(6, 3e-3, np.float32))
        total = self("total", conv, x, *names)
        self.y = self("y", Requantize(3, low, 127), total, scale)

    def __call__(self, name: str, operator: object, *inputs: str) -> str:
        return self.builder.node(operator, inputs, name, name)  # type: ignore[arg-type]

    def head(self, first: int, end: int, x: str = "", steps: int = 1) -> str:
        shape = self.builder.types[x or "y"].shape[:3]
        operator = Slice((0, 0, 0, first), (1, 1, 1, steps), (*shape, (end - first) // steps))
        return self(f"head {first}", operator, x or self.y)

    def spread(self, x: str, count: int = 4, blank: int = -9) -> str:
        """A table of the spread image, since outputs themselves stay."""
        return self.table(spread(self.builder, x, count, blank, x))

    def table(self, x: str, step: int = 1) -> str:
        values = np.roll(np.arange(-128, 128), step).astype(np.int8)
        return self(f"{x} looked up", Lookup(), x, self.builder.constant(f"{x} table", values))

    def both(self, then: Callable[[str], str]) -> Graph:
        """Each head through ``then``."""
        return self.builder.build(tuple(then(self.head(*span)) for span in HEADS))


def widened(graph: Graph, outputs: int) -> None:
    """Its convolution makes ``outputs`` channels, nothing is spread any more; all bytes stay."""
    found = HeadLanes(4).run(graph)
    (conv,) = (node for node in found.nodes if isinstance(node.operator, Conv2d))
    assert found.types[conv.output].shape[3] == outputs
    assert not any(find_spread(found, node) for node in found.nodes)
    values = inputs_of(graph, 1)
    before, after = interpret(graph, values), interpret(found, values)
    for name, other in zip(graph.outputs, found.outputs, strict=True):
        assert name == other
        np.testing.assert_array_equal(after[name], before[name])


def test_each_head_begins_a_block() -> None:
    net = Net()
    widened(net.both(net.spread), 8)
    net = Net()
    widened(net.both(lambda x: net.spread(net.table(x))), 8)
    net = Net()
    widened(net.both(lambda x: net.spread(net(f"{x} copied", COPY, x))), 8)
    net = Net()
    widened(net.both(lambda x: net.spread(net.table(net.table(x, 3), 5), 5)), 13)
    net = Net()
    first, second = (net.head(*span) for span in HEADS)
    widened(net.builder.build((net.spread(first), net.table(second))), 7)


def test_a_whole_result_may_be_a_head_and_tables_may_stand_before_heads() -> None:
    net = Net()
    widened(net.builder.build((net.spread(net.table(net.y), 7),)), 7)
    net = Net()
    made = net.table(net.y)
    widened(net.builder.build(tuple(net.spread(net.head(*span, made)) for span in HEADS)), 8)


def unchanged(net: Net, *outputs: str) -> bool:
    graph = net.builder.build(outputs)
    return HeadLanes(4).run(graph) is graph


@pytest.mark.parametrize(
    "other",
    [
        AveragePool2d((1, 1), (1, 2), 7, 7, 0.5),
        AveragePool2d((1, 1), (1, 2), 7, 6, 1.0),
        AveragePool2d((2, 1), (1, 2), 7, 7, 1.0),
    ],
)
def test_what_is_no_table_of_bytes_ends_a_head(other: AveragePool2d) -> None:
    net = Net()
    assert unchanged(net, *(net.spread(net(f"{n}", other, net.head(*n))) for n in HEADS))


def test_heads_stay_where_a_reader_wants_something_else() -> None:
    net = Net(low=-8)
    assert unchanged(net, net.spread(net.head(0, 3), blank=-9))
    net = Net(low=-8)
    assert not unchanged(net, net.spread(net.head(0, 3), blank=-8))
    net = Net(groups=2)
    assert unchanged(net, net.spread(net.head(0, 3)))
    net = Net()
    assert unchanged(net, net.spread(net.head(0, 3)), "head 0")
    net = Net()
    assert unchanged(net, net.spread(net.head(0, 3)), "y")
    net = Net()
    assert unchanged(net, net.spread(net.head(0, 3)), net.spread(net.head(2, 5)))
    net = Net()
    assert unchanged(net, spread(net.builder, net.head(0, 3), 4, -9, "n"))
    net = Net()
    assert unchanged(net, net.spread(net.head(0, 6, steps=2)))
    net = Net()
    assert unchanged(net, net.table(net.head(0, 3)))
    net = Net()
    first = net.head(0, 3)
    assert unchanged(net, net.spread(first, 4), net.spread(net.table(first), 4))


def found(**changes: np.ndarray) -> bool:
    """True if the layer that spreads three channels to five is known, with other constants."""
    builder = GraphBuilder()
    last = spread(builder, builder.input("x", TensorType((1, 2, 2, 3), "int8")), 5, 6, "n")
    for name, values in changes.items():
        builder.constants[f"x/spread/{name}"] = values
    graph = builder.build((last,))
    return find_spread(graph, graph.nodes[-1]) is not None


def test_a_spread_is_known_by_its_constants() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 2, 2, 3), "int8"))
    assert spread(builder, x, 3, 6, "n") == x
    assert found()
    ones, bias = np.ones(5, np.float32), np.array([0, 0, 0, 6, 6], np.int32)
    for place in range(5):
        changed = {"scale": ones.copy(), "bias": bias.copy()}
        changed["scale"][place] = 2
        changed["bias"][place] += 1
        assert not found(scale=changed["scale"])
        assert not found(bias=changed["bias"])
    assert not found(weights=np.eye(5, 3, 1, dtype=np.int8)[:, None, None])
