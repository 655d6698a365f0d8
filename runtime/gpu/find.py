"""Finding the GPUs of this machine, and what else speaks their languages."""

from importlib import import_module

from dovetail.isa.frozen import frozen

from ..errors import DeviceError

__all__ = ["FoundGpu", "find_gpus"]

KINDS = {
    "cuda": "dovetail.runtime.gpu.cuda",
    "opencl": "dovetail.runtime.gpu.opencl",
    "webgpu": "dovetail.runtime.gpu.webgpu",
}
"""Modules with a function ``found``: names for ``--device``, and what drivers call each."""
NEEDED = ("pyopencl", "wgpu")


@frozen
class FoundGpu:
    """device: its name for ``--device``.  hardware: what the driver calls it."""

    device: str
    hardware: str


def find_gpus() -> list[FoundGpu]:
    """All that drivers and installed packages know."""
    gpus = []
    for module in KINDS.values():
        try:
            gpus += [FoundGpu(*each) for each in import_module(module).found()]
        except ModuleNotFoundError as error:
            if error.name not in NEEDED:
                raise
        except DeviceError:
            continue
    return gpus
