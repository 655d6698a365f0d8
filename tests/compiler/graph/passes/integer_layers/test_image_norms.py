"""Normalisations of whole images in integers: where they are recognised, and how near they are."""

from collections import Counter

import numpy as np
import onnx
import pytest

import dovetail
from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.norm import MOST_EPSILON, RowNorm
from dovetail.compiler.graph.operators.integer.tensor_norm import (
    MOST_ELEMENTS,
    NormSteps,
    TensorNorm,
)
from dovetail.compiler.graph.operators.movement import Reshape, Transpose
from dovetail.compiler.graph.passes.expand_integers.expand import ExpandIntegers
from dovetail.compiler.graph.passes.integer_layers.image_norms import (
    image_epsilon,
    image_of_rows,
    is_uniform,
)
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions
from dovetail.runtime.session import run as run_module

from .models import F32, Array, ModelBuilder, integer_graph, reference


def _model(
    shape: tuple[int, ...], epsilon: float = 1e-5, gain: float = 1.0, groups: int = 1
) -> onnx.ModelProto:
    """An image as some rows, normalised, and as an image again; all of it between bytes.

    groups: these are rows, of channels that a layer makes.
    """
    b = ModelBuilder()

    def again(name: str, scale: float, zero_point: int) -> str:
        given = scale, np.int8(zero_point)
        return b.dequantize(b.quantize(name, *given), *given)

    def moved(name: str, sizes: tuple[int, ...]) -> str:
        return b.node("Reshape", [name, b.constant(np.array(sizes))])

    v = b.dequantize("x", 0.03, np.int8(5))
    if groups > 1:
        v = again(b.node("MaxPool", [v], kernel_shape=[1, 1]), 0.03, 5)
    v = again(moved(v, (shape[0], groups, -1)), 0.03, 5)
    given = [v, b.constant(np.full(groups, gain, F32)), b.constant(np.zeros(groups, F32))]
    v = again(b.node("InstanceNormalization", given, epsilon=epsilon), 0.04, -3)
    return b.build({"x": ("int8", shape)}, b.quantize(moved(v, shape), 0.04, np.int8(-3)), opset=17)


def _image(spread: float, shape: tuple[int, ...], mean: float = 5) -> Array:
    values = np.random.default_rng(7).normal(mean, spread, shape)
    found: Array = np.clip(np.rint(values), -128, 127).astype(np.int8)
    return found


@pytest.mark.parametrize("shape", [(1, 16, 24, 24), (1, 3, 7, 11), (1, 16, 64, 63)])
def test_few_bytes_are_one_step_from_onnx_runtimes(shape: tuple[int, ...]) -> None:
    model = _model(shape)
    graph = integer_graph(model)
    kinds = [type(node.operator) for node in graph.nodes]
    assert kinds.count(TensorNorm) == 1
    for spread, mean in ((2, 5), (20, -10), (40, 20)):
        x = _image(spread, shape, mean)
        apart = np.abs(
            run(graph, {"x": x})[graph.outputs[0]].astype(int) - reference(model, {"x": x})
        )
        assert apart.max() <= 1
        assert np.count_nonzero(apart) <= 0.003 * x.size


@pytest.mark.parametrize("spread", [0, 0.4, 9, 300])
def test_the_expanded_graph_has_the_same_bytes(spread: float) -> None:
    x = _image(spread, (1, 8, 9, 10))
    graph = integer_graph(_model(x.shape, gain=1.5))
    wanted, found = (run(g, {"x": x})[g.outputs[0]] for g in (graph, ExpandIntegers().run(graph)))
    np.testing.assert_array_equal(found, wanted)


def test_groups_of_channels_are_images_of_their_own() -> None:
    """Nothing of them is moved, and the accelerator normalises blocks of channels."""
    model = _model((1, 32, 4, 3), groups=2)
    graph = integer_graph(model)
    kinds = Counter(type(node.operator).__name__ for node in graph.nodes)
    assert (kinds["Slice"], kinds["TensorNorm"], kinds["Concatenate"]) == (2, 2, 1)
    x = _image(20, (1, 32, 4, 3))
    x[:, 16:] //= 3
    wanted = reference(model, {"x": x})
    apart = np.abs(run(graph, {"x": x})[graph.outputs[0]].astype(int) - wanted)
    assert apart.max() <= 1
    assert np.count_nonzero(apart) <= 0.003 * x.size
    module = dovetail.compile(model, "vta:tiny", options=CompileOptions(effort=0))
    assert len(module.parts) == 1
    (found,) = run_module(module, {"x": x}, "sim").outputs.values()
    np.testing.assert_array_equal(found, run(graph, {"x": x})[graph.outputs[0]])


