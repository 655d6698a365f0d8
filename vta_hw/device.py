"""The RTL under Verilator behind the runtime's device protocol."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.state import MachineState

from .simulate import RtlJob, run_programs

__all__ = ["RtlDevice", "RtlLaunch"]


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
class RtlLaunch:
    """The result of a launch; see ``dovetail.runtime.device.LaunchResult``."""

    finished: bool
    error_code: int
    error_index: int
    dram: NDArray[np.uint8]
    counters: dict[str, int]
    dispatched: NDArray[np.int64]
    accepted: NDArray[np.int64]
    ended: NDArray[np.int64]
    seconds: float
    waited_token: NDArray[np.int64] | None = None
    waited_port: NDArray[np.int64] | None = None


class RtlDevice:
    """Runs launches on the Verilated RTL; the first run of a configuration builds it, which takes a minute."""

    def run(self, launch: _Launch) -> RtlLaunch:
        """Run one launch, which is not changed.

        Raises HardwareError when the simulation cannot be built or fails.
        """
        job = RtlJob(
            MachineState.zeros(launch.config, launch.dram),
            launch.program_address,
            launch.program_count,
            (0, launch.dram.size - 1),
            watchdog=launch.watchdog,
        )
        (done,) = run_programs(launch.config, [job])
        return RtlLaunch(
            done.finished,
            done.error_code,
            done.error_index,
            done.state.dram,
            done.counters,
            done.dispatched,
            done.accepted,
            done.ended,
            done.seconds,
        )
