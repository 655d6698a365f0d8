"""Tables of channels: as products where these are exact, else by blocks."""

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder, Node
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Lookup
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.graph.verify import verify
from dovetail.compiler.targets.vta.passes.affine import find_affine
from dovetail.compiler.targets.vta.passes.channel_tables import ChannelTables
from dovetail.compiler.targets.vta.passes.shared_forms import find_shared

RNG = np.random.default_rng(1)
X = np.arange(-128, 128)


def _tables(count: int, low: int = -128) -> np.ndarray:
    """Slopes and offsets as normalisations have them, each result clipped at ``low``."""
    slopes, offsets = RNG.normal(size=(count, 1)), RNG.normal(size=(count, 1)) * 40
    return np.clip(np.rint(slopes * X + offsets), low, 127).astype(np.int8)


def _graph(table: np.ndarray, shape: tuple[int, ...]) -> Graph:
    builder = GraphBuilder()
    x = builder.input("x", TensorType(shape, "int8"))
    y = builder.node(Lookup(), (x, builder.constant("table", table)), "y", "y")
    return builder.build((y,))


@pytest.mark.parametrize("low", [-128, -60])
def test_a_form_gives_all_results_of_all_channels(low: int) -> None:
    table = _tables(60, low)
    form = find_affine(table)
    assert form is not None
    total = (form.taps[:, None] * X + form.biases[:, None]).astype(np.float32)
    found = np.clip(np.rint(total * form.scales[:, None]), form.low, form.high)
    np.testing.assert_array_equal(found, table)


def test_halves_round_to_even() -> None:
    """Slopes that are powers of two: every second result lies half way."""
    table = np.stack([np.rint(X / 2), np.rint(X / 2 + 7), np.rint(-X / 4 + 2)]).astype(np.int8)
    assert find_affine(table) is not None
    table[0, 9] += 1
    assert find_affine(table) is None


@pytest.mark.parametrize("shape", [(1, 3, 2, 10), (1, 10)])
@pytest.mark.parametrize("bent", [False, True])
def test_the_graph_computes_the_same(bent: bool, shape: tuple[int, ...]) -> None:
    table = _tables(10)
    if bent:
        table[4, :100] = 7
    graph = _graph(table, shape)
    found = ChannelTables(4).run(graph)
    verify(found)
    products = [node for node in found.nodes if isinstance(node.operator, Conv2d)]
    assert len(products) == (2 if bent else 1), "blocks of 4, one of them no product"
    tables = [
        found.constants[node.inputs[1]] for node in found.nodes if isinstance(node.operator, Lookup)
    ]
    assert [len(each) for each in tables] == ([4] if bent else [])
    x = {"x": RNG.integers(-128, 128, shape).astype(np.int8)}
    np.testing.assert_array_equal(run(found, x)["y"], run(graph, x)["y"])


def test_blocks_between_two_without_a_form_are_one_product() -> None:
    table = np.rint(X / 2 + np.arange(40)[:, None] - 60).astype(np.int8)
    for channel in (14, 17, 33):
        table[channel, :100] = 7
    graph = _graph(table, (1, 1, 2, 40))
    found = ChannelTables(4).run(graph)
    products = [len(found.constants[n.inputs[1]]) for n in found.nodes if _is(n, Conv2d)]
    assert products == [12, 12, 4]
    assert [len(found.constants[n.inputs[1]]) for n in found.nodes if _is(n, Lookup)] == [4] * 3
    x = {"x": RNG.integers(-128, 128, (1, 1, 2, 40)).astype(np.int8)}
    np.testing.assert_array_equal(run(found, x)["y"], run(graph, x)["y"])


def _is(node: Node, kind: type[object]) -> bool:
    return isinstance(node.operator, kind)


def test_several_images_stay_a_table() -> None:
    """A convolution is of one image, and what comes after tells why a batch cannot run."""
    graph = _graph(_tables(10), (5, 3, 2, 10))
    assert ChannelTables(4).run(graph) is graph


def test_products_with_a_constant_a_channel_have_no_biases() -> None:
    scales = RNG.uniform(0.01, 2, (20, 1)) * RNG.choice([-1, 1], (20, 1))
    table = np.clip(np.rint((X + 9) * scales) - 31, -128, 127).astype(np.int8)
    form = find_shared(table)
    assert form is not None
    assert (form.zero_point, form.added) == (-9, -31)
    graph = _graph(table, (1, 1, 1, 20))
    found = ChannelTables(16).run(graph)
    (conv,) = (node for node in found.nodes if isinstance(node.operator, Conv2d))
    assert not found.constants[conv.inputs[2]].any()
    x = RNG.integers(-128, 128, (1, 1, 1, 20)).astype(np.int8)
    np.testing.assert_array_equal(run(found, {"x": x})["y"], run(graph, {"x": x})["y"])
    table[3, 200] ^= 1
    assert find_shared(table) is None
