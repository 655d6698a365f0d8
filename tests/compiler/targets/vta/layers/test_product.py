"""The scale of a product of tensors on all 65,536 operand pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.values import Lookup, Multiply
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.layers.fixed_point_product import FoundScale, find_scale
from dovetail.isa.requantize import requantize

from .layers import Array, lower_graph, run_function, to_blocked

INT8 = st.integers(-128, 127)
A, B = (g.ravel().astype(np.int8) for g in np.mgrid[-128:128, -128:128])


@pytest.mark.parametrize("unsigned", [False, True])
def test_scales_like_those_of_networks_are_exact(unsigned: bool) -> None:
    for ratio, zero_points in (
        (0.0391732, (-128, -128, -128)),
        (0.0039381, (11, -128, 5)),
        (0.0152817, (-3, 4, -71)),
    ):
        multiply = Multiply(ratio, *zero_points, -128, 127, unsigned)
        form = find_scale(multiply)
        assert form.inexact_pairs == 0
        np.testing.assert_array_equal(_in_hardware(multiply, form), multiply.evaluate([A, B])[0])


@pytest.mark.parametrize("ratio", [2.0**-6, 2.0**-9, 3 * 2.0**-9])
@pytest.mark.parametrize("zero_point", [0, 1, 7, -127])
def test_ties_round_as_the_float_formula_does(ratio: float, zero_point: int) -> None:
    """The float32 formula adds the zero point, which may be odd, before it rounds."""
    multiply = Multiply(ratio, -100, -128, zero_point, -128, 127)
    form = find_scale(multiply)
    assert form.inexact_pairs == 0
    np.testing.assert_array_equal(_in_hardware(multiply, form), multiply.evaluate([A, B])[0])


@given(st.floats(2**-12, 1, width=32), st.tuples(INT8, INT8, INT8), st.booleans())
@settings(max_examples=15, deadline=None)
def test_count_of_inexact_pairs_is_right(
    ratio: float, zero_points: tuple[int, int, int], unsigned: bool
) -> None:
    multiply = Multiply(ratio, *zero_points, -100, 127, unsigned)
    form = find_scale(multiply)
    found, wanted = _in_hardware(multiply, form), multiply.evaluate([A, B])[0]
    assert np.count_nonzero(found != wanted) == form.inexact_pairs
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1


# Scales whose quotient is nearly 6 / 7: many products are a rounding away from a tie.
@pytest.mark.parametrize("ratio", [0.0391732, 0.06 / 256 / 0.07])
def test_the_layers_kernel_gives_that_many_wrong_pairs(ratio: float) -> None:
    multiply = Multiply(float(np.float32(ratio)), 3, -128, -11, -128, 127)
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 256, 256, 1), "int8"))
    table = builder.constant("t", np.roll(np.arange(-128, 128), 5).astype(np.int8))
    other = builder.node(Lookup(), (x, table), "other", "lookup")
    y = builder.node(multiply, (x, other), "y", "multiply")
    network = lower_graph(builder.build((y,)), 1, 0)
    layer = network.layers[1]
    arrays = network.arrays(layer)
    for activation, values in zip(layer.inputs, (A, B), strict=True):
        arrays[activation.name] = to_blocked(values, activation)
    found = run_function(layer.function, arrays, layer.output).ravel()
    assert np.count_nonzero(found != multiply.evaluate([A, B])[0]) == layer.inexact_pairs


def _in_hardware(multiply: Multiply, form: FoundScale) -> Array:
    """Results of the vector unit for all pairs."""
    left = A.astype(np.int32) - multiply.a_zero_point
    products = left * (B.astype(np.int32) - multiply.b_zero_point)
    limits = form.zero_point, multiply.low, multiply.high
    return requantize(products, np.full_like(products, form.bias), form.scale, *limits)
