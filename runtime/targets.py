"""Device names.

Devices, and the compiler for modules that hold models, are imported here, when one is asked for,
and nowhere else in the runtime.
"""

from functools import cache
from importlib import import_module
from typing import Any

from .errors import DeviceError
from .module import Module

__all__ = ["DEVICES", "open_device", "open_specialising", "split_device"]

DEVICES = {
    "sim": ("dovetail.vta_sim.device", "SimulatorDevice", "cycle-exact simulator"),
    "rtl": ("dovetail.vta_hw.device", "RtlDevice", "the accelerator's RTL under Verilator"),
    "board": (
        "dovetail.runtime.board.device",
        "BoardDevice",
        "an FPGA board: board:MODEL@PORT, for example board:ulx3s@/dev/ttyUSB0",
    ),
    "cpu": ("dovetail.runtime.native.device", "CpuDevice", "machine code on this CPU"),
}
"""Name to module, class and description."""


def split_device(name: str) -> tuple[str, str | None]:
    """ "sim:tiny" to ("sim", "tiny"); "sim" to ("sim", None).

    Raises DeviceError when there is no such device.
    """
    kind, _, rest = name.partition(":")
    if kind not in DEVICES:
        raise DeviceError(f"no device is called {name!r}; there are: {', '.join(DEVICES)}")
    return kind, rest or None


@cache
def open_device(kind: str, which: str | None = None) -> Any:
    """The device called ``kind``; of boards, the one called ``which``.  Asked again, the same.

    Raises DeviceError when what it needs is not installed.
    """
    module, name, _ = DEVICES[kind]
    try:
        device = getattr(import_module(module), name)
    except ImportError as error:
        extra = "board" if kind == "board" else "hw"
        raise DeviceError(
            f"device {kind!r} needs {error.name}, which is not installed; "
            f"install the extra: pip install 'dovetail[{extra}]'"
        ) from None
    return device(which) if kind == "board" else device()


def open_specialising(module: Module) -> Any:
    """What runs a module that holds a model, by compiling it for what it is given.

    Raises ModuleError when it cannot be read, TargetError when this CPU cannot run its code.
    """
    return import_module("dovetail.compiler.targets.cpu.native").load_specialising(module)
