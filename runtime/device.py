"""What a device that runs accelerator programs takes and gives."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig

__all__ = ["Device", "Launch", "LaunchResult"]


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a program.

    dram: uint8[size], everything the program sees, itself included; the first byte is address 0.
    watchdog: cycles without a completed instruction before the run is stopped.
    """

    config: HardwareConfig
    dram: NDArray[np.uint8]
    program_address: int
    program_count: int
    watchdog: int = 10_000_000


class LaunchResult(Protocol):
    """What a run left: DRAM, counters, and the cycles of each instruction.

    error_code, error_index: as ``dovetail.isa.registers`` has them, when not ``finished``.
    dispatched, accepted, ended: int64[program_count], the cycle of each, -1 for never.
    waited_token, waited_port: int64[program_count], cycles each instruction waited at the head of
    its queue, or None where the device does not know.
    seconds: wall time of the run alone.
    """

    @property
    def finished(self) -> bool: ...
    @property
    def error_code(self) -> int: ...
    @property
    def error_index(self) -> int: ...
    @property
    def dram(self) -> NDArray[np.uint8]: ...
    @property
    def counters(self) -> dict[str, int]: ...
    @property
    def dispatched(self) -> NDArray[np.int64]: ...
    @property
    def accepted(self) -> NDArray[np.int64]: ...
    @property
    def ended(self) -> NDArray[np.int64]: ...
    @property
    def waited_token(self) -> NDArray[np.int64] | None: ...
    @property
    def waited_port(self) -> NDArray[np.int64] | None: ...
    @property
    def seconds(self) -> float: ...


class Device(Protocol):
    """Runs accelerator programs; satisfied structurally."""

    def run(self, launch: Launch) -> LaunchResult:
        """Run to the end, or to an error; the launch is not changed."""
        ...
