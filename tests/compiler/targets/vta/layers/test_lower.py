"""Kernels compute what the graph's interpreter does, for layers of every kind."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.graph.ir import Graph, GraphBuilder, Node
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Requantize
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d, Upsample2d
from dovetail.compiler.graph.operators.movement import Reshape
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.expressions import Scope
from dovetail.compiler.loops.ir import Allocate
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.compiler.targets.vta.layers.lower import lower
from dovetail.compiler.targets.vta.layers.plan_activations import plan_activations
from dovetail.compiler.targets.vta.passes.fuse import Layer, fuse

from ....graph.graphs import convolution, image_builder
from .layers import KINDS, Network, from_blocked, lower_graph, networks, run_function, to_blocked


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
@settings(max_examples=40, deadline=None)
def test_kernel_computes_what_the_graph_does(kind: str, data: st.DataObject) -> None:
    network = data.draw(networks((kind,)))
    for layer in network.layers:
        assume(not layer.inexact_pairs)
        verify(layer.function)
        assert parse(to_text(layer.function)) == layer.function
        np.testing.assert_array_equal(network.result(layer), network.wanted(layer))


@given(st.sampled_from((2, 4, 8)), st.integers(0, 1000))
@settings(max_examples=6, deadline=None)
def test_residual_block_shares_halos(lanes: int, seed: int) -> None:
    network = _residual(lanes, seed)
    x, first = network.activations["x"], network.activations["y"]
    assert x.halo == first.halo == (1, 1, 1, 1)
    assert (x.fill, first.fill) == (5, 5)
    for layer in network.layers:
        assert layer.inexact_pairs == 0
        np.testing.assert_array_equal(network.result(layer), network.wanted(layer))


def _residual(lanes: int, seed: int) -> Network:
    """conv, conv, then the sum of the second's result and the input."""
    builder = image_builder((1, 5, 4, 6))
    y = convolution(builder, convolution(builder, "x", 6), 6)
    total = builder.node(Add(0.7364182, 0.5120533, 3, -4, 1, -100, 127), (y, "x"), "total", "add")
    return lower_graph(builder.build((total,)), lanes, seed)


@pytest.mark.parametrize("factors", [(2, 1), (1, 3), (3, 1)])
def test_pixels_are_repeated_down_or_across(factors: tuple[int, int]) -> None:
    builder = image_builder((1, 3, 4, 6))
    out = builder.node(Upsample2d(factors), ("x",), "out", "up")
    network = lower_graph(builder.build((out,)), 4, 0)
    (layer,) = network.layers
    np.testing.assert_array_equal(network.result(layer), network.wanted(layer))


def test_pixels_repeated_both_ways_at_once_are_refused() -> None:
    builder = image_builder((1, 3, 4, 6))
    out = builder.node(Upsample2d((2, 2)), ("x",), "out", "up")
    with pytest.raises(UnsupportedOperatorError, match="required one of both"):
        lower_graph(builder.build((out,)), 4, 0)


@pytest.mark.parametrize("rubbish", [-128, 0, 127])
def test_channels_beyond_the_last_do_not_matter(rubbish: int) -> None:
    network = _residual(4, 0)
    layer = network.layers[0]
    arrays = network.arrays(layer)
    arrays["x"] = to_blocked(network.values["x"], layer.inputs[0], rubbish)
    found = run_function(layer.function, arrays, layer.output)
    np.testing.assert_array_equal(found, network.wanted(layer))


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_blocked_layout_round_trips(data: st.DataObject) -> None:
    sizes = st.integers(1, 5)
    c, h, w, lanes = data.draw(st.tuples(sizes, sizes, sizes, sizes))
    halo = data.draw(st.tuples(*[st.integers(0, 2)] * 4))
    x = Activation("x", c, h, w, lanes, halo, 3)
    values = np.random.default_rng(0).integers(-128, 128, (1, h, w, c)).astype(np.int8)
    blocked = to_blocked(values, x)
    assert blocked.shape == x.buffer.shape
    assert blocked.size == x.words * lanes
    np.testing.assert_array_equal(from_blocked(blocked, x), values)


def test_multiply_accumulates_are_those_of_the_model() -> None:
    network = _residual(4, 0)
    assert [layer.macs for layer in network.layers] == [5 * 4 * 6 * 9 * 6] * 2


def test_scopes_name_the_accelerators_memories() -> None:
    function = _residual(4, 0).layers[0].function
    scopes = {buffer.name: buffer.scope for buffer in (*function.inputs, *function.outputs)}
    assert scopes["weights"] is scopes["bias"] is scopes["scale"] is Scope.GLOBAL
    assert scopes["x"] is scopes["y"] is Scope.ACT
    allocated = {each.buffer.name for each in walk(function.body) if isinstance(each, Allocate)}
    assert allocated == {"acc"}


def test_two_fills_of_one_tensor_are_refused() -> None:
    builder = image_builder()
    a = convolution(builder, "x", 3, zero_point=5)
    b = builder.node(MaxPool2d((3, 3), (1, 1), (1, 1, 1, 1)), ("x",), "m", "pool")
    out = builder.node(Add(1, 1, 0, 0, 0, -128, 127), (a, b), "out", "add")
    graph = builder.build((out,))
    message = "nodes 'conv' and 'pool' pad one tensor with 5 and -128; required one value"
    with pytest.raises(UnsupportedOperatorError, match=message):
        plan_activations(graph, fuse(graph), 4)


def test_operator_without_kernel_is_refused() -> None:
    graph = image_builder().build(("x",))
    node = Node(Reshape((1, 90)), ("x",), "y", "flatten")
    x = Activation("x", 3, 6, 5, 4)
    with pytest.raises(UnsupportedOperatorError, match="'flatten': Reshape has no kernel"):
        lower(graph, Layer((node,), ("x",), "y"), {"x": x, "y": x})


@pytest.mark.parametrize("shape", [(3, 5), (2, 1, 1, 4), ()])
def test_batches_are_refused(shape: tuple[int, ...]) -> None:
    graph = _looked_up(shape)
    with pytest.raises(UnsupportedOperatorError, match="required int8"):
        plan_activations(graph, fuse(graph), 4)


def _looked_up(shape: tuple[int, ...]) -> Graph:
    builder = GraphBuilder()
    builder.input("x", TensorType(shape, "int8"))
    table = builder.constant("t", np.arange(-128, 128).astype(np.int8))
    return builder.build((builder.node(Lookup(), ("x", table), "y", "lookup"),))


def test_sum_that_wraps_in_int32_is_folded_as_int32() -> None:
    """A bias at the end of int32, with a zero point that moves the folded bias beyond it."""
    builder = image_builder((1, 1, 1, 1))
    w = builder.constant("w", np.full((1, 1, 1, 1), 127, np.int8))
    b = builder.constant("b", np.array([2**31 - 1 - 127 * 256], np.int32))
    s = builder.constant("s", np.array([1e-8], np.float32))
    total = builder.node(Conv2d((1, 1), (0,) * 4, 1, -128), ("x", w, b), "sum", "conv")
    y = builder.node(Requantize(0, -128, 127), (total, s), "y", "conv")
    network = lower_graph(builder.build((y,)), 2, 0)
    (layer,) = network.layers
    np.testing.assert_array_equal(network.result(layer), network.wanted(layer))
