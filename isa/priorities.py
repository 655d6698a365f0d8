"""Who comes first when several want something in one cycle, for gateware and simulator alike."""

from enum import IntEnum

from .memories import Unit

__all__ = ["ACCEPTING", "READING", "Source"]

ACCEPTING = (Unit.GEMM, Unit.VECTOR, Unit.STORE, Unit.LOAD)
"""Units in the order in which they get a bank that several claim when they accept."""


class Source(IntEnum):
    """Where bursts and errors come from; of errors in one cycle the least source's counts."""

    DISPATCH = 0
    FETCH = 1
    LOAD = 2
    STORE = 3
    WATCHDOG = 4
    HOST = 5


READING = (Source.FETCH, Source.LOAD)
"""Who reads DRAM: the first that offers a burst has it taken."""
