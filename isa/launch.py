"""One run of a program: what a device is given, and what it leaves."""

import numpy as np
from numpy.typing import NDArray

from .config import HardwareConfig
from .frozen import frozen

__all__ = ["Launch", "LaunchResult"]


@frozen
class Launch:
    """One run of a program.

    dram: uint8[size], everything the program sees, itself included; the first byte is address 0.
    watchdog: cycles without a completed instruction before the run is stopped.
    reads: first byte and size of what is looked at afterwards; None for all.  A device behind a
    slow link may leave the rest of the result's DRAM as it was.
    """

    config: HardwareConfig
    dram: NDArray[np.uint8]
    program_address: int
    program_count: int
    watchdog: int = 10_000_000
    reads: tuple[tuple[int, int], ...] | None = None


@frozen
class LaunchResult:
    """Result of a run: DRAM, counters, and the cycles of each instruction.

    error_code, error_index: as ``registers`` has them, when not ``finished``.
    dispatched, accepted, ended: int64[program_count], the cycle of each, -1 for never.
    waited_token, waited_port: int64[program_count], cycles each instruction waited at the head of
    its queue.  Each is None where the device does not know.
    seconds: wall time of the run alone.
    """

    finished: bool
    error_code: int
    error_index: int
    dram: NDArray[np.uint8]
    counters: dict[str, int]
    dispatched: NDArray[np.int64] | None
    accepted: NDArray[np.int64] | None
    ended: NDArray[np.int64] | None
    seconds: float
    waited_token: NDArray[np.int64] | None = None
    waited_port: NDArray[np.int64] | None = None
