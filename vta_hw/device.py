"""The RTL as a device of the runtime; it satisfies ``dovetail.runtime.device`` structurally."""

from dovetail.isa.config import HardwareConfig
from dovetail.isa.launch import Launch, LaunchResult
from dovetail.isa.state import MachineState

from .build import build_harness
from .simulate import RtlJob, run_programs

__all__ = ["RtlDevice"]


class RtlDevice:
    """Runs programs on the Verilated accelerator, built on first use of each configuration."""

    def build(self, config: HardwareConfig) -> None:
        """Build the simulation of ``config`` now; ``run`` does so otherwise.

        Raises HardwareError when a tool is missing or fails.
        """
        build_harness(config)

    def run(self, launch: Launch) -> LaunchResult:
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