@pytest.mark.parametrize(("shape", "groups"), [((1, 8, 4, 4), 8), ((1, 24, 4, 4), 3)])
def test_groups_that_fill_no_blocks_are_rows(shape: tuple[int, ...], groups: int) -> None:
    graph = integer_graph(_model(shape, groups=groups))
    assert RowNorm in {type(node.operator) for node in graph.nodes}


def test_an_image_is_normalised_where_its_channels_are() -> None:
    """Nothing is left of the row that it was."""
    model = _model((1, 8, 9, 10))
    (norm,) = (n for n in integer_graph(model).nodes if isinstance(n.operator, TensorNorm))
    assert norm.inputs == ("x",)


@pytest.mark.parametrize(
    ("shape", "epsilon"), [((1, 2, 1, MOST_ELEMENTS // 2 + 1), 1e-5), ((1, 4, 30, 40), 1e4)]
)
def test_what_is_no_normalised_image_is_not_one(shape: tuple[int, ...], epsilon: float) -> None:
    with pytest.raises(UnsupportedOperatorError):
        integer_graph(_model(shape, epsilon))


FIRST, LAST = Transpose((0, 3, 1, 2)), Transpose((0, 2, 3, 1))


@pytest.mark.parametrize(
    ("shape", "moves", "groups"),
    [
        ((1, 2, 2, 32), (Reshape((1, 1, 128)),), 1),
        ((1, 2, 2, 32), (FIRST, Reshape((1, 1, 128))), 1),
        ((1, 2, 2, 32), (FIRST, Reshape((1, 2, 64))), 2),
        ((1, 2, 2, 32), (FIRST, Reshape((1, 4, 32))), None),  # rows as long as channels
        ((1, 2, 3, 32), (FIRST, Reshape((1, 4, 48))), None),  # groups of 8 channels
        ((1, 2, 3, 64), (FIRST, Reshape((1, 4, 96))), 4),
        ((1, 2, 2, 32), (Reshape((1, 2, 64)),), None),
        ((1, 2, 2, 32), (LAST, Reshape((1, 2, 64))), None),
        ((1, 2, 2, 32), (FIRST, Reshape((1, 128)), Reshape((1, 2, 64))), None),
        ((2, 2, 2, 32), (Reshape((2, 1, 128)),), None),
        ((1, 2, 2, 32), (), None),
    ],
)
def test_rows_are_of_an_image_whose_groups_are_whole_blocks(
    shape: tuple[int, ...], moves: tuple[Reshape | Transpose, ...], groups: int | None
) -> None:
    builder = GraphBuilder()
    name = builder.input("x", TensorType(shape, "int8"))
    for number, move in enumerate(moves):
        name = builder.node(move, (name,), f"t{number}", "n")
    found = image_of_rows(builder, name)
    assert (found and found.groups) == groups
    if found:
        assert found.name == "x"
        assert tuple(node.operator for node in found.moves) == moves


@pytest.mark.parametrize(
    ("elements", "known"), [(1, 0), (2, 1), (MOST_ELEMENTS, 1), (MOST_ELEMENTS + 1, 0)]
)
def test_an_epsilon_is_known_for_as_many_elements_as_sums_hold(elements: int, known: int) -> None:
    assert (image_epsilon(0.0, 0.1, elements) is not None) == known
    if known:
        unit = NormSteps(elements).factor * elements
        assert image_epsilon(0.04, 0.2, elements) == unit
        assert image_epsilon(0.04 * (MOST_EPSILON + unit) / unit, 0.2, elements) is None


def test_rows_are_uniform_with_one_scale_above_0_and_no_bias() -> None:
    ones, none = np.ones(3, np.float32), np.zeros(3, np.float32)
    assert is_uniform(ones * 2, none)
    for place in range(3):
        other = none.copy()
        other[place] = 1
        assert not is_uniform(ones + other, none)
        assert not is_uniform(ones, other)
    assert not is_uniform(-ones, none)
    assert not is_uniform(none, none)
