"""Running a program on its own: hand-written, or taken from a module."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.launch import Launch

from .accelerator.launch import account, find_launcher, run_launch
from .errors import InputError
from .result import RunResult

__all__ = ["run_program"]


def run_program(
    code: bytes, config: HardwareConfig, dram: NDArray[Any], device_name: str = "sim"
) -> RunResult:
    """Run the instructions ``code`` on a machine that has just been reset.

    dram: uint8[N], from address 0 on; not changed.  The program is put behind it, and the window
    of legal addresses ends with the program.  The result's output ``dram`` is uint8[N]; its
    ``macs`` are those of all tiles.  Raises InputError for a ``dram`` or ``code`` that cannot be,
    DeviceError when the program is stopped.
    """
    begin = time.perf_counter()
    if dram.ndim != 1 or dram.dtype != np.uint8:
        raise InputError(f"input 'dram' is {dram.dtype}{list(dram.shape)}; required uint8[N]")
    if not code or len(code) % INSTRUCTION_BYTES:
        raise InputError(
            f"a program of {len(code)} bytes; required a multiple of {INSTRUCTION_BYTES}, not 0"
        )
    device = find_launcher(device_name, config)
    address = -(-dram.size // INSTRUCTION_BYTES) * INSTRUCTION_BYTES
    image = np.zeros(address + len(code), np.uint8)
    image[: dram.size] = dram
    image[address:] = np.frombuffer(code, np.uint8)
    count = len(code) // INSTRUCTION_BYTES
    launch = Launch(config, image, address, count)
    started = time.perf_counter()
    done = run_launch(launch, device, device_name)
    finish = time.perf_counter()
    return account(
        launch,
        done,
        outputs={"dram": done.dram[: dram.size].copy()},
        device_name=device_name,
        layer_of=[0] * count,
        macs=done.counters["gemm_busy"] * config.macs_per_cycle,
        wall_seconds=finish - begin,
        host_seconds=started - begin,
    )
