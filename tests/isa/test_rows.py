"""Parameters of rows: what VECTOR makes of all lanes of a word, beside NumPy's float32."""

from dataclasses import replace

import numpy as np

from dovetail.isa import semantics
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Finish, Fold, Multiplier, Rounding, Row, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.rows import inverse_root, over_root, quotient
from dovetail.isa.state import MachineState

TINY = find_config("tiny")
SMALLEST = np.float32(2.0**-126)


def test_a_quotient_is_that_of_float32() -> None:
    rng = np.random.default_rng(1)
    count = 200_000
    scale = rng.integers(1 << 23, 255 << 23, count).astype(np.uint32).view(np.float32)
    total = np.maximum(rng.integers(1, 1 << 31, count) >> rng.integers(0, 31, count), 1)
    wanted = scale / total.astype(np.int32).astype(np.float32)
    wanted[wanted < SMALLEST] = 0
    np.testing.assert_array_equal(quotient(scale, total.astype(np.int32)), wanted)


def test_no_scale_is_subnormal_nor_negative() -> None:
    scale = np.array([1e-45, -2.0, -0.0, SMALLEST], np.float32)
    found = quotient(scale, np.array([1, 4, 1, 2], np.int32))
    np.testing.assert_array_equal(found, np.array([0, 0.5, 0, 0], np.float32))


def test_an_inverse_root_of_every_mantissa_is_near() -> None:
    fractions = np.arange(1 << 19, dtype=np.int64)
    for exponent in (30, 29):
        total = ((1 << 30) + (fractions << 11) >> 30 - exponent).astype(np.int32)
        root, halved = inverse_root(total)
        assert root.min() >= 1 << 16
        assert root.max() < 1 << 17
        wrong = root * 2.0 ** (-17 - halved) * np.sqrt(total) - 1
        assert np.abs(wrong).max() < 2**-16.3


def test_a_scale_over_a_root_is_near_and_stays_finite() -> None:
    rng = np.random.default_rng(3)
    count = 100_000
    values = (rng.integers(1, 1 << 31, (count, 1)) >> rng.integers(0, 31, (count, 1))).astype(
        np.int32
    )
    total = np.maximum(values[:, 0], 1).astype(np.float64)
    scale = np.exp2(rng.uniform(-60, 60, count)).astype(np.float32)
    found = over_root(values, np.zeros(count, np.int32), scale, 19)
    np.testing.assert_allclose(found, scale * 2.0**19 / np.sqrt(total), rtol=2**-16.2)
    large, small = np.array([3e38], np.float32), np.array([SMALLEST])
    one, none = np.ones((1, 1), np.int32), np.zeros(1, np.int32)
    assert over_root(one, none, large, 31)[0] < np.inf
    assert over_root(5 * one, none, small, 0)[0] == 0


def _state() -> MachineState:
    state = MachineState.zeros(TINY, np.zeros(0, np.uint8))
    rng = np.random.default_rng(2)
    state.act[:] = rng.integers(-128, 128, state.act.shape)
    state.par.bias[:] = rng.integers(-50, 50, state.par.bias.shape)
    state.par.scale[:] = 100
    return state


def _rows(row: Row, fold: Fold) -> Vector:
    """Three words for each of five rows."""
    return Vector(
        source=Memory.ACT,
        destination=Memory.ACT,
        source_address=40,
        destination_address=30,
        extent=(3, 5, 1, 1, 1),
        source_stride=(7, 1, 0, 0, 0),
        destination_stride=(1, 0, 0, 0),
        fold=fold,
        row=row,
        m1=1000,
        par_address=7,
    )


def test_the_largest_of_a_row_is_taken_from_its_bias() -> None:
    state = _state()
    semantics.execute(state, _rows(Row.LESS, Fold.MAX))
    for row in range(5):
        most = state.act[[40 + row, 47 + row, 54 + row]].max()
        word = (30 + row) % TINY.par_depth
        assert set(state.par.bias[word]) == {1000 - int(most)}
        assert set(state.par.scale[word]) == {1.0}


def test_a_scale_is_divided_by_the_sum_of_a_row() -> None:
    state = _state()
    start = state.par.bias[7, 0]
    semantics.execute(state, _rows(Row.OVER, Fold.ADD))
    for row in range(5):
        total = int(state.act[[40 + row, 47 + row, 54 + row]].astype(int).sum() + start)
        word = (30 + row) % TINY.par_depth
        assert set(state.par.bias[word]) == {1000}
        assert set(state.par.scale[word]) == {np.float32(100) / np.float32(max(total, 1))}


def test_squares_of_a_row_take_one_offset_beside_the_rows_own_number() -> None:
    state = _state()
    pairs = replace(
        _rows(Row.LESS, Fold.MAC),
        multiplier=Multiplier.PAIR,
        extent=(2, 3, 5, 1, 1),
        source_stride=(0, 7, 1, 0, 0),
        tap_stride=(0, 7, 1, 0, 0),
        destination_stride=(0, 1, 0, 0),
        reduction_levels=2,
        m0=-5,
    )
    semantics.execute(state, pairs)
    for row in range(5):
        found = state.act[[40 + row, 47 + row, 54 + row]].astype(int) - 5
        assert set(state.par.bias[(30 + row) % TINY.par_depth]) == {1000 - (found**2).sum()}


def test_wide_results_are_beyond_int8() -> None:
    state = _state()
    state.act[:4, 0] = (-128, -1, 3, 127)
    state.par.bias[:] = 0
    state.par.scale[:] = 4500.5
    wide = replace(
        _rows(Row.NONE, Fold.ADD),
        extent=(1, 4, 1, 1, 1),
        source_address=0,
        source_stride=(0, 1, 0, 0, 0),
        zero_point=5,
        finish=Finish.REQUANTIZE,
        destination=Memory.ACC,
        rounding=Rounding.WIDE,
    )
    semantics.execute(state, wide)
    assert list(state.acc[30:34, 0]) == [5 - (1 << 19), 5 - 4500, 5 + 13502, 5 + (1 << 19)]


def test_the_sum_of_a_row_is_taken_from_its_bias() -> None:
    state = _state()
    semantics.execute(state, _rows(Row.LESS, Fold.ADD))
    for row in range(5):
        total = int(state.act[[40 + row, 47 + row, 54 + row]].astype(int).sum())
        word = (30 + row) % TINY.par_depth
        assert set(state.par.bias[word]) == {1000 - total}
        assert set(state.par.scale[word]) == {100.0}


def test_a_scale_is_divided_by_the_root_of_a_row_and_its_bias_stays() -> None:
    state = _state()
    bias = state.par.bias[7, 0]
    semantics.execute(state, replace(_rows(Row.ROOT, Fold.ADD), shift=3))
    for row in range(5):
        total = int(state.act[[40 + row, 47 + row, 54 + row]].astype(int).sum()) + 1000
        word = (30 + row) % TINY.par_depth
        assert set(state.par.bias[word]) == {bias}
        np.testing.assert_allclose(state.par.scale[word], 800 / np.sqrt(max(total, 1)), rtol=2e-5)
