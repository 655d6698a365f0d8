"""Instructions against plain loops over Python integers, and requantisation against exact
rounding.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.isa import semantics
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Finish, Fold, Gemm, Load, Multiplier, Store, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState

TINY = find_config("tiny")


def _state(seed: int, config: HardwareConfig = TINY) -> MachineState:
    rng = np.random.default_rng(seed)
    state = MachineState.zeros(config, rng.integers(0, 256, 1 << 12, dtype=np.uint8))
    for memory in Memory:
        shape = (config.depth(memory), config.word_bytes(memory))
        words = rng.integers(0, 256, shape, dtype=np.uint8)
        state.write_words(memory, np.arange(shape[0]), words)
    state.par.scale[:] = np.exp2(rng.uniform(-20, 0, state.par.scale.shape))
    state.par.bias[:] = rng.integers(-1000, 1000, state.par.bias.shape)
    return state


def _wrap(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _signed(value: int, bits: int) -> int:
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _nest(extent: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every index, level 0 fastest."""
    indices: list[tuple[int, ...]] = [()]
    for count in reversed(extent):
        indices = [(i, *rest) for rest in indices for i in range(count)]
    return sorted(indices, key=lambda index: tuple(reversed(index)))


def _at(base: int, index: tuple[int, ...], stride: tuple[int, ...], depth: int) -> int:
    return (base + sum(i * s for i, s in zip(index, stride, strict=True))) % depth


small = st.integers(-5, 5)
extents6 = st.tuples(*[st.integers(1, 3)] * 3, st.just(1), st.integers(1, 2), st.just(1))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1000),
    extents6,
    *[st.tuples(*[small] * 6)] * 3,
    st.integers(0, 63),
    st.booleans(),
    st.integers(-256, 255),
)
def test_gemm_is_its_loop(
    seed: int,
    extent: tuple[int, ...],
    act: tuple[int, ...],
    wgt: tuple[int, ...],
    acc: tuple[int, ...],
    reduction: int,
    accumulate: bool,
    offset: int,
) -> None:
    state = _state(seed)
    gemm = Gemm(
        act_address=3,
        wgt_address=120,
        acc_address=2,
        extent=extent,
        act_stride=act,
        wgt_stride=wgt,
        acc_stride=acc,
        reduction=reduction,
        accumulate=accumulate,
        weight_offset=offset,
    )
    expected = state.acc.astype(object)
    for index in _nest(extent):
        a = state.act[_at(3, index, act, TINY.act_depth)]
        w = state.wgt[_at(120, index, wgt, TINY.wgt_depth)]
        o = _at(2, index, acc, TINY.acc_depth)
        first = not accumulate and all(
            i == 0 for level, i in enumerate(index) if reduction >> level & 1
        )
        for lane in range(TINY.block):
            dot = sum((int(w[lane][k]) + offset) * int(a[k]) for k in range(TINY.block))
            expected[o][lane] = _wrap((0 if first else int(expected[o][lane])) + dot)
    semantics.gemm(state, gemm)
    np.testing.assert_array_equal(state.acc, expected.astype(np.int64))


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 1000), st.data())
def test_vector_is_its_loop(seed: int, data: st.DataObject) -> None:
    state = _state(seed)
    draw = data.draw
    destination = draw(st.sampled_from((Memory.ACT, Memory.ACC)))
    source = Memory.ACC if destination is Memory.ACT else Memory.ACT
    vector = Vector(
        source=source,
        destination=destination,
        source_address=draw(st.integers(0, 100)),
        destination_address=draw(st.integers(0, 100)),
        extent=draw(st.tuples(*[st.integers(1, 3)] * 5)),
        source_stride=draw(st.tuples(*[small] * 5)),
        destination_stride=draw(st.tuples(*[small] * 4)),
        reduction_levels=draw(st.integers(1, 5)),
        fold=draw(st.sampled_from(Fold)),
        multiplier=draw(st.sampled_from([m for m in Multiplier if m is not Multiplier.WINDOW])),
        finish=draw(st.sampled_from(Finish)),
        lookup=destination is Memory.ACT and draw(st.booleans()),
        zero_point=draw(st.integers(-20, 20)),
        low=draw(st.integers(-128, -50)),
        high=draw(st.integers(50, 127)),
        shift=draw(st.integers(0, 31)),
        m0=draw(st.integers(-(1 << 23), (1 << 23) - 1)),
        m1=draw(st.integers(-(1 << 23), (1 << 23) - 1)),
        par_stride=draw(st.tuples(*[small] * 4)),
        tap_stride=draw(st.tuples(*[small] * 5)),
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
    for high in _nest(outer):
        indices = [tuple(a + b for a, b in zip(high, low, strict=True)) for low in _nest(inner)]
        for lane in range(TINY.block):
            elements = [
                int(words[_at(vector.source_address, i, vector.source_stride, depth)][lane])
                for i in indices
            ]
            taps = [
                int(state.tap[_at(0, i, vector.tap_stride, TINY.tap_depth)][lane]) for i in indices
            ]
            value = _fold(vector, indices, elements, taps)
            par = _at(0, high[1:], vector.par_stride, TINY.par_depth)
            value = _finish(state, vector, value, par, lane)
            place = _at(
                vector.destination_address,
                high[1:],
                vector.destination_stride,
                TINY.depth(vector.destination),
            )
            results.append((place, lane, value))
    return results


def _fold(
    vector: Vector, indices: list[tuple[int, ...]], elements: list[int], taps: list[int]
) -> int:
    match vector.fold:
        case Fold.ADD:
            return _wrap(sum(elements))
        case Fold.SUB:
            return _wrap(elements[0] - sum(elements[1:]))
        case Fold.MAX:
            return max(elements)
        case Fold.MIN:
            return min(elements)
    total, before = 0, 0
    for index, element, tap in zip(indices, elements, taps, strict=True):
        match vector.multiplier:
            case Multiplier.TAP:
                factor = tap + _signed(vector.m0, 9)
            case Multiplier.IMMEDIATE:
                factor = vector.m0 if index[0] == 0 else vector.m1
            case Multiplier.PAIR:
                factor = _signed(before, 24) if index[0] % 2 else 0
        total += _signed(element, 16) * factor
        before = element
    return _wrap(total)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 1000), st.data())
