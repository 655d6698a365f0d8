"""Normalisations of whole images on the accelerator: the operator's bytes and cycles."""

import re

import numpy as np
import pytest

from dovetail.compiler.errors import TranslationError
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.tensor_norm import NormSteps, TensorNorm
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.targets.vta.capabilities import node_refusals
from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.compiler.targets.vta.layers.tensor_norm import lower_tensor_norm
from dovetail.compiler.targets.vta.passes.rows_to_pixels import ROWS_TO_PIXELS
from dovetail.compiler.translation.validate import validate
from dovetail.isa.frozen import replace
from dovetail.isa.instructions import Row, Vector
from dovetail.runtime.accelerator.part import AcceleratorPart

from .test_parts import assert_exact, compiled


def _graph(shape: tuple[int, ...], epsilon: int = 77) -> Graph:
    builder, elements = GraphBuilder(), int(np.prod(shape[1:]))
    scale = float(np.sqrt(NormSteps(elements).factor / elements) / 0.04 / 2**19)
    x = builder.input("x", TensorType(shape, "int8"))
    return builder.build((builder.node(TensorNorm(epsilon, -5, scale), (x,), "y", "norm"),))


@pytest.fixture(scope="module")
def small() -> tuple[Graph, AcceleratorPart]:
    graph = _graph((1, 3, 5, 8))
    return graph, compiled(graph, "tiny")


def test_a_normalised_image_has_the_operators_bytes(small: tuple[Graph, AcceleratorPart]) -> None:
    assert_exact(*small, "sim")


def test_the_program_computes_it_for_every_image(small: tuple[Graph, AcceleratorPart]) -> None:
    graph, part = small
    assert validate(graph, part).elements == 3 * 5 * 8


def test_no_fault_of_its_instructions_is_missed(small: tuple[Graph, AcceleratorPart]) -> None:
    graph, part = small
    found = 0
    for index, each in enumerate(part.program):
        if not isinstance(each, Vector) or each.row is Row.LESS:
            continue
        fault = replace(each, par_address=each.par_address + 1)
        program = (*part.program[:index], fault, *part.program[index + 1 :])
        with pytest.raises(TranslationError, match=r"'y': .* another function"):
            validate(graph, part, program)
        found += 1
    assert found == 9


@pytest.mark.parametrize("spread", [0, 1, 60, 400])
def test_the_loop_program_is_the_operator(spread: int) -> None:
    """An image of one byte, of two, of many, and of the first and the last."""
    (norm,) = _graph((1, 2, 3, 8)).nodes
    x, y = (Activation(name, 8, 2, 3, 4) for name in "xy")
    assert isinstance(norm.operator, TensorNorm)
    layer = lower_tensor_norm("norm", norm.operator, x, y)
    rng = np.random.default_rng(spread)
    image = np.clip(rng.normal(40, spread, (1, 2, 3, 8)), -128, 127).astype(np.int8)
    blocked = image.reshape(2, 3, 2, 4).transpose(2, 0, 1, 3)
    found = interpret(layer.function, {**layer.constants, "x": blocked}, seed=1)["y"]
    (wanted,) = norm.operator.evaluate([image])
    np.testing.assert_array_equal(found.transpose(1, 2, 0, 3).reshape(wanted.shape), wanted)


def test_rows_of_any_shape_become_pixels() -> None:
    graph = ROWS_TO_PIXELS.run(_graph((1, 6, 8)))
    kinds = [type(node.operator).__name__ for node in graph.nodes]
    assert kinds == ["Reshape", "TensorNorm", "Reshape"]
    several = _graph((2, 6, 8))
    assert ROWS_TO_PIXELS.run(several) is several


@pytest.mark.parametrize(
    ("shape", "words", "act", "problem"),
    [
        ((1, 6, 6, 16), 32, 128, None),
        ((1, 6, 6, 16), 0, 128, "no row_parameters, which normalisations need"),
        ((1, 6, 6, 16), 24, 128, "par scratchpad: 12 words required .*, 11 available"),
        ((1, 6, 6, 12), 32, 128, "an image of 12 channels; required whole blocks of 16"),
        ((1, 6, 6, 16), 32, 127, "act scratchpad: 128 words required .*, 127 available"),
    ],
)
def test_what_the_accelerator_cannot_normalise(
    shape: tuple[int, ...], words: int, act: int, problem: str | None
) -> None:
    graph = _graph(shape)
    found = node_refusals(graph, 16, True, words, (act, 64, 64))
    assert bool(found) == bool(problem)
    assert problem is None or re.search(problem, found[0].reason)
