"""Parameters of rows: what VECTOR makes of all lanes of a word, beside NumPy's float32."""

import numpy as np

from dovetail.isa import semantics
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Fold, Row, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.rows import quotient
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
    semantics.execute(state, _rows(Row.LARGEST, Fold.MAX))
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
