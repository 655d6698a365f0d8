"""The simulation of RTL, which is built before its first run and takes minutes to build."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .output import human, progress

if TYPE_CHECKING:
    from dovetail.isa.config import HardwareConfig
    from dovetail.runtime.module import Module

__all__ = ["build_for", "build_rtl"]


def build_rtl(configs: "Iterable[HardwareConfig]", device: str) -> float:
    """Build what ``device`` has not built for ``configs`` and say so; the seconds that took.

    Nothing is built for devices that build nothing.  Raises DeviceError when there is no such
    device, HardwareError when a tool fails.
    """
    from dovetail.runtime.devices import DEVICES, open_launcher, split_device

    if not DEVICES[split_device(device)[0]].launches:
        return 0.0
    launcher: Any = open_launcher(device)
    seconds = 0.0
    for config in dict.fromkeys(configs):
        if hasattr(launcher, "is_built") and not launcher.is_built(config):
            begin = time.perf_counter()
            human.print(f"building the RTL simulation of {config.name}: minutes, once")
            with progress(f"building {config.name} with Verilator"):
                launcher.build(config)
            taken = time.perf_counter() - begin
            human.print(f"built in {taken:.0f} s, and kept for later runs")
            seconds += taken
    return seconds


def build_for(module: "Module", device: str) -> float:
    """As ``build_rtl``, for the accelerators of a module."""
    from dovetail.runtime.accelerator.part import AcceleratorPart

    parts = (each for each in module.parts if isinstance(each, AcceleratorPart))
    return build_rtl((each.configuration for each in parts), device)
