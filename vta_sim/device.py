"""The simulator behind the runtime's device protocol."""

import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.state import MachineState

from .machine import simulate

__all__ = ["SimulatedLaunch", "SimulatorDevice"]


class _Launch(Protocol):
    @property
    def config(self) -> HardwareConfig: ...
    @property
    def dram(self) -> NDArray[np.uint8]: ...
    @property
    def program_address(self) -> int: ...
    @property
    def program_count(self) -> int: ...
    @property
    def watchdog(self) -> int: ...


@dataclass(frozen=True, slots=True)
class SimulatedLaunch:
    """The result of a launch; see ``dovetail.runtime.device.LaunchResult``."""

    finished: bool
    error_code: int
    error_index: int
    dram: NDArray[np.uint8]
    counters: dict[str, int]
    dispatched: NDArray[np.int64]
    accepted: NDArray[np.int64]
    ended: NDArray[np.int64]
    waited_token: NDArray[np.int64] | None
    waited_port: NDArray[np.int64] | None
    seconds: float


class SimulatorDevice:
    """Runs launches on the cycle-exact simulator."""

    def run(self, launch: _Launch) -> SimulatedLaunch:
        """Run one launch, which is not changed."""
        state = MachineState.zeros(launch.config, launch.dram.copy())
        begin = time.perf_counter()
        done = simulate(
            state,
            launch.program_address,
            launch.program_count,
            (0, launch.dram.size - 1),
            watchdog=launch.watchdog,
        )
        seconds = time.perf_counter() - begin
        return SimulatedLaunch(
            done.finished,
            done.error_code,
            done.error_index,
            state.dram,
            done.counters,
            done.dispatched,
            done.accepted,
            done.ended,
            done.waited_token,
            done.waited_port,
            seconds,
        )
