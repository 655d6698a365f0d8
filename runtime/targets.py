"""Device names.

Devices are imported here, when one is asked for, and nowhere else in the runtime.
"""

from importlib import import_module
from typing import Any

from .errors import DeviceError

__all__ = ["DEVICES", "open_device", "split_device"]

DEVICES = {
    "sim": ("dovetail.vta_sim.device", "SimulatorDevice", "cycle-exact simulator"),
    "rtl": ("dovetail.vta_hw.device", "RtlDevice", "the accelerator's RTL under Verilator"),
    "cpu": ("dovetail.compiler.cpu", "CpuDevice", "the graph interpreter, in NumPy"),
}
"""Name to module, class and description."""


def split_device(name: str) -> tuple[str, str | None]:
    """ "sim:tiny" to ("sim", "tiny"); "sim" to ("sim", None).

    Raises DeviceError when there is no such device.
    """
    kind, _, config = name.partition(":")
    if kind not in DEVICES:
        raise DeviceError(f"no device is called {name!r}; there are: {', '.join(DEVICES)}")
    return kind, config or None


def open_device(kind: str) -> Any:
    """The device called ``kind``.

    Raises DeviceError when what it needs is not installed.
    """
    module, name, _ = DEVICES[kind]
    try:
        return getattr(import_module(module), name)()
    except ImportError as error:
        raise DeviceError(
            f"device {kind!r} needs {error.name}, which is not installed; "
            "install the extra: pip install 'dovetail[hw]'"
        ) from None
