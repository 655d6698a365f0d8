"""When the first column of a burst comes, by the rules of docs/timing.md."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dovetail.vta_sim.port import _accept
from dovetail.vta_sim.sdram import CLOSED, sdram_burst

ROW, BANKS = 1024, 4
READ, WRITE = 0, 1


def chip(refresh: int = 10_000) -> Any:
    """All banks closed; the first refresh is done."""
    return cast(
        Any,
        SimpleNamespace(
            rcd=3,
            rp=4,
            ras=9,
            rfc=20,
            wr=5,
            cas=2,
            refresh=refresh,
            row_bytes=ROW,
            banks=BANKS,
            step=2,
            lag=0,
            present=1,
            rows=np.full(BANKS, CLOSED),
            closes=np.zeros(BANKS, np.int64),
            now=0,
            refreshes=1,
            clear=0,
            last=-1,
            last_writes=READ,
        ),
    )


ACTIVE = 2
"""Cycles that a row takes to open: rcd - 1."""


@pytest.mark.parametrize(
    ("address", "waits"),
    [
        (0, 0),
        (ROW - 2, 0),
        (ROW, ACTIVE),
        (3 * ROW + 6, ACTIVE),
        (BANKS * ROW, 4 + ACTIVE),
        (7 * BANKS * ROW + 12, 4 + ACTIVE),
    ],
)
def test_a_burst_waits_for_its_row(address: int, waits: int) -> None:
    """The first opens row 0 of bank 0, of four; the next is seen long after."""
    sdram = chip()
    assert sdram_burst(sdram, 10, 0, 8, READ) == 11 + ACTIVE + 1
    assert sdram_burst(sdram, 100, address, 8, READ) == 101 + waits + 1


def test_bursts_of_a_row_follow_without_a_gap_in_one_direction() -> None:
    sdram = chip()
    first = sdram_burst(sdram, 10, 0, 8, READ)
    assert sdram_burst(sdram, 11, 64, 8, READ) == first + 8
    last = first + 15
    # A write is decided cas cycles after the last column of a read, and its columns come next.
    assert sdram_burst(sdram, 12, 128, 8, WRITE) == last + 2 + 1
    assert sdram_burst(sdram, 13, 192, 8, WRITE) == last + 2 + 1 + 8


@pytest.mark.parametrize(
    ("after", "refresh", "waits"),
    [(0, 10_000, 1), (1, 10_000, 2), (0, 200, 5 + 4 + 20 + ACTIVE + 1), (0, 201, 1)],
    ids=["seen by the last column", "seen after it", "a refresh is due", "one is due next"],
)
def test_a_burst_follows_if_it_is_seen_by_the_last_column(
    after: int, refresh: int, waits: int
) -> None:
    """The first write has its last column in cycle 201; a row stays open for 5 cycles after one."""
    sdram = chip(refresh)
    last = sdram_burst(sdram, 190, 2 * ROW, 8, WRITE) + 7
    first = sdram_burst(sdram, last - 1 + after, 2 * ROW + 64, 8, WRITE)
    assert (last, first) == (201, last + waits)
    sdram.refreshes = 100
    other_row = sdram_burst(sdram, first, (BANKS + 2) * ROW, 8, WRITE)
    assert other_row == first + 7 + 5 + 4 + ACTIVE + 1


def test_a_row_stays_open_for_its_time_and_that_of_the_last_write() -> None:
    sdram = chip()
    first = sdram_burst(sdram, 10, 0, 2, READ)
    opened = first - 1 - ACTIVE
    assert sdram_burst(sdram, 11, BANKS * ROW, 2, WRITE) == opened + 9 + 4 + ACTIVE + 1
    last = sdram.last
    assert sdram_burst(sdram, 12, 0, 2, WRITE) == last + 5 + 4 + ACTIVE + 1


def test_the_next_decision_comes_in_the_cycle_after_the_last_column() -> None:
    """After a long read, whose row may be closed at once."""
    for address, refresh, waits in ((BANKS * ROW, 10_000, 4 + ACTIVE), (64, 40, 4 + 20 + ACTIVE)):
        sdram = chip(refresh)
        last = sdram_burst(sdram, 10, 0, 32, READ) + 31
        assert sdram_burst(sdram, 11, address, 2, READ) == last + 1 + waits + 1
        assert sdram.refreshes == 1 + (refresh == 40)


def test_a_refresh_that_is_due_comes_first_and_closes_all() -> None:
    sdram = chip(refresh=200)
    sdram_burst(sdram, 10, 0, 2, READ)
    # Due from cycle 201: a PRECHARGE of 4 cycles, 20 of the refresh, then the row opens again.
    assert sdram_burst(sdram, 300, 0, 2, READ) == 300 + 1 + 1 + ACTIVE
    assert sdram.refreshes == 2
    sdram = chip(refresh=200)
    sdram_burst(sdram, 10, 0, 2, READ)
    assert sdram_burst(sdram, 205, 0, 2, READ) == 201 + 4 + 20 + ACTIVE + 1


LAG = 2 + 2 + 3
"""Cycles from a read's column to its arrival: cas, 2, and an io_delay of 3."""


@pytest.mark.parametrize("beats", [1, 4])
def test_beats_come_and_go_with_their_columns(beats: int) -> None:
    """A beat has two columns.  What is over leaves room for another command."""
    sdram = chip()
    sdram.lag = LAG
    port: Any = SimpleNamespace(
        sdram=sdram, interval=2, queue_bursts=2, oldest=0, ends=np.full(2, -1)
    )
    first = 10 + 1 + ACTIVE + 1
    last = first + 2 * beats - 1
    assert _accept(port, 10, 0, beats, READ) == first + 2 * beats - 1 + LAG
    assert port.ends[0] == last
    assert (port.oldest, port.last_accept, port.last_writes) == (1, 10, READ)
    # Long after, a write of the same row: its last beat is taken with the first of its columns.
    assert _accept(port, 100, 64, beats, WRITE) == 102 + 2 * (beats - 1)
    assert port.ends[1] == 102 + 2 * beats - 1
    assert (port.oldest, port.last_accept, port.last_end) == (0, 100, 102 + 2 * (beats - 1))
