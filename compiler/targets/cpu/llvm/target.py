"""The CPU that code is made for."""

from functools import cache

import llvmlite.binding as llvm

from dovetail.isa.frozen import frozen
from dovetail.runtime.native.host import host_flags

from ....errors import TargetError
from ....schedule.rules.cpu.machine import Machine
from ..arch.arch import Ability, Arch
from ..arch.table import ARCHES, arch_of_triple

__all__ = ["CpuTarget", "host_cpu", "target_machine"]


@frozen
class CpuTarget:
    """A CPU: its kind, LLVM's name of it, and the features that it has, by LLVM's names."""

    arch: Arch
    cpu: str
    features: frozenset[str]

    @classmethod
    def at_level(cls, level: str) -> "CpuTarget":
        """The CPU of a level of ``arch.table``, or ``native``: the host.

        Raises TargetError for another level.
        """
        if level == "native":
            return host_cpu()
        for arch in ARCHES:
            if level in arch.levels:
                return cls(arch, arch.levels[level].cpu, arch.levels[level].features)
        known = ", ".join(level for arch in ARCHES for level in arch.levels)
        raise TargetError(f"no CPU level {level!r}; known are native, {known}")

    @classmethod
    def baseline(cls, arch: Arch) -> "CpuTarget":
        """The features that every CPU of a kind has."""
        return cls.at_level(arch.baseline)

    def can(self, ability: Ability) -> bool:
        """True if it has the instruction."""
        return self.arch.abilities.get(ability) in self.features

    @property
    def vector_bytes(self) -> int:
        """Bytes of the widest vector register."""
        return self.machine().vector_bytes

    def machine(self, threads: int = 1) -> Machine:
        """The core, as schedules see it."""
        *wider, last = self.arch.vectors
        found = next((each for each in wider if each.feature in self.features), last)
        return Machine(found.bytes, found.registers, threads=threads)

    @property
    def feature_string(self) -> str:
        """As LLVM's target machine takes them."""
        return ",".join(f"+{feature}" for feature in sorted(self.features))

    @property
    def flags(self) -> tuple[str, ...]:
        """The features by Linux's names; those that it has no name for are left out."""
        known = {self.arch.linux_flags.get(name, name) for name in self.features}
        if self.features == host_cpu().features:
            known &= host_flags()
        return tuple(sorted(known))

    def require_host(self) -> None:
        """Raises TargetError, naming what is missing, when the host cannot run the code."""
        if self.arch is not host_cpu().arch:
            raise TargetError(
                f"this CPU is {host_cpu().arch.name}, the code is for {self.arch.name}; compile "
                "for 'native'"
            )
        missing = sorted(self.features - host_cpu().features)
        if missing:
            raise TargetError(
                f"this CPU ({host_cpu().cpu}) lacks {', '.join(missing)}, which the code for "
                f"{self.cpu} uses; compile for 'native' or a lower level"
            )


@cache
def host_cpu() -> CpuTarget:
    """The CPU this process runs on.  Raises TargetError where there is no record of its kind."""
    arch = arch_of_triple(llvm.get_process_triple())
    if arch is None:
        kinds = ", ".join(each.name for each in ARCHES)
        raise TargetError(f"this CPU is {llvm.get_process_triple()}; known are {kinds}")
    flags = llvm.get_host_cpu_features()
    features = frozenset(name for name, on in flags.items() if on)
    return CpuTarget(arch, llvm.get_host_cpu_name(), features)


def target_machine(target: CpuTarget, optimization: int = 3) -> llvm.TargetMachine:
    """A machine that emits position-independent code, for the JIT and for shared libraries."""
    _initialize()
    return llvm.Target.from_triple(target.arch.triple).create_target_machine(
        cpu=target.cpu,
        features=target.feature_string,
        opt=optimization,
        reloc="pic",
        codemodel="default",
    )


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
