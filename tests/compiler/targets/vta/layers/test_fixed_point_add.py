"""The fixed-point residual add on all 65,536 operand pairs."""

import tracemalloc
from math import frexp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.fixed_point import AddFixed
from dovetail.compiler.graph.operators.integer.values import Add, Lookup
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.layers.fixed_point_add import (
    ACCUMULATOR_LIMIT,
    MULTIPLIER_LIMIT,
    FixedPointAdd,
    find_fixed_point,
)
from dovetail.compiler.targets.vta.layers.scaled_forms import Ratios, scaled_forms

from .layers import Array, lower_graph, run_function, to_blocked

RATIOS = st.floats(2**-6, 8, width=32)
INT8 = st.integers(-128, 127)
A, B = (g.ravel().astype(np.int8) for g in np.mgrid[-128:128, -128:128])


def test_ratios_like_those_of_residual_networks_are_exact() -> None:
    adds = [
        Add(0.7364182, 0.9120533, -128, -3, -128, -128, 127),
        Add(1.1083726, 0.4471923, -128, 11, -128, -128, 127),
        Add(0.3390174, 0.8812655, 4, -128, -7, -128, 127),
    ]
    for add in adds:
        form = find_fixed_point(add)
        assert form.inexact_pairs == 0
        np.testing.assert_array_equal(_in_fixed_point(add, form), add.evaluate([A, B])[0])


@given(RATIOS, RATIOS, st.tuples(INT8, INT8, INT8), st.booleans())
@settings(max_examples=15, deadline=None)
def test_count_of_inexact_pairs_is_right(
    a_ratio: float, b_ratio: float, zero_points: tuple[int, int, int], unsigned: bool
) -> None:
    add = Add(a_ratio, b_ratio, *zero_points, -128, 127, unsigned)
    form = find_fixed_point(add)
    found, wanted = _in_fixed_point(add, form), add.evaluate([A, B])[0]
    assert np.count_nonzero(found != wanted) == form.inexact_pairs
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1


@given(RATIOS, RATIOS, st.tuples(INT8, INT8, INT8))
@settings(max_examples=15, deadline=None)
def test_nothing_overflows(a: float, b: float, zero_points: tuple[int, int, int]) -> None:
    form = find_fixed_point(Add(a, b, *zero_points, -128, 127))
    assert max(abs(form.m0), abs(form.m1)) <= MULTIPLIER_LIMIT
    assert abs(form.offset) <= ACCUMULATOR_LIMIT
    products = form.m0 * A.astype(np.int64) + form.m1 * B.astype(np.int64)
    assert np.abs(products).max() <= ACCUMULATOR_LIMIT
    assert np.abs(products + form.offset).max() <= ACCUMULATOR_LIMIT


@pytest.mark.parametrize("ratios", [(0.5, 0.5), (0.25, 0.5), (1.5, 0.5), (1.0, 0.125)])
@pytest.mark.parametrize("zero_points", [(0, 0, 1), (3, -5, 7), (-128, -128, -127), (1, 2, 4)])
def test_ties_round_as_the_float_formula_does(
    ratios: tuple[float, float], zero_points: tuple[int, int, int]
) -> None:
    """The float32 formula adds the zero point, which may be odd, before it rounds."""
    add = Add(*ratios, *zero_points, -128, 127)
    form = find_fixed_point(add)
    assert form.inexact_pairs == 0
    np.testing.assert_array_equal(_in_fixed_point(add, form), add.evaluate([A, B])[0])


@pytest.mark.parametrize(
    "add",
    [
        Add(0.8699654936790466, 0.5883678793907166, -12, -4, -1, -128, 127),
        Add(0.5722434520721436, 1.1577942371368408, -109, -86, -107, -128, 127),
        AddFixed(89, 1 << 30, -6, 35, 1 << 30, 0, 1 << 30, -18, 2, -128, 127),
    ],
)
def test_scales_that_are_no_powers_of_two_give_more_sums_exactly(add: Add | AddFixed) -> None:
    form = find_fixed_point(add)
    assert frexp(form.scale)[0] != 0.5
    assert form.inexact_pairs == 0
    np.testing.assert_array_equal(_in_fixed_point(add, form), add.evaluate([A, B])[0])


def test_of_many_sums_half_way_some_are_looked_at() -> None:
    """10,000 pairs times 500 forms, 120 times: 25 s, if all were."""
    sums = Ratios(1 / 6, 1 / 6, -16, 16, -6, -128, 127)
    wanted = np.clip(np.rint(sums.exact(A.astype(int), B.astype(int))), -128, 127).astype(np.int8)
    tracemalloc.start()
    next(scaled_forms(sums, wanted.reshape(256, 256), 1e7))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60 << 20


def test_equal_sums_are_tried_with_equal_forms() -> None:
    """Other numbers of forms would give other programs; any good ones will do."""
    sums = Ratios(0.87, 0.588, -12, -4, -1, -3, 4)
    a, b = A.astype(int).reshape(256, 256), B.astype(int).reshape(256, 256)
    wanted = np.clip(np.rint(sums.exact(a, b)), -3, 4).astype(np.int8)
    forms = list(scaled_forms(sums, wanted, 1e7))
    assert len(forms) == 120
    found = [(form.m0, form.m1, form.offset) for form in (forms[0], forms[-1])]
    assert found == [(7767690, 5249887, 105283448), (3507732, 2370743, 47543880)]
    wide = Ratios(1 / 6, 1 / 6, -16, 16, -6, -128, 127)
    wanted = np.clip(np.rint(wide.exact(a, b)), -128, 127).astype(np.int8)
    assert next(scaled_forms(wide, wanted, 1e7))[:3] == (405350, 405350, -14592600)
    falling = sums._replace(a_ratio=-0.87)
    assert not list(scaled_forms(falling, wanted, 1e7))


@pytest.mark.parametrize(
    "add",
    [
        Add(0.7364182, 0.9120533, -128, -3, -128, -128, 127),
        Add(0.5, 0.5, 0, 0, 1, -20, 100),
    ],
)
def test_the_layers_kernel_gives_that_many_wrong_pairs(add: Add) -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 256, 256, 1), "int8"))
    table = builder.constant("t", np.roll(np.arange(-128, 128), 5).astype(np.int8))
    other = builder.node(Lookup(), (x, table), "other", "lookup")
    y = builder.node(add, (x, other), "y", "add")
    network = lower_graph(builder.build((y,)), 1, 0)
    layer = network.layers[1]
    arrays = network.arrays(layer)
    for activation, values in zip(layer.inputs, (A, B), strict=True):
        arrays[activation.name] = to_blocked(values, activation)
    found = run_function(layer.function, arrays, layer.output).ravel()
    assert np.count_nonzero(found != add.evaluate([A, B])[0]) == layer.inexact_pairs


def test_ratios_beyond_the_multipliers_are_refused() -> None:
    with pytest.raises(UnsupportedOperatorError, match="ratios of the scales need more than 24"):
        find_fixed_point(Add(1e8, 1, 0, 0, 0, -128, 127))


def _in_fixed_point(add: Add | AddFixed, form: FixedPointAdd) -> Array:
    """Results of the vector unit for all pairs: int32, then float32, each step rounded."""
    total = form.m0 * A.astype(np.int64) + form.m1 * B.astype(np.int64) + form.offset
    scaled = total.astype(np.int32).astype(np.float32) * np.float32(form.scale)
    return np.clip(np.rint(scaled) + form.zero_point, add.low, add.high).astype(np.int8)
