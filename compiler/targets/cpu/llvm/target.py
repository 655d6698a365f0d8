"""The CPU code is made for: LLVM's name of it and the features that code generation asks about."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from dovetail.runtime.native.host import host_flags

from ....errors import TargetError

__all__ = ["LEVELS", "CpuTarget", "host_cpu", "physical_cores", "target_machine"]

_AVX2 = (
    *("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf", "avx", "avx2"),
    *("bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
)
_AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

LEVELS = {
    "x86-64": ("x86-64", ()),
    "avx2": ("x86-64-v3", _AVX2),
    "avx512": ("x86-64-v4", (*_AVX2, *_AVX512)),
    "avx512vnni": ("x86-64-v4", (*_AVX2, *_AVX512, "avx512vnni")),
}
"""Levels of x86-64 that code can be made for on any host: LLVM's CPU name and its features.

Source: x86-64 psABI, section 3.1.1 (micro-architecture levels).
"""

_FLAGS = {
    "64bit": "lm",
    "avx512bf16": "avx512_bf16",
    "avx512bitalg": "avx512_bitalg",
    "avx512fp16": "avx512_fp16",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "avx512vp2intersect": "avx512_vp2intersect",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avxvnni": "avx_vnni",
    "avxifma": "avx_ifma",
    "bmi": "bmi1",
    "crc32": "sse4_2",
    "lzcnt": "abm",
    "pclmul": "pclmulqdq",
    "prfchw": "3dnowprefetch",
    "rdrnd": "rdrand",
    "sahf": "lahf_lm",
    "sha": "sha_ni",
    "shstk": "user_shstk",
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
}
"""LLVM's names that Linux writes otherwise.  Source: arch/x86/include/asm/cpufeatures.h."""


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """cpu: LLVM's name.  features: those that are present, by LLVM's names."""

    cpu: str
    features: frozenset[str]

    @classmethod
    def at_level(cls, level: str) -> "CpuTarget":
        """One of ``LEVELS``, or ``native``: the host.  Raises TargetError for another."""
        if level == "native":
            return host_cpu()
        if level not in LEVELS:
            raise TargetError(f"no CPU level {level!r}; known are native, {', '.join(LEVELS)}")
        cpu, features = LEVELS[level]
        return cls(cpu, frozenset((*features, "sse2")))

    @property
    def vector_bytes(self) -> int:
        """Bytes of the widest vector register."""
        if "avx512f" in self.features:
            return 64
        return 32 if "avx2" in self.features else 16

    @property
    def feature_string(self) -> str:
        """As LLVM's target machine takes them."""
        return ",".join(f"+{feature}" for feature in sorted(self.features))

    @property
    def flags(self) -> tuple[str, ...]:
        """The features by Linux's names; those that it has no name for are left out."""
        known = {_FLAGS.get(name, name) for name in self.features}
        if self.features == host_cpu().features:
            known &= host_flags()
        return tuple(sorted(known))

    def require_host(self) -> None:
        """Raises TargetError, naming what is missing, when the host cannot run the code."""
        missing = sorted(self.features - host_cpu().features)
        if missing:
            raise TargetError(
                f"this CPU ({host_cpu().cpu}) lacks {', '.join(missing)}, which the code for "
                f"{self.cpu} uses; compile for 'native' or a lower level"
            )


@cache
def host_cpu() -> CpuTarget:
    """The CPU this process runs on."""
    flags = llvm.get_host_cpu_features()
    return CpuTarget(llvm.get_host_cpu_name(), frozenset(name for name, on in flags.items() if on))


@cache
def physical_cores() -> int:
    """Cores this process may run on, each counted once however many threads it runs."""
    allowed = os.sched_getaffinity(0)
    siblings = set()
    for number in allowed:
        path = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        try:
            siblings.add(path.read_text())
        except OSError:
            return len(allowed)
    return len(siblings)


def target_machine(target: CpuTarget, optimization: int = 3) -> llvm.TargetMachine:
    """A machine that emits position-independent code, for the JIT and for shared libraries."""
    _initialize()
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=target.cpu,
        features=target.feature_string,
        opt=optimization,
        reloc="pic",
        codemodel="default",
    )


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
