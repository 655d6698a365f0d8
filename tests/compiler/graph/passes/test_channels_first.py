"""Transposes sink below what can be computed before them, and meet."""

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction, Unary, Where
from dovetail.compiler.graph.operators.indexing import Gather
from dovetail.compiler.graph.operators.movement import (
    Concatenate,
    PadTensor,
    Reshape,
    Slice,
    Transpose,
)
from dovetail.compiler.graph.operators.reductions import Cumulative, Reduce
from dovetail.compiler.graph.operators.windows import WindowFunction, WindowReduce
from dovetail.compiler.graph.passes.channels_first import ChannelsFirst
from dovetail.compiler.graph.types import TensorType

ADD = Binary(BinaryFunction.ADD)
TURNED = Transpose((1, 2, 0))
POOL = WindowFunction.MAX


class Net:
    """``x``, float32[2, 3, 4], and what is made of it."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.rng = np.random.default_rng(2)
        self.x = self.input(2, 3, 4)

    def input(self, *shape: int, dtype: str = "float32") -> str:
        name = f"x{len(self.builder.types)}"
        return self.builder.input(name, TensorType(shape, dtype))

    def constant(self, *shape: int) -> str:
        return self.given(self.rng.integers(-9, 9, shape).astype(np.float32))

    def given(self, array: object) -> str:
        return self.builder.constant(f"c{len(self.builder.types)}", np.asarray(array))

    def add(self, operator: object, *inputs: str) -> str:
        name = f"t{len(self.builder.nodes)}"
        return self.builder.node(operator, inputs, name, name)  # type: ignore[arg-type]

    def turned(self, order: tuple[int, ...] = (1, 2, 0), x: str = "") -> str:
        return self.add(Transpose(order), x or self.x)


def rewritten(net: Net, output: str) -> tuple[Graph, str]:
    """The graph with the same meaning, and the names of its operators."""
    graph = net.builder.build((output,))
    found = ChannelsFirst().run(graph)
    rng = np.random.default_rng(3)
    kinds = {name: graph.types[name] for name in graph.inputs}
    x = {name: rng.integers(-9, 9, k.shape).astype(k.dtype.numpy) for name, k in kinds.items()}
    np.testing.assert_array_equal(run(found, x)[output], run(graph, x)[output])
    return found, " ".join(type(node.operator).__name__ for node in found.nodes)


def cumulative(net: Net, t: str) -> str:
    return net.add(Cumulative("sum", 2, exclusive=True), t)


CASES: dict[str, tuple[Callable[[Net, str], str], str]] = {
    "function": (lambda net, t: net.add(Unary("abs"), t), "Unary Transpose"),
    "wide constant": (lambda net, t: net.add(ADD, t, net.constant(3, 4, 2)), "Binary Transpose"),
    "constant": (lambda net, t: net.add(ADD, t, net.constant(4, 1)), "Binary Transpose"),
    "one number": (lambda net, t: net.add(ADD, net.constant(1, 1), t), "Binary Transpose"),
    "row": (*(lambda net, t: net.add(ADD, t, net.input(1, 4, 1)), "Reshape Binary Transpose"),),
    "plane": (lambda net, t: net.add(ADD, t, net.input(3, 4, 1)), "Reshape Binary Transpose"),
    "moved plane": (lambda net, t: net.add(ADD, t, net.input(3, 1, 2)), "Transpose Binary"),
    "wider": (lambda net, t: net.add(ADD, t, net.input(5, 3, 4, 2)), "Transpose Binary"),
    "both": (lambda net, t: net.add(ADD, t, net.turned(x=net.input(2, 3, 4))), "Binary Transpose"),
    "another order": (
        lambda net, t: net.add(ADD, t, net.turned((2, 1, 0), net.input(2, 4, 3))),
        "Transpose Transpose Binary",
    ),
    "choice": (
        lambda net, t: net.add(Where(), net.input(3, 1, 1, dtype="bool"), t, net.constant(2)),
        "Reshape Where Transpose",
    ),
    "border": (
        *(lambda net, t: net.add(PadTensor((1, 0, 2), (0, 3, 1)), t, net.given(np.float32(5))),),
        "PadTensor Transpose",
    ),
    "slice": (
        *(lambda net, t: net.add(Slice((1, 3, 0), (1, -2, 1), (2, 2, 2)), t), "Slice Transpose"),
    ),
    "join": (
        lambda net, t: net.add(
            Concatenate(1), t, net.turned(x=net.input(2, 3, 5)), net.constant(3, 1, 2)
        ),
        "Concatenate Transpose",
    ),
    "join with another": (
        *(lambda net, t: net.add(Concatenate(1), t, net.input(3, 4, 2)), "Transpose Concatenate"),
    ),
    "sum kept": (lambda net, t: net.add(Reduce("sum", (1,), True), t), "Reduce Transpose"),
    "sum of the last": (lambda net, t: net.add(Reduce("sum", (2,), False), t), "Reduce"),
    "sum of the middle": (
        lambda net, t: net.add(Reduce("sum", (1,), False), t),
        "Reduce Transpose",
    ),
    "sum of two": (lambda net, t: net.add(Reduce("sum", (0, 2), False), t), "Reduce"),
    "running sum": (cumulative, "Cumulative Transpose"),
    "picked": (lambda net, t: net.add(Gather(1), t, net.given([3, 0])), "Gather Transpose"),
    "picked twice": (lambda net, t: net.add(Gather(1), t, net.given([[3, 0]])), "Transpose Gather"),
    "back": (lambda net, t: net.turned((2, 0, 1), net.add(Unary("abs"), t)), "Unary"),
    "turned again": (lambda net, t: net.turned((1, 2, 0), t), "Transpose"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_transpose_sinks_below_what_means_the_same_before_it(name: str) -> None:
    make, kinds = CASES[name]
    net = Net()
    assert rewritten(net, make(net, net.turned()))[1] == kinds


def test_a_turn_that_moves_nothing_is_a_reshape() -> None:
    net = Net()
    turned = net.turned((2, 0, 1, 3), net.input(3, 2, 4, 1))
    assert rewritten(net, net.add(Reshape((2, 12)), turned))[1] == "Transpose Reshape"
    net = Net()
    turned = net.turned((2, 0, 1, 3), net.input(3, 2, 1, 4))
    assert rewritten(net, net.add(Reshape((6, 4)), turned))[1] == "Reshape"


def test_windows_are_over_the_last_dimensions() -> None:
    net = Net()
    windows = ((2, 1), (1, 1), (1, 1), ((0, 1), (0, 0)), POOL)
    x = net.input(4, 5, 2)
    found, kinds = rewritten(net, net.add(WindowReduce((0, 2), *windows), x))
    assert kinds == "Transpose WindowReduce Transpose"
    assert [n.operator.axes for n in found.nodes if isinstance(n.operator, WindowReduce)] == [
        (1, 2)
    ]
    net = Net()
    assert rewritten(net, net.add(WindowReduce((1, 2), *windows), net.x))[1] == "WindowReduce"
    net = Net()
    turned = net.turned((1, 2, 0))
    assert rewritten(net, net.add(WindowReduce((0, 1), *windows), turned))[1] == (
        "WindowReduce Transpose"
    )
