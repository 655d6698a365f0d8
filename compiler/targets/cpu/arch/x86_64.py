"""x86-64.

Sources: x86-64 psABI, sections 3.1.1 (micro-architecture levels) and 4.4 (relocations); Intel SDM
volume 2 (VPDPBUSD, VPDPWSSD, PMADDWD, VDPBF16PS, CVTPS2DQ, PACKSSDW, PACKUSWB, PAUSE); Linux,
arch/x86/include/asm/cpufeatures.h and arch/x86/entry/syscalls/syscall_64.tbl.
"""

from types import MappingProxyType

from ....dtypes import DType
from .arch import (
    Ability,
    Arch,
    Dot,
    Features,
    Level,
    Packing,
    Relocation,
    Stub,
    System,
    ToInt32,
    Vectors,
)

__all__ = ["X86_64"]

_AVX2 = frozenset(
    (
        *("sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf", "avx", "avx2"),
        *("bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
    )
)
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


def _needs(*features: str) -> Features:
    return frozenset(features)


def _byte_dots(lanes: int, *needs: Features) -> tuple[Dot, ...]:
    name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
    return tuple(Dot(DType.UINT8, lanes, each, name, lanes) for each in needs)


def _pair_dots(lanes: int) -> tuple[Dot, ...]:
    kinds = (
        (16, "llvm.x86.avx512.pmaddw.d.512", _needs("avx512bw")),
        (8, "llvm.x86.avx2.pmadd.wd", _needs("avx2")),
        (4, "llvm.x86.sse2.pmadd.wd", _needs()),
    )
    return tuple(
        Dot(DType.INT16, lanes, needs, name, width, adds=False)
        for width, name, needs in kinds
        if width <= lanes
    )


def _bfloat16_dot(lanes: int, *needs: str) -> Dot:
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    return Dot(DType.BFLOAT16, lanes, _needs("avx512bf16", *needs), name, lanes)


_VNNI, _NARROW_VNNI = _needs("avx512vnni"), _needs("avx512vnni", "avx512vl")
_PC32, _PLT32 = 2, 4

X86_64 = Arch(
    name="x86-64",
    triple="x86_64-unknown-linux-gnu",
    levels=MappingProxyType(
        {
            "x86-64": Level("x86-64", _needs("sse2")),
            "avx2": Level("x86-64-v3", _AVX2),
            "avx512": Level("x86-64-v4", _AVX512),
            "avx512vnni": Level("x86-64-v4", _AVX512 | _VNNI),
        }
    ),
    baseline="x86-64",
    vectors=(Vectors("avx512f", 64, 32), Vectors("avx2", 32, 16), Vectors("sse2", 16, 16)),
    abilities=MappingProxyType(
        {
            Ability.HALF_FLOATS: "f16c",
            Ability.MULTIPLY_ADD: "fma",
            Ability.ROUND: "sse4.1",
            Ability.GATHER: "avx2",
            Ability.MASK_WORDS: "avx",
            Ability.MASK_BYTES: "avx512vl",
        }
    ),
    dots=(
        *_byte_dots(16, _VNNI),
        *_byte_dots(8, _needs("avxvnni"), _NARROW_VNNI),
        *_byte_dots(4, _needs("avxvnni"), _NARROW_VNNI),
        Dot(DType.INT16, 16, _VNNI, "llvm.x86.avx512.vpdpwssd.512", 16),
        *(dot for lanes in (16, 8, 4) for dot in _pair_dots(lanes)),
        _bfloat16_dot(16),
        _bfloat16_dot(8, "avx512vl"),
        _bfloat16_dot(4, "avx512vl"),
    ),
    to_int32=(
        ToInt32(4, _needs(), "llvm.x86.sse2.cvtps2dq", "llvm.x86.sse2.cvttps2dq"),
        ToInt32(8, _needs("avx"), "llvm.x86.avx.cvt.ps2dq.256", "llvm.x86.avx.cvtt.ps2dq.256"),
        ToInt32(
            16,
            _needs("avx512f"),
            "llvm.x86.avx512.mask.cvtps2dq.512",
            "llvm.x86.avx512.mask.cvttps2dq.512",
            masked=True,
        ),
    ),
    packing=Packing(
        _needs("avx512bw"), "llvm.x86.avx512.packssdw.512", "llvm.x86.avx512.packuswb.512"
    ),
    pause=("llvm.x86.sse2.pause", ()),
    system=System(futex=202, gettid=186, sched_setaffinity=203, sched_getaffinity=204),
    machine=62,
    relocations=MappingProxyType({_PC32: Relocation(((32, 0),)), _PLT32: Relocation(((32, 0),))}),
    stub=Stub(b"\xff\x25\0\0\0\0\xcc\xcc", ((2, _PC32, -4),)),
    filler=b"\xcc",
    linux_flags=MappingProxyType(
        {
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
    ),
)
"""``jmp [rip + 32-bit offset]`` is the stub."""
