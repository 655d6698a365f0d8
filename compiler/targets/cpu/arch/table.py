"""All kinds of CPUs that code can be made for."""

from .aarch64 import AARCH64
from .arch import Arch
from .x86_64 import X86_64

__all__ = ["ARCHES", "arch_of_triple"]

ARCHES: tuple[Arch, ...] = (X86_64, AARCH64)


def arch_of_triple(triple: str) -> Arch | None:
    """The record of the CPUs that an LLVM triple is for."""
    kind = triple.partition("-")[0]
    return next((each for each in ARCHES if each.triple.startswith(f"{kind}-")), None)
