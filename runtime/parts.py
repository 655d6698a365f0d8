"""Parts of modules: what they have in common, and the kinds there are."""

from importlib import import_module
from typing import ClassVar, Protocol

from .tensors import TensorSignature

__all__ = ["PARTS", "Part", "part_class", "target_kind"]


class Part(Protocol):
    """A piece of a model that one device runs: a frozen dataclass that ``manifest`` can write."""

    kind: ClassVar[str]
    """Its name in files."""

    @property
    def target(self) -> str:
        """Target that it was compiled for: "vta:zynq7020", "cpu"."""
        ...

    @property
    def inputs(self) -> tuple[TensorSignature, ...]:
        """Tensors it takes: the module's inputs, or outputs of parts before it, by name."""
        ...

    @property
    def outputs(self) -> tuple[TensorSignature, ...]:
        """Tensors it gives."""
        ...


PARTS = {
    "accelerator": ("dovetail.runtime.accelerator.part", "AcceleratorPart"),
    "cpu": ("dovetail.runtime.native.part", "CpuPart"),
    "gpu": ("dovetail.runtime.gpu.part", "GpuPart"),
    "model": ("dovetail.runtime.native.model", "ModelPart"),
}
"""Kind to module and class; imported when a file has one."""


def part_class(kind: str) -> type[Part]:
    """The class of the parts of that kind, which is in ``PARTS``."""
    module, name = PARTS[kind]
    found: type[Part] = getattr(import_module(module), name)
    return found


def target_kind(target: str) -> str:
    """ "vta" of "vta:zynq7020"."""
    return target.partition(":")[0]
