"""When the instructions of a program start and end, as the backend asks for it.

The backend has no model of time: it is given a function that knows (the simulator's, usually).
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig

__all__ = ["Timing", "expected_cycles"]


class Times(Protocol):
    """The cycles in which each instruction starts and ends; int64[instructions]."""

    @property
    def accepted(self) -> NDArray[np.int64]: ...
    @property
    def ended(self) -> NDArray[np.int64]: ...


Timing = Callable[[NDArray[np.uint8], HardwareConfig, int], Times]
"""From the instructions, uint8[n, 64], the configuration and the program's address in DRAM."""


def expected_cycles(
    timing: Timing, code: bytes, config: HardwareConfig, address: int
) -> tuple[tuple[int, int], ...]:
    """First and last cycle of each instruction of ``code``, which is at ``address``."""
    words = np.frombuffer(code, np.uint8).reshape(-1, INSTRUCTION_BYTES)
    times = timing(words, config, address)
    return tuple(zip(times.accepted.tolist(), times.ended.tolist(), strict=True))
