"""Subjects of a measurement: each device, and for accelerators each target."""

from collections.abc import Sequence
from importlib.util import find_spec

from dovetail.isa.frozen import frozen
from dovetail.runtime.devices import DEVICES, split_device
from dovetail.runtime.errors import DeviceError

from .engine import ENGINES

__all__ = ["ORT", "Subject", "subjects"]

ORT = "ort"
"""ONNX Runtime, which is not a device: it takes the model as it is, or written as ONNX."""


@frozen
class Subject:
    """device: "sim", "cpu", "ort".  target: that the model is compiled for; None for not at all."""

    device: str
    target: str | None

    @property
    def name(self) -> str:
        """The device, and the target where there may be several."""
        which = (self.target or "").removeprefix("vta:")
        return f"{self.device} {which}" if self.is_accelerator else self.device

    @property
    def is_accelerator(self) -> bool:
        """True if it counts cycles; the others are timed."""
        return self.device not in ENGINES


def subjects(devices: Sequence[str], targets: Sequence[str]) -> list[Subject]:
    """Every device, an accelerator's for every target, in this order and each once.

    Raises DeviceError for a device that does not exist, or that is not installed.
    """
    found: dict[Subject, None] = {}
    for device in devices:
        if device == ORT:
            if not find_spec("onnxruntime"):
                raise DeviceError(
                    f"{ORT!r} needs onnxruntime, which is not installed; install the extra: "
                    "pip install 'dovetail[benchmark]', or leave it out: --devices sim,cpu"
                )
            found[Subject(ORT, None)] = None
        elif device.partition(":")[0] not in DEVICES:
            known = ", ".join((*DEVICES, ORT))
            raise DeviceError(f"no device is called {device!r}; there are: {known}")
        elif DEVICES[split_device(device)[0]].target_kind == "cpu":
            found[Subject("cpu", "cpu")] = None
        else:
            found |= dict.fromkeys(Subject(device, target) for target in targets)
    return list(found)
