"""The time of the SDRAM controller, burst by burst, in machine code.

Source: docs/timing.md, "SDRAM".
"""

from .native.language import Int64s, Record

__all__ = ["CLOSED", "Sdram", "sdram_burst"]

CLOSED = -1
"""The row of a bank that has none open."""


class Sdram(Record):
    """The chip and its controller.

    present: whether memory is one. rcd to refresh: cycles, as in ``isa.sdram.SdramTiming``.
    row_bytes: of a row of one bank. banks: their number. step: columns of a beat. lag: from a
    beat's last column to the cycle in which a read brings it.

    rows, closes: the open row of each bank, and from when it may be closed. now: the cycle of the
    next decision. refreshes: done so far. clear: from when a write may be decided. last,
    last_writes: the last column of the burst before, and its direction.
    """

    present: int
    rcd: int
    rp: int
    ras: int
    rfc: int
    wr: int
    cas: int
    refresh: int
    row_bytes: int
    banks: int
    step: int
    lag: int
    rows: Int64s
    closes: Int64s
    now: int
    refreshes: int
    clear: int
    last: int
    last_writes: int


def sdram_burst(s: Sdram, accepted: int, address: int, columns: int, writes: int) -> int:
    """The cycle of the burst's first column; ``accepted`` is the cycle of its handshake."""
    place = address // s.row_bytes
    row, bank = place // s.banks, place % s.banks
    seen = accepted + 1
    hit = s.rows[bank] == row and s.last_writes == writes
    if seen <= s.last and s.last < _due(s) and hit:
        return _columns(s, s.last + 1, columns, writes, bank)
    while True:
        due = _due(s)
        if due <= s.now:
            _refresh(s)
        elif s.now < seen:
            s.now = min(seen, due)
        elif s.rows[bank] == row:
            start = max(s.now, s.clear) if writes else s.now
            if start < due:
                return _columns(s, start + 1, columns, writes, bank)
            s.now = due
        elif s.rows[bank] != CLOSED:
            start = max(s.now, s.closes[bank])
            if start < due:
                s.rows[bank] = CLOSED
                s.now = start + s.rp
            else:
                s.now = due
        else:
            s.rows[bank] = row
            s.closes[bank] = s.now + s.ras
            s.now += max(s.rcd - 1, 1)
    return 0


def _due(s: Sdram) -> int:
    """The cycle from which the next refresh is due."""
    return 1 + s.refreshes * s.refresh


def _refresh(s: Sdram) -> None:
    any_open = 0
    start = s.now
    for bank in range(s.banks):
        if s.rows[bank] != CLOSED:
            start = max(start, s.closes[bank])
            s.rows[bank] = CLOSED
            any_open = 1
    s.now = start + any_open * s.rp + s.rfc
    s.refreshes += 1


def _columns(s: Sdram, first: int, columns: int, writes: int, bank: int) -> int:
    last = first + columns - 1
    if writes:
        s.closes[bank] = max(s.closes[bank], last + s.wr)
    else:
        s.clear = last + s.cas
    s.last = last
    s.last_writes = writes
    s.now = last + 1
    return first
