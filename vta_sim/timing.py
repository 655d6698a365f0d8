"""The time of a program alone: the simulator's clock, without memories and data."""

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.registers import ErrorCode
from dovetail.isa.table import decode_table

from .clock import run_clock
from .counters import count
from .errors import SimulationError

__all__ = ["ProgramTime", "time_program"]

LAST_ADDRESS = (1 << 32) - 1


@frozen
class ProgramTime:
    """When a program's instructions run.

    accepted, ended: int64[instructions], the cycles in which each starts and ends.  counters: by
    the names of ``dovetail.isa.registers.COUNTERS``.
    """

    accepted: NDArray[np.int64]
    ended: NDArray[np.int64]
    counters: dict[str, int]


def time_program(words: NDArray[np.uint8], config: HardwareConfig, address: int = 0) -> ProgramTime:
    """The cycles of a run with the DRAM of ``config``; all 32-bit addresses may be accessed.

    words: uint8[n, 64], the instructions.  address: of the program, which matters to SDRAM.
    Raises SimulationError for a program that can never end, or that the hardware would refuse.
    """
    table, program = decode_table(words, config), (address, len(words))
    machine, _ = run_clock(table, config, config.dram, program, (0, LAST_ADDRESS), 0)
    if machine.code:
        raise SimulationError(
            f"the program stops with {ErrorCode(machine.code).name} "
            f"at instruction {machine.error_index}"
        )
    return ProgramTime(machine.issue.accepted, machine.issue.ended, count(machine))