def test_a_window_sums_three_columns(seed: int, data: st.DataObject) -> None:
    state, draw = _state(seed), data.draw
    levels = draw(st.integers(1, 5))
    vector = Vector(
        source=Memory.ACT,
        destination=Memory.ACC,
        source_address=draw(st.integers(0, 2000)),
        destination_address=draw(st.integers(0, 100)),
        extent=draw(st.tuples(*[st.integers(1, 4)] * 5)),
        source_stride=draw(st.tuples(*[small] * 5)),
        destination_stride=draw(st.tuples(*[small] * 4)),
        reduction_levels=levels,
        fold=Fold.MAC,
        multiplier=Multiplier.WINDOW,
        m0=draw(st.integers(-(1 << 23), (1 << 23) - 1)),
        tap_address=draw(st.integers(0, 63)),
        tap_stride=draw(st.tuples(*[small] * 5)),
        window_skip=draw(st.integers(0, 3)),
    )
    offset = _signed(vector.m0, 9)
    folded, group = vector.extent[1:levels], (*vector.extent, 1)[levels]
    expected = state.acc.copy()
    for lane in range(TINY.block):
        for outer in _nest(vector.extent[levels + 1 :]):
            columns: list[list[int]] = []
            for index in _nest((*folded, group)):
                tail = (*index, *outer)[:4]
                sums = [0, 0, 0]
                for first in range(vector.extent[0]):
                    place = (first, *tail)
                    word = _at(vector.source_address, place, vector.source_stride, TINY.act_depth)
                    element = int(state.act[word][lane])
                    tap = _at(vector.tap_address, place, vector.tap_stride, TINY.tap_depth) // 4 * 4
                    for j in range(3):
                        sums[j] += element * (int(state.tap[tap + j][lane]) + offset)
                columns.append(sums)
                if any(i + 1 < n for i, n in zip(index, folded, strict=False)):
                    continue
                number = len(columns) // max(1, int(np.prod(folded))) - 1
                if number < vector.window_skip:
                    continue
                parts = [columns[-1 - k][2 - k] for k in range(min(3, len(columns)))]
                still = (0,) * len(folded)
                target = _at(
                    vector.destination_address,
                    (*still, *tail[len(folded) :]),
                    vector.destination_stride,
                    TINY.acc_depth,
                )
                expected[target][lane] = _wrap(sum(parts))
    semantics.vector(state, vector)
    np.testing.assert_array_equal(state.acc, expected)


