"""VECTOR against plain loops over Python integers, and requantisation against exact rounding."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.isa import semantics
from dovetail.isa.instructions import Finish, Fold, Multiplier, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.requantize import fixed_parameters, requantize, requantize_fixed
from dovetail.isa.state import MachineState

from .fixed_point import any_parameters, multiply_by_quantized_multiplier
from .loops import TINY, at, nest, random_state, signed, steps, wrap


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 1000), st.data())
def test_vector_is_its_loop(seed: int, data: st.DataObject) -> None:
    state = random_state(seed)
    draw = data.draw
    destination = draw(st.sampled_from((Memory.ACT, Memory.ACC)))
    source = Memory.ACC if destination is Memory.ACT else Memory.ACT
    vector = Vector(
        source=source,
        destination=destination,
        source_address=draw(st.integers(0, 100)),
        destination_address=draw(st.integers(0, 100)),
        extent=draw(st.tuples(*[st.integers(1, 3)] * 5)),
        source_stride=draw(st.tuples(*[steps] * 5)),
        destination_stride=draw(st.tuples(*[steps] * 4)),
        reduction_levels=draw(st.integers(1, 5)),
        fold=draw(st.sampled_from(Fold)),
        multiplier=draw(st.sampled_from([m for m in Multiplier if m is not Multiplier.WINDOW])),
        finish=draw(st.sampled_from(tuple(Finish)[: Finish.CUSTOM])),
        lookup=destination is Memory.ACT and draw(st.booleans()),
        zero_point=draw(st.integers(-20, 20)),
        low=draw(st.integers(-128, -50)),
        high=draw(st.integers(50, 127)),
        shift=draw(st.integers(0, 31)),
        m0=draw(st.integers(-(1 << 23), (1 << 23) - 1)),
        m1=draw(st.integers(-(1 << 23), (1 << 23) - 1)),
        par_stride=draw(st.tuples(*[steps] * 4)),
        tap_stride=draw(st.tuples(*[steps] * 5)),
        tab_address=256,
    )
    expected = state.words(destination).copy()
    target = expected.view(np.int32) if destination is Memory.ACC else expected.view(np.int8)
    for place, lane, value in _vector_results(state, vector):
        target[place][lane] = value
    semantics.vector(state, vector)
    np.testing.assert_array_equal(state.words(destination), expected)


def _vector_results(state: MachineState, vector: Vector) -> list[tuple[int, int, int]]:
    """(word, lane, value) of each result, in order."""
    levels = vector.reduction_levels
    inner = (*vector.extent[:levels], *[1] * (5 - levels))
    outer = (*[1] * levels, *vector.extent[levels:])
    words = state.act if vector.source is Memory.ACT else state.acc
    depth = TINY.depth(vector.source)
    results = []
    for high in nest(outer):
        indices = [tuple(a + b for a, b in zip(high, low, strict=True)) for low in nest(inner)]
        for lane in range(TINY.block):
            elements = [int(words[_element(vector, i, depth)][lane]) for i in indices]
            taps = [
                int(state.tap[at(0, i, vector.tap_stride, TINY.tap_depth)][lane]) for i in indices
            ]
            value = _fold(vector, indices, elements, taps)
            par = at(0, high[1:], vector.par_stride, TINY.par_depth)
            value = _finish(state, vector, value, par, lane)
            place = at(
                vector.destination_address,
                high[1:],
                vector.destination_stride,
                TINY.depth(vector.destination),
            )
            results.append((place, lane, value))
    return results


def _element(vector: Vector, index: tuple[int, ...], depth: int) -> int:
    """Word of the element at ``index``."""
    pair = vector.fold is Fold.MAC and vector.multiplier is Multiplier.PAIR
    if pair and index[0] % 2:
        second = vector.source_address + vector.source_stride[0]
        return at(second, index, vector.tap_stride, depth)
    return at(vector.source_address, index, vector.source_stride, depth)


def _fold(
    vector: Vector, indices: list[tuple[int, ...]], elements: list[int], taps: list[int]
) -> int:
    match vector.fold:
        case Fold.ADD:
            return wrap(sum(elements))
        case Fold.SUB:
            return wrap(elements[0] - sum(elements[1:]))
        case Fold.MAX:
            return max(elements)
        case Fold.MIN:
            return min(elements)
    total, before = 0, 0
    for index, element, tap in zip(indices, elements, taps, strict=True):
        match vector.multiplier:
            case Multiplier.TAP:
                factor = tap + signed(vector.m0, 9)
                element += 0 if vector.row else signed(vector.m1, 9)
            case Multiplier.IMMEDIATE:
                factor = vector.m0 if index[0] == 0 else vector.m1
            case Multiplier.PAIR:
                element += signed(vector.m1 if index[0] % 2 else vector.m0, 9)
                factor = signed(before, 24) if index[0] % 2 else 0
        total += signed(element, 16) * factor
        before = element
    return wrap(total)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 1000), st.data())
def test_a_window_sums_three_columns(seed: int, data: st.DataObject) -> None:
    state, draw = random_state(seed), data.draw
    levels = draw(st.integers(1, 5))
    vector = Vector(
        source=Memory.ACT,
        destination=Memory.ACC,
        source_address=draw(st.integers(0, 2000)),
        destination_address=draw(st.integers(0, 100)),
        extent=draw(st.tuples(*[st.integers(1, 4)] * 5)),
        source_stride=draw(st.tuples(*[steps] * 5)),
        destination_stride=draw(st.tuples(*[steps] * 4)),
        reduction_levels=levels,
        fold=Fold.MAC,
        multiplier=Multiplier.WINDOW,
        m0=draw(st.integers(-(1 << 23), (1 << 23) - 1)),
        tap_address=draw(st.integers(0, 63)),
        tap_stride=draw(st.tuples(*[steps] * 5)),
        window_skip=draw(st.integers(0, 3)),
        wide_window=draw(st.booleans()),
    )
    offset = signed(vector.m0, 9)
    # Levels of a column.
    inner = 2 if vector.wide_window and levels > 1 else 1
    folded, group = vector.extent[inner:levels], (*vector.extent, 1)[levels]
    expected = state.acc.copy()
    for lane in range(TINY.block):
        for outer in nest(vector.extent[levels + 1 :]):
            columns: list[list[int]] = []
            for index in nest((*folded, group)):
                tail = (*index, *outer)[: 5 - inner]
                sums = [0, 0, 0]
                for first in nest(vector.extent[:inner]):
                    place = (*first, *tail)
                    word = at(vector.source_address, place, vector.source_stride, TINY.act_depth)
                    element = int(state.act[word][lane])
                    tap = at(vector.tap_address, place, vector.tap_stride, TINY.tap_depth) // 4 * 4
                    for j in range(3):
                        sums[j] += element * (int(state.tap[tap + j][lane]) + offset)
                columns.append(sums)
                if any(i + 1 < n for i, n in zip(index, folded, strict=False)):
                    continue
                number = len(columns) // max(1, int(np.prod(folded))) - 1
                if number < vector.window_skip:
                    continue
                parts = [columns[-1 - k][2 - k] for k in range(min(3, len(columns)))]
                still = (0,) * (levels - 1)
                target = at(
                    vector.destination_address,
                    (*still, *tail[len(folded) :]),
                    vector.destination_stride,
                    TINY.acc_depth,
                )
                expected[target][lane] = wrap(sum(parts))
    semantics.vector(state, vector)
    np.testing.assert_array_equal(state.acc, expected)


def _finish(state: MachineState, vector: Vector, value: int, par: int, lane: int) -> int:
    if vector.finish is Finish.REQUANTIZE:
        total = wrap(value + int(state.par.bias[par][lane]))
        exact = _requantize(total, state.par.scale[par][lane])
        value = max(vector.low, min(vector.high, exact + vector.zero_point))
    elif vector.finish is Finish.SHIFT:
        value = wrap((value + (1 << vector.shift) // 2) // (1 << vector.shift))
    if vector.destination is Memory.ACT:
        value = max(vector.low, min(vector.high, value))
        if vector.lookup:
            value = int(state.tab[256 + 128 + value][lane])
    return value


def _to_24_bits(value: Fraction) -> Fraction:
    """``value`` rounded to 24 significant bits, half to even (no limits of the exponent)."""
    if value == 0:
        return value
    unit = Fraction(1)
    while abs(value) / unit >= 1 << 24:
        unit *= 2
    while abs(value) / unit < 1 << 23:
        unit /= 2
    return round(value / unit) * unit


def _requantize(total: int, scale: np.float32) -> int:
    """Rounded thrice, with exact fractions; Python rounds half to even."""
    return round(_to_24_bits(_to_24_bits(Fraction(total)) * Fraction(float(scale))))


INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


SENSIBLE = st.floats(2.0**-40, 2.0**8, width=32)


ANY_SCALE = st.floats(0.0, 3.4028234663852886e38, width=32)
"""Every scale with a meaning: zero, subnormal, up to the largest."""


@settings(max_examples=500, deadline=None)
@given(INT32, INT32, st.one_of(SENSIBLE, ANY_SCALE), st.data())
def test_requantisation_rounds_three_times_half_to_even(
    value: int, bias: int, scale: float, data: st.DataObject
) -> None:
    zero_point = data.draw(st.integers(-128, 127))
    low, high = sorted(data.draw(st.tuples(*[st.integers(-128, 127)] * 2)))
    total = (value + bias + (1 << 31)) % (1 << 32) - (1 << 31)
    got = requantize(
        np.array([value], np.int32),
        np.array([bias], np.int32),
        np.array([scale], np.float32),
        zero_point,
        low,
        high,
    )
    expected = max(low, min(high, _requantize(total, np.float32(scale)) + zero_point))
    assert got[0] == expected


@pytest.mark.parametrize(
    ("value", "scale", "expected"), [(1, 0.5, 0), (3, 0.5, 2), (5, 0.5, 2), (-3, 0.5, -2)]
)
def test_a_tie_goes_to_the_even_number(value: int, scale: float, expected: int) -> None:
    got = requantize(
        np.array([value], np.int32),
        np.zeros(1, np.int32),
        np.array([scale], np.float32),
        0,
        -128,
        127,
    )
    assert got[0] == expected


@pytest.mark.parametrize("zero_point", [0, -128, 127])
def test_fixed_point_is_that_of_tensorflow_lite(zero_point: int) -> None:
    rng = np.random.default_rng(zero_point + 128)
    x, multiplier, shift = any_parameters(rng, 200_000)
    bias = rng.integers(-(1 << 26), 1 << 26, len(x))
    words = fixed_parameters(bias, multiplier, shift)
    got = requantize_fixed((x - bias).astype(np.int32), *words, zero_point, -100, 90)
    exact = multiply_by_quantized_multiplier(x, multiplier, shift)
    np.testing.assert_array_equal(got, np.clip(exact + zero_point, -100, 90))


def test_fixed_point_rounds_ties_up_and_then_away_from_zero() -> None:
    x = np.array([1, -1, 3, -3, 2, -2, 6, -6], np.int32)
    half = np.full(8, 1 << 30)
    words = fixed_parameters(np.zeros(8, np.int64), half, np.array([0, 0, 0, 0, -1, -1, -1, -1]))
    got = requantize_fixed(x, *words, 0, -128, 127)
    assert got.tolist() == [1, 0, 2, -1, 1, -1, 2, -2]


@pytest.mark.parametrize("shift", range(-14, 8))
def test_fixed_point_clips_what_is_larger_than_it_holds(shift: int) -> None:
    """From 2^24 on, a normal multiplier gives 256 and more: the sum's size no longer matters."""
    x = np.array([1 << 24, (1 << 24) + 12345, (1 << 31) - 1], np.int32)
    x = np.concatenate([x, -x])
    words = fixed_parameters(np.zeros(6, np.int64), np.full(6, 1 << 30), np.full(6, shift))
    got = requantize_fixed(x, *words, -128, -128, 127)
    assert got.tolist() == [127] * 3 + [-128] * 3
