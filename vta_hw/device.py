"""The RTL as a device of the runtime; it satisfies ``Launcher`` of ``dovetail.runtime.device``."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dovetail.isa.config import HardwareConfig
from dovetail.isa.launch import Launch, LaunchResult
from dovetail.isa.state import MachineState

from .build import build_harness, find_harness
from .simulate import RtlJob, Waves, run_programs

__all__ = ["RtlDevice"]


class RtlDevice:
    """Runs programs on the Verilated accelerator, built on first use of each configuration."""

    def build(self, config: HardwareConfig) -> None:
        """Build the simulation of ``config`` now; ``run`` does so otherwise.

        Raises HardwareError when a tool is missing or fails.
        """
        build_harness(config)

    def is_built(self, config: HardwareConfig) -> bool:
        """True if the simulation of ``config`` is there already."""
        return find_harness(config) is not None

    def run(self, launch: Launch) -> LaunchResult:
        """Run to the end, or to an error; the window is all of the launch's DRAM.

        Raises HardwareError when the simulation cannot be built or fails.
        """
        result = run_programs(launch.config, [_job(launch)])[0]
        return LaunchResult(
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

    def snapshots(self, launch: Launch, cycles: Sequence[int]) -> tuple[MachineState, ...]:
        """All memories as they are after so many cycles, ascending; after the last, at the end.

        Raises HardwareError as ``run`` does.
        """
        job = replace(_job(launch), snapshots=tuple(cycles), cycle_limit=max(cycles, default=0) + 1)
        return run_programs(launch.config, [job])[0].snapshots

    def waves(self, launch: Launch, path: Path, first: int, last: int) -> None:
        """Write the waveforms of cycles ``first`` to ``last`` to ``path``, FILE.fst or FILE.vcd.

        Raises HardwareError as ``run`` does, and for a format that does not exist.
        """
        job = replace(_job(launch), waves=Waves(path, first, last), cycle_limit=last + 2)
        run_programs(launch.config, [job])


def _job(launch: Launch) -> RtlJob:
    return RtlJob(
        MachineState.zeros(launch.config, launch.dram),
        launch.program_address,
        launch.program_count,
        window=(0, launch.dram.size - 1),
        watchdog=launch.watchdog,
    )
