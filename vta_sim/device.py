"""The simulator as a launcher of the runtime."""

import time

from dovetail.isa.launch import Launch, LaunchResult
from dovetail.isa.state import MachineState

from .machine import simulate
from .replayer import Replayer

__all__ = ["SimulatorDevice"]


class SimulatorDevice:
    """Runs launches on the cycle-exact simulator."""

    def run(self, launch: Launch) -> LaunchResult:
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
        return LaunchResult(
            done.finished,
            done.error_code,
            done.error_index,
            state.dram,
            done.counters,
            done.dispatched,
            done.accepted,
            done.ended,
            seconds,
            done.waited_token,
            done.waited_port,
        )

    def replayer(self, launch: Launch) -> Replayer:
        """The memories of a launch, to be changed instruction by instruction."""
        return Replayer(launch)
