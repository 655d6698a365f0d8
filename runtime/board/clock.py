"""Time waited for a board: by the clock on the wall, or that of an emulated board."""

import struct
import time
from pathlib import Path
from typing import Protocol

from dovetail.isa.link import CLOCK_SUFFIX

from ..errors import DeviceError

__all__ = ["Clock", "EmulatedClock", "WallClock", "open_clock"]


class Clock(Protocol):
    """pace: seconds of this clock for a second that a host would wait."""

    pace: float

    def seconds(self) -> float: ...


class WallClock:
    """The clock of boards that are there."""

    pace = 1.0

    def seconds(self) -> float:
        """Since some moment."""
        return time.monotonic()


class EmulatedClock:
    """Time that has passed for an emulated board, however busy the machine that emulates it.

    An emulation of 50 MHz runs at some 100,000 cycles a second, so that it is waited for that much
    less of its own time.
    """

    pace = 0.002
    standstill = 60.0
    """Seconds on the wall without a step, after which the emulation is given up."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last, self._moved = -1.0, time.monotonic()

    def seconds(self) -> float:
        """Since the emulation began.

        Raises DeviceError when it has ended, or stands still.
        """
        try:
            (nanoseconds,) = struct.unpack("<Q", self._path.read_bytes())
        except (OSError, struct.error):
            raise DeviceError(f"{self._path}: the emulation of the board has ended") from None
        found, now = nanoseconds / 1e9, time.monotonic()
        if found != self._last:
            self._last, self._moved = found, now
        elif now - self._moved > self.standstill:
            raise DeviceError(
                f"{self._path}: the emulation of the board has not moved for "
                f"{self.standstill:.0f} s; is its process stopped?"
            )
        return found


def open_clock(port: str) -> Clock:
    """The clock of the board at ``port``."""
    emulated = Path(port + CLOCK_SUFFIX)
    return EmulatedClock(emulated) if emulated.exists() else WallClock()
