"""Accelerators as devices: what the host does around each launch of a part's program."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.launch import Launch

from ..device import Launcher
from ..errors import DeviceError
from ..parts import Part
from ..result import RunResult
from .launch import account, require_configuration, run_launch
from .part import AcceleratorPart

__all__ = ["AcceleratorDevice", "prepare_launch"]

Arrays = Mapping[str, NDArray[Any]]


class AcceleratorDevice:
    """A launcher as a device."""

    target_kind = "vta"

    def __init__(self, name: str, pinned: str | None, launcher: Launcher) -> None:
        """pinned: the configuration whose programs alone it runs; None for any."""
        self.name, self.launcher = name, launcher
        self._pinned = pinned

    def prepare(self, part: Part) -> "ReadyProgram":
        """Raises DeviceError for a part that is not for this accelerator."""
        if not isinstance(part, AcceleratorPart):
            raise DeviceError(f"{self.name!r} cannot run what was compiled for {part.target!r}")
        require_configuration(self.name, self._pinned, part.configuration)
        return ReadyProgram(part, self)

    def close(self) -> None:
        """Give the board's port back, where there is one."""
        if hasattr(self.launcher, "close"):
            self.launcher.close()


class ReadyProgram:
    """A part's program on its device."""

    def __init__(self, part: AcceleratorPart, device: AcceleratorDevice) -> None:
        self._part, self._device = part, device

    def run(self, inputs: Arrays) -> RunResult:
        """One inference: steps of the host, one launch, steps of the host."""
        part, name = self._part, self._device.name
        begin = time.perf_counter()
        launch = prepare_launch(part, inputs)
        started = time.perf_counter()
        done = run_launch(launch, self._device.launcher, name)
        ended = time.perf_counter()
        outputs = {each.tensor.name: each.take(done.dram) for each in part.results}
        finish = time.perf_counter()
        return account(
            launch,
            done,
            outputs=outputs,
            device_name=name,
            layer_of=part.layer_of,
            macs=part.macs,
            wall_seconds=finish - begin,
            host_seconds=(started - begin) + (finish - ended),
        )


def prepare_launch(part: AcceleratorPart, inputs: Arrays) -> Launch:
    """The launch of one inference: the part's DRAM with its inputs in their places."""
    dram = np.frombuffer(part.dram, np.uint8).copy()
    for each in part.sources:
        each.place(np.asarray(inputs[each.tensor.name]), dram)
    reads = tuple(place for each in part.results for place in each.reads)
    address, count = part.program_address, part.instruction_count
    return Launch(part.configuration, dram, address, count, reads=reads)