def _finish(state: MachineState, vector: Vector, value: int, par: int, lane: int) -> int:
    if vector.finish is Finish.REQUANTIZE:
        total = _wrap(value + int(state.par.bias[par][lane]))
        exact = _requantize(total, state.par.scale[par][lane])
        value = max(vector.low, min(vector.high, exact + vector.zero_point))
    elif vector.finish is Finish.SHIFT:
        value = _wrap((value + (1 << vector.shift) // 2) // (1 << vector.shift))
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
    got = semantics.requantize(
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
    got = semantics.requantize(
        np.array([value], np.int32),
        np.zeros(1, np.int32),
        np.array([scale], np.float32),
        0,
        -128,
        127,
    )
    assert got[0] == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(Memory), st.data())
def test_load_is_its_loop(seed: int, memory: Memory, data: st.DataObject) -> None:
    state = _state(seed)
    draw, size = data.draw, TINY.word_bytes(memory)
    load = Load(
        memory=memory,
        sram_address=draw(st.integers(0, 30)),
        dram_address=size * 4,
        count_x=draw(st.integers(0, 3)),
        count_y=draw(st.integers(0, 3)),
        count_z=draw(st.integers(1, 2)),
        dram_stride_y=size * draw(st.integers(0, 5)),
        dram_stride_z=size * draw(st.integers(0, 5)),
        sram_stride_y=8,
        sram_stride_z=64,
        pad_x_before=1,
        pad_x_after=draw(st.integers(0, 2)),
        pad_y_before=1,
        pad_y_after=draw(st.integers(0, 2)),
        pad_value=draw(st.integers(0, 127)),
    )
    expected = state.words(memory).copy()
    dram = state.dram
    for z in range(load.count_z):
        for row in range(load.rows):
            for column in range(load.columns):
                cell = (load.sram_address + z * 64 + row * 8 + column) % TINY.depth(memory)
                y, x = row - 1, column - 1
                if 0 <= y < load.count_y and 0 <= x < load.count_x:
                    start = load.dram_address + z * load.dram_stride_z
                    start += y * load.dram_stride_y + x * size
                    expected[cell] = dram[start : start + size]
                else:
                    expected[cell] = load.pad_value
    semantics.load(state, load)
    np.testing.assert_array_equal(state.words(memory), expected)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1000), st.data())
def test_a_load_with_a_step_takes_windows(seed: int, data: st.DataObject) -> None:
    state, draw = _state(seed), data.draw
    load = Load(
        memory=Memory.ACT,
        sram_address=draw(st.integers(0, 30)),
        dram_address=draw(st.integers(100, 200)),
        count_x=draw(st.integers(1, 5)),
        count_y=draw(st.integers(0, 3)),
        count_z=draw(st.integers(1, 2)),
        dram_stride_y=4 * draw(st.integers(-5, 5)),
        dram_stride_z=4 * draw(st.integers(-5, 5)),
        sram_stride_y=16,
        sram_stride_z=128,
        pad_y_before=1,
        pad_y_after=draw(st.integers(0, 2)),
        pad_value=draw(st.integers(-128, 127)),
        step=draw(st.integers(4, 11)),
        gap=draw(st.integers(0, 2)),
        row_first=draw(st.integers(0, 9)),
        row_end=draw(st.integers(0, 50)),
    )
    expected = state.act.copy()
    for z in range(load.count_z):
        for row in range(load.rows):
            for x in range(load.count_x):
                cell = load.sram_address + z * 128 + row * 16 + x * (1 + load.gap)
                for lane in range(TINY.block):
                    place = x * load.step + lane
                    value = load.pad_value
                    if 0 <= row - 1 < load.count_y and load.row_first <= place < load.row_end:
                        start = load.dram_address + z * load.dram_stride_z
                        value = _signed(
                            int(state.dram[start + (row - 1) * load.dram_stride_y + place]), 8
                        )
                    expected[cell][lane] = value
    semantics.load(state, load)
    np.testing.assert_array_equal(state.act, expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(-9, 9), st.integers(-9, 9))
def test_store_is_its_loop(seed: int, stride_y: int, stride_z: int) -> None:
    state = _state(seed)
    store = Store(
        dram_address=2048,
        sram_address=5,
        count_x=3,
        count_y=4,
        count_z=2,
        dram_stride_y=16,
        dram_stride_z=-128,
        sram_stride_y=stride_y,
        sram_stride_z=stride_z,
    )
    expected = state.dram.copy()
    for z in range(2):
        for y in range(4):
            for x in range(3):
                word = state.act[(5 + z * stride_z + y * stride_y + x) % TINY.act_depth]
                start = 2048 - z * 128 + y * 16 + x * 4
                expected[start : start + 4] = word.view(np.uint8)
    semantics.store(state, store)
    np.testing.assert_array_equal(state.dram, expected)
