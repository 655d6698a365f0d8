"""The table of devices.

A device's package is imported when it is asked for, here and nowhere else in the runtime.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import DeviceError

if TYPE_CHECKING:
    from .device import Device, Launcher

__all__ = [
    "DEVICES",
    "HOST",
    "DeviceKind",
    "default_device",
    "open_device",
    "open_launcher",
    "split_device",
]


class DeviceKind(NamedTuple):
    """A kind of device.

    target_kind: of the targets whose parts it runs.  module, cls: where it is.  launches: whether
    that is a ``Launcher``, and not a ``Device``.  named: whether one is made by what follows
    the colon.  extra: of the package, that installs what it needs.
    """

    target_kind: str
    module: str
    cls: str
    text: str
    launches: bool = True
    named: bool = False
    extra: str = "hw"


DEVICES = {
    "sim": DeviceKind("vta", "dovetail.vta_sim.device", "SimulatorDevice", "cycle-exact simulator"),
    "rtl": DeviceKind(
        "vta", "dovetail.vta_hw.device", "RtlDevice", "the accelerator's RTL under Verilator"
    ),
    "board": DeviceKind(
        "vta",
        "dovetail.runtime.board.device",
        "BoardDevice",
        "an FPGA board: board:MODEL@PORT, for example board:ulx3s@/dev/ttyUSB0",
        named=True,
        extra="board",
    ),
    "cpu": DeviceKind(
        "cpu",
        "dovetail.runtime.native.device",
        "CpuDevice",
        "machine code on this CPU",
        launches=False,
    ),
    "opencl": DeviceKind(
        "opencl",
        "dovetail.runtime.gpu.opencl",
        "OpenClDevice",
        "a GPU, or another device of OpenCL: opencl:NAME, for example opencl:nvidia",
        launches=False,
        named=True,
        extra="opencl",
    ),
    "cuda": DeviceKind(
        "cuda",
        "dovetail.runtime.gpu.cuda",
        "CudaDevice",
        "an NVIDIA GPU: cuda:NUMBER, for example cuda:0",
        launches=False,
        named=True,
    ),
    "webgpu": DeviceKind(
        "webgpu",
        "dovetail.runtime.gpu.webgpu",
        "WebGpuDevice",
        "a GPU by WebGPU: webgpu:NAME, for example webgpu:llvmpipe",
        launches=False,
        named=True,
        extra="webgpu",
    ),
}
HOST = "cpu"
"""The device for parts that are not for the one that is asked for."""
ACCELERATOR = "dovetail.runtime.accelerator.device", "AcceleratorDevice"
"""Turns a launcher into a device."""


def split_device(name: str) -> tuple[str, str | None]:
    """ "sim:tiny" to ("sim", "tiny"); "sim" to ("sim", None).

    Raises DeviceError when there is no such device.
    """
    kind, _, rest = name.partition(":")
    if kind not in DEVICES:
        raise DeviceError(f"no device is called {name!r}; there are: {', '.join(DEVICES)}")
    return kind, rest or None


def default_device(target_kind: str) -> str | None:
    """The first device for targets of that kind."""
    return next((name for name, each in DEVICES.items() if each.target_kind == target_kind), None)


@cache
def open_device(name: str) -> "Device":
    """The device called ``name``: "sim", "sim:tiny", "cpu".  Asked again, the same.

    Raises DeviceError when there is none, or what it needs is not installed.
    """
    kind, rest = split_device(name)
    entry = DEVICES[kind]
    if entry.launches:
        cls = getattr(import_module(ACCELERATOR[0]), ACCELERATOR[1])
        found: Device = cls(name, None if entry.named else rest, open_launcher(name))
    else:
        found = _opened(kind, rest if entry.named else None)
    return found


def open_launcher(name: str) -> "Launcher":
    """The launcher of the device called ``name``.  Asked again, the same.

    Raises DeviceError when there is none, it runs none, or what it needs is not installed.
    """
    kind, rest = split_device(name)
    if not DEVICES[kind].launches:
        raise DeviceError(
            f"an accelerator's program cannot run on {name!r}; use --device sim or rtl"
        )
    found: Launcher = _opened(kind, rest if DEVICES[kind].named else None)
    return found


@cache
def _opened(kind: str, which: str | None) -> Any:
    """The object of the table; of named ones, the one called ``which``."""
    entry = DEVICES[kind]
    try:
        cls = getattr(import_module(entry.module), entry.cls)
    except ImportError as error:
        raise DeviceError(
            f"device {kind!r} needs {error.name}, which is not installed; "
            f"install the extra: pip install 'dovetail[{entry.extra}]'"
        ) from None
    return cls(which) if entry.named else cls()
