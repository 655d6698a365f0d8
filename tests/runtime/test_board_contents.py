"""A host's memory of a board's contents."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.isa.link import GRAIN
from dovetail.runtime.board.contents import Contents

SIZE = 512


@given(
    st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(1, 80)), max_size=8),
    st.integers(0, 1 << 30),
)
def test_what_is_missing_makes_the_board_hold_what_is_wanted(
    changes: list[tuple[int, int]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    board = rng.integers(0, 256, SIZE, dtype=np.uint8)
    contents, wanted = Contents(), np.zeros(SIZE, np.uint8)
    for start, size in [(0, SIZE), *changes]:
        end = min(start + size, SIZE)
        if rng.integers(2):
            # A program writes there.
            board[start:end] = rng.integers(0, 256, end - start)
            contents.forget_range(start, end)
        else:
            wanted = wanted.copy()
            wanted[start:end] = rng.integers(0, 256, end - start)
        for first, last in contents.missing(wanted):
            assert first % GRAIN == last % GRAIN == 0
            board[first:last] = wanted[first:last]
            contents.sent(first, wanted[first:last])
        assert (board == wanted).all()
        assert contents.missing(wanted) == []


def test_everything_is_missing_after_a_reset() -> None:
    contents = Contents()
    contents.sent(0, np.zeros(64, np.uint8))
    contents.forget()
    assert contents.missing(np.zeros(64, np.uint8)) == [(0, 64)]


def test_far_changes_are_sent_apart_and_near_ones_together() -> None:
    contents = Contents()
    contents.sent(0, np.zeros(SIZE, np.uint8))
    wanted = np.zeros(SIZE, np.uint8)
    wanted[[3, 40, 400]] = 1
    assert contents.missing(wanted) == [(0, 48), (400, 408)]
