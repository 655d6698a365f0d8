"""Questions that code generation asks about a kind of CPU."""

from collections.abc import Mapping
from enum import Enum

from dovetail.isa.frozen import frozen

from ....dtypes import DType

__all__ = [
    "Ability",
    "Arch",
    "Dot",
    "Features",
    "Level",
    "Packing",
    "Relocation",
    "Stub",
    "System",
    "ToInt32",
    "Vectors",
]

Features = frozenset[str]
"""Features by LLVM's names."""


class Ability(Enum):
    """Operations that a CPU may do by one instruction; code for others takes several."""

    HALF_FLOATS = "conversions between float16 and float32"
    MULTIPLY_ADD = "a product and a sum with one rounding"
    ROUND = "rounding to whole numbers"
    GATHER = "loads of lanes from anywhere, of 4 and 8 bytes"
    MASK_WORDS = "memory accesses under a mask, of elements of 4 and 8 bytes"
    MASK_BYTES = "memory accesses under a mask, of elements of 1 and 2 bytes"


@frozen
class Level:
    """A CPU that code can be made for on any host: LLVM's name of it, and its features."""

    cpu: str
    features: Features


@frozen
class Vectors:
    """Vector registers of ``bytes``, as many as ``registers``, of CPUs that have ``feature``."""

    feature: str
    bytes: int
    registers: int


@frozen
class Dot:
    """LLVM's intrinsic of a dot product in each lane, of CPUs that have all of ``needs``.

        uint8 or int8:  int32[width] = int32[width] + a[width, 4] . int8[width, 4]
        int16:          int32[width] = int32[width] + a[width, 2] . int16[width, 2]
        bfloat16:       float32[width] = float32[width] + a[width, 2] . bfloat16[width, 2]

    a: the type of the first operand's elements.  lanes: of the whole product; an intrinsic of less
    ``width`` is called for each part.  adds: it takes the sum so far; otherwise that is added.
    """

    a: DType
    lanes: int
    needs: Features
    intrinsic: str
    width: int
    adds: bool = True


@frozen
class ToInt32:
    """LLVM's intrinsics from float32[lanes] to int32[lanes], of CPUs that have ``needs``.

    They give the lowest int32 for NaN and what is out of range.  masked: they take, beside the
    operand, what lanes hold that a mask leaves out, the mask and a rounding.
    """

    lanes: int
    needs: Features
    nearest: str
    truncating: str
    masked: bool = False


@frozen
class Packing:
    """LLVM's intrinsics that narrow with saturation, 128 bits of each operand at a time.

    words: two int32[16] to int16[32].  bytes: two int16[32] to uint8[64].
    """

    needs: Features
    words: str
    bytes: str


@frozen
class Relocation:
    """How an address is written into code: a value, and the fields of bits that take it.

    The value is the target's address; pages: its and the place's pages of 4 KiB, the difference of
    these; low: the lowest 12 bits of it; neither: the difference to the place.  Shifted right by
    ``shift``, its lowest bits go to the fields, each of a number of bits at a bit of the 32 there.
    """

    fields: tuple[tuple[int, int], ...]
    shift: int = 0
    pages: bool = False
    low: bool = False


@frozen
class Stub:
    """Code that jumps to the address in a slot of the table of imports.

    relocations: place in the code, type and addend of each use of the slot's address.
    """

    code: bytes
    relocations: tuple[tuple[int, int, int], ...]


@frozen
class System:
    """Numbers of Linux's system calls."""

    futex: int
    gettid: int
    sched_setaffinity: int
    sched_getaffinity: int


@frozen
class Arch:
    """A kind of CPU.

    baseline: the level that every CPU of this kind has.  vectors: the widest first; each CPU has
    the last.  abilities: the feature that stands for each; there may be none.  dots, to_int32: the
    better first.  pause: LLVM's intrinsic, and its operands, that a waiting loop calls.
    machine: number of the kind in object files.  relocations: by their types in object files.
    filler: the byte between functions.  linux_flags: Linux's names of features, where they differ.
    """

    name: str
    triple: str
    levels: Mapping[str, Level]
    baseline: str
    vectors: tuple[Vectors, ...]
    abilities: Mapping[Ability, str]
    dots: tuple[Dot, ...]
    to_int32: tuple[ToInt32, ...]
    packing: Packing | None
    pause: tuple[str, tuple[str, ...]]
    system: System
    machine: int
    relocations: Mapping[int, Relocation]
    stub: Stub
    filler: bytes
    linux_flags: Mapping[str, str]
