"""Running launches on devices, and accounting for them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.errors import ConfigError
from dovetail.isa.launch import Launch, LaunchResult
from dovetail.isa.memories import Unit
from dovetail.isa.registers import ErrorCode

from ..device import Launcher
from ..devices import DEVICES, open_launcher, split_device
from ..errors import DeviceError
from ..result import RunResult, Timeline, TimelineEntry

__all__ = ["account", "find_launcher", "require_configuration", "run_launch"]


def find_launcher(device_name: str, config: HardwareConfig) -> Launcher:
    """The launcher for programs of ``config`` on the device of that name.

    Raises DeviceError when there is none, it runs no programs, or it pins another configuration.
    """
    kind, rest = split_device(device_name)
    require_configuration(device_name, None if DEVICES[kind].named else rest, config)
    return open_launcher(device_name)


def require_configuration(name: str, pinned: str | None, config: HardwareConfig) -> None:
    """Raises DeviceError when the device called ``name``, which is ``pinned`` to a configuration or
    to none, is for another one.

    pinned: the name of a configuration, or a file that holds one.
    """
    if pinned is None or (pinned == config.name and pinned not in CONFIGS):
        return
    try:
        known = find_config(pinned)
    except ConfigError as error:
        raise DeviceError(
            f"what was compiled for 'vta:{config.name}' cannot run on {name!r}: {error}"
        ) from None
    if (known.name, known.fingerprint) != (config.name, config.fingerprint):
        raise DeviceError(
            f"what was compiled for 'vta:{config.name}' cannot run on {name!r}; "
            "use --device sim or rtl, or compile for that device"
        )


def run_launch(launch: Launch, device: Launcher, device_name: str) -> LaunchResult:
    """Run one program to its end.

    Raises DeviceError with the error's name and the instruction's index when it is stopped.
    """
    done = device.run(launch)
    if not done.finished:
        code = ErrorCode(done.error_code)
        raise DeviceError(
            f"{device_name} stopped with {code.name} at instruction {done.error_index} "
            f"of {launch.program_count}"
        )
    return done


def account(
    launch: Launch,
    done: LaunchResult,
    *,
    outputs: Mapping[str, NDArray[Any]],
    device_name: str,
    layer_of: Sequence[int],
    macs: int,
    wall_seconds: float,
    host_seconds: float,
) -> RunResult:
    """Everything that is known about a run.

    layer_of: the layer of each instruction.  macs: multiply-accumulates of the model.
    """
    config, counters = launch.config, done.counters
    cycles = counters["cycles"]
    return RunResult(
        outputs=outputs,
        device=device_name,
        wall_seconds=wall_seconds,
        host_seconds=host_seconds,
        device_seconds=done.seconds,
        cycles=cycles,
        macs=macs,
        gemm_busy_cycles=counters["gemm_busy"],
        gemm_utilization=macs / (cycles * config.macs_per_cycle),
        dram_bytes_read=(counters["fetch_beats"] + counters["load_beats"]) * config.bus_bytes,
        dram_bytes_written=counters["store_beats"] * config.bus_bytes,
        counters=counters,
        timeline=_timeline(launch, done, layer_of),
    )


def _timeline(launch: Launch, done: LaunchResult, layer_of: Sequence[int]) -> Timeline:
    """One entry for each instruction; none from a device that does not say when they ran."""
    if done.dispatched is None or done.accepted is None or done.ended is None:
        return ()
    first, count = launch.program_address, launch.program_count
    opcodes = launch.dram[first : first + count * INSTRUCTION_BYTES : INSTRUCTION_BYTES] & 15
    entries = []
    free = dict.fromkeys(Unit, 0)
    for index, opcode in enumerate(opcodes):
        unit = Unit(int(opcode) - 1)
        queued, end = int(done.dispatched[index]), int(done.ended[index])
        entries.append(
            TimelineEntry(
                index=index,
                unit=unit.name,
                layer=layer_of[index],
                queued=queued,
                start=int(done.accepted[index]),
                end=end,
                waited_token=_at(done.waited_token, index),
                waited_port=_at(done.waited_port, index),
                waited_memory=max(0, queued + 1 - free[unit]),
            )
        )
        free[unit] = end + 1
    return tuple(entries)


def _at(cycles: NDArray[np.int64] | None, index: int) -> int | None:
    return None if cycles is None else int(cycles[index])
