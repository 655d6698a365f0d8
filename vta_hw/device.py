"""The RTL as a device of the runtime; it satisfies ``dovetail.runtime.device`` structurally."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.state import MachineState

from .build import build_harness
from .simulate import RtlJob, run_programs

__all__ = ["RtlDevice", "RtlRun"]


class _Launch(Protocol):
    """The part of the runtime's ``Launch`` that is read here."""

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
class RtlRun:
    """What a run left; the meaning of each name is that of the runtime's ``LaunchResult``."""

    finished: bool
    error_code: int
    error_index: int
    dram: NDArray[np.uint8]
    counters: dict[str, int]
    dispatched: NDArray[np.int64]
    accepted: NDArray[np.int64]
    ended: NDArray[np.int64]
    seconds: float
    waited_token: None = None
    waited_port: None = None


class RtlDevice:
    """Runs programs on the Verilated accelerator, built on first use of each configuration."""

    def build(self, config: HardwareConfig) -> None:
        """Build the simulation of ``config`` now; ``run`` does so otherwise.

        Raises HardwareError when a tool is missing or fails.
        """
        build_harness(config)

    def run(self, launch: _Launch) -> RtlRun:
        """Run to the end, or to an error; the window is all of the launch's DRAM.

        Raises HardwareError when the simulation cannot be built or fails.
        """
        job = RtlJob(
            MachineState.zeros(launch.config, launch.dram),
            launch.program_address,
            launch.program_count,
            window=(0, launch.dram.size - 1),
            watchdog=launch.watchdog,
        )
        result = run_programs(launch.config, [job])[0]
        return RtlRun(
            result.finished,
            result.error_code,
            result.error_index,
            result.state.dram,
            result.counters,
            result.dispatched,
            result.accepted,
            result.ended,
            result.seconds,
        )
