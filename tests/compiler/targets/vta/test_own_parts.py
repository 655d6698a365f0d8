"""Parts of a whole that cannot be made in their place are copied, and no others."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.graph.ir import Graph, GraphBuilder, Node
from dovetail.compiler.graph.operators.assembly import Assemble
from dovetail.compiler.graph.operators.integer.products import Conv2d, RowProducts
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Requantize
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d, MaxPool2d
from dovetail.compiler.graph.operators.movement import Concatenate, Iota, Reshape, Slice
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.own_parts import (
    OwnParts,
    is_channel_slice,
    is_copy,
    is_operand,
)

POOL = MaxPool2d((3, 3), (1, 1), (1, 1, 1, 1))
JOIN, CUT, LANES = Concatenate(3), Slice((0, 0, 0, 0), (1, 1, 1, 1), (1, 4, 4, 2)), 4


class Net:
    """Images of four channels; ``x`` and ``y`` are given."""

    def __init__(self, rows: int = 4) -> None:
        self.builder = GraphBuilder()
        self.x, self.y = (self.builder.input(n, TensorType((1, rows, 4, 4), "int8")) for n in "xy")
        self.table = self.builder.constant("table", np.arange(256).astype(np.int8))

    def __call__(self, operator: object, *inputs: str) -> str:
        number = len(self.builder.nodes)
        return self.builder.node(operator, inputs, f"t{number}", "n")  # type: ignore[arg-type]

    def pool(self, x: str) -> str:
        return self(POOL, x)

    def looked_up(self, x: str) -> str:
        return self(Lookup(), x, self.table)

    def sum(self, x: str, y: str) -> str:
        return self(Add(1.0, 1.0, 0, 0, 0, -128, 127), x, y)

    def conv(self, x: str) -> str:
        weights = self.builder.constant("w", np.ones((4, 1, 1, 4), np.int8))
        bias, scale = (
            self.builder.constant("c", np.ones(4, kind)) for kind in ("int32", "float32")
        )
        sums = self(Conv2d((1, 1), (0, 0, 0, 0), 1, 0), x, weights, bias)
        return self(Requantize(0, -128, 127), sums, scale)


def copies(graph: Graph, lanes: int = LANES) -> list[str]:
    """Tensors that are copied, for the first whole and for those after it."""
    found = OwnParts(lanes).run(graph)
    return [node.inputs[0] for node in found.nodes if "/part" in node.output]


def joined(net: Net, *parts: str) -> list[str]:
    return copies(net.builder.build((net(JOIN, *parts),)))


CASES: dict[str, tuple[Callable[[Net, str], tuple[str, ...]], tuple[int, ...]]] = {
    "made apart": (lambda net, a: (a, net.pool(net.y)), ()),
    "given": (lambda net, a: (net.y, a), (0,)),
    "twice": (lambda net, a: (a, a), (0, 1)),
    "cut out": (lambda net, a: (net(CUT, net.x), a), (0,)),
    "read by a part": (lambda net, a: (a, net.pool(a)), (0,)),
    "read before a part": (lambda net, a: (a, net.pool(net.pool(a))), ()),
    "read by the sums of a part": (lambda net, a: (a, net.conv(a)), (0,)),
    "read by the sums of a table's part": (lambda net, a: (a, net.looked_up(net.conv(a))), (0,)),
    "read before the sums of a part": (lambda net, a: (a, net.conv(net.pool(a))), ()),
    "read by the sums that are added": (
        lambda net, a: (a, net.sum(net.conv(a), net.y)), (0,)
    ),
    "read before what is added": (lambda net, a: (a, net.sum(net.pool(a), net.y)), ()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_parts_are_copied_that_no_layer_can_make_in_the_whole(name: str) -> None:
    make, copied = CASES[name]
    net = Net()
    parts = make(net, net.pool(net.x))
    assert joined(net, *parts) == [parts[number] for number in copied]


def test_a_part_of_two_wholes_is_copied_for_each() -> None:
    net = Net()
    a, b, c = net.pool(net.x), net.pool(net.y), net.looked_up(net.y)
    assert copies(net.builder.build((net(JOIN, a, b), net(JOIN, c, a)))) == [a, a]


@pytest.mark.parametrize("shaped", [False, True])
def test_a_part_that_a_product_of_activations_reads_is_copied(shaped: bool) -> None:
    net = Net()
    a, b = net.pool(net.x), net.pool(net.y)
    whole, read = net(JOIN, a, b), net(Reshape((1, 1, 16, 4)), a) if shaped else a
    graph = net.builder.build((whole, net(RowProducts(0, 0), read, read)))
    assert copies(graph) == [a]


@pytest.mark.parametrize(("rows", "lanes", "copied"), [(4, 4, True), (1, 4, False), (1, 3, True)])
def test_sums_are_copied_to_an_image_unless_they_are_a_row_of_one_block(
    rows: int, lanes: int, *, copied: bool
) -> None:
    stacked = Assemble((2 * rows, 4), ((0, 0), (rows, 0)), (1, 1))
    alone = Assemble((rows, 4), ((0, 0),), (1, 1))
    for made in (Net.sum, lambda net, x, y: net.looked_up(net.sum(x, y))):
        net = Net(rows)
        parts = made(net, net.x, net.y), net.pool(net.x)
        graph = net.builder.build((net(stacked, *parts),))
        assert copies(graph, lanes) == ([parts[0]] if copied else [])
        net = Net(rows)
        whole = net(alone, made(net, net.x, net.y))
        assert not copies(net.builder.build((whole,)), lanes)


def test_a_part_that_is_assembled_of_what_reads_another_is_copied_for() -> None:
    net = Net()
    a, given = net.pool(net.x), net.builder.input("z", TensorType((1, 2, 4, 4), "int8"))
    half = net(MaxPool2d((3, 3), (2, 1), (1, 1, 1, 1)), a)
    image = net(Assemble((4, 4), ((0, 0), (2, 0)), (1, 1)), half, given)
    found = joined(net, a, image)
    assert found == [given, a]


@pytest.mark.parametrize(
    ("starts", "steps", "shape", "cuts"),
    [
        ((0, 0, 0, 1), (1, 1, 1, 1), (1, 4, 4, 2), True),
        ((0, 0, 0, 0), (1, 1, 1, 2), (1, 4, 4, 2), False),
        ((0, 1, 0, 0), (1, 1, 1, 1), (1, 3, 4, 2), False),
        ((0, 0, 0, 0), (1, 1, 1, 1), (1, 4, 3, 4), False),
    ],
)
def test_a_slice_of_channels_has_all_pixels(
    starts: tuple[int, ...], steps: tuple[int, ...], shape: tuple[int, ...], *, cuts: bool
) -> None:
    node = Node(Slice(starts, steps, shape), ("x",), "y", "n")
    types = {"x": TensorType((1, 4, 4, 4), "int8")}
    assert is_channel_slice(node, types) == cuts
    assert not is_channel_slice(node, {"x": TensorType((1, 4, 4, 4), "float32")})
    assert not is_channel_slice(Node(POOL, ("x",), "y", "n"), types)
    assert not is_channel_slice(Node(Iota((4,), 0, "int64"), (), "y", "n"), types)


def test_rows_that_are_copied_for_products_alone_are_operands() -> None:
    copy = AveragePool2d((1, 1), (1, 1), 0, 0, 1.0)
    for other, copied in ((copy, True), (replace(copy, scale=0.5), False)):
        assert is_copy(Node(other, ("x",), "y", "n")) == copied
    assert not is_copy(Node(replace(copy, x_zero_point=3, zero_point=3), ("x",), "y", "n"))
    for order, operand in ((1, True), (-1, False)):
        net = Net()
        first = net(copy, net.x)
        total = net(RowProducts(0, 0), *(first, net.y)[::order])
        graph = net.builder.build((total,))
        assert is_operand(graph, graph.nodes[0]) == operand
        graph = net.builder.build((total, first))
        assert not is_operand(graph, graph.nodes[0])
        graph = net.builder.build((total, net.pool(first)))
        assert not is_operand(graph, graph.nodes[0])
