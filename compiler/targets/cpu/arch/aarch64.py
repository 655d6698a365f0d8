"""AArch64, the 64-bit state of Arm: code is made and linked for it, but no test here can run it.

Sources: Arm ARM (DDI 0487), C6 and C7 (SDOT, USDOT, YIELD); ELF for the Arm 64-bit Architecture
(AAELF64), section 5.7 (relocations); Linux, include/uapi/asm-generic/unistd.h and
arch/arm64/kernel/cpuinfo.c (names of features).
"""

from types import MappingProxyType

from ....dtypes import DType
from .arch import Ability, Arch, Dot, Level, Relocation, Stub, System, Vectors

__all__ = ["AARCH64"]

_BASE = frozenset({"neon", "fp-armv8"})
_DOT, _MIXED = frozenset({"dotprod"}), frozenset({"i8mm"})
_PAGE, _ADD, _LOAD_64 = 275, 277, 286
_BRANCH = Relocation(((26, 0),), shift=2)


def _low(shift: int) -> Relocation:
    return Relocation(((12, 10),), shift=shift, low=True)


AARCH64 = Arch(
    name="aarch64",
    triple="aarch64-unknown-linux-gnu",
    levels=MappingProxyType(
        {
            "armv8": Level("generic", _BASE),
            "armv8dot": Level("generic", _BASE | _DOT),
            "armv8i8mm": Level("generic", _BASE | _DOT | _MIXED),
        }
    ),
    baseline="armv8",
    vectors=(Vectors("neon", 16, 32),),
    abilities=MappingProxyType(
        {Ability.HALF_FLOATS: "neon", Ability.MULTIPLY_ADD: "neon", Ability.ROUND: "neon"}
    ),
    dots=tuple(
        Dot(dtype, lanes, needs, f"llvm.aarch64.neon.{name}.v4i32.v16i8", 4)
        for dtype, needs, name in ((DType.UINT8, _MIXED, "usdot"), (DType.INT8, _DOT, "sdot"))
        for lanes in (16, 8, 4)
    ),
    to_int32=(),
    packing=None,
    pause=("llvm.aarch64.hint", ("i32 1",)),
    system=System(futex=98, gettid=178, sched_setaffinity=122, sched_getaffinity=123),
    machine=183,
    relocations=MappingProxyType(
        {
            261: Relocation(((32, 0),)),
            _PAGE: Relocation(((2, 29), (19, 5)), shift=12, pages=True),
            _ADD: _low(0),
            278: _low(0),
            282: _BRANCH,
            283: _BRANCH,
            284: _low(1),
            285: _low(2),
            _LOAD_64: _low(3),
            299: _low(4),
        }
    ),
    stub=Stub(bytes.fromhex("10000090110240f920021fd6"), ((0, _PAGE, 0), (4, _LOAD_64, 0))),
    filler=b"\0",
    linux_flags=MappingProxyType(
        {"neon": "asimd", "fp-armv8": "fp", "dotprod": "asimddp", "fullfp16": "asimdhp"}
    ),
)
"""``adrp x16, slot; ldr x17, [x16, slot]; br x17`` is the stub."""
