"""Tensor cores of NVIDIA's GPUs as intrinsics, from sm_80 on; ``warpgroups.py`` has Hopper's.

    mma_int8_int8:  c[t] += sum(int32(a[r, k]) * int32(b[n, k]) over k in 32)
    mma_float16_float16:  c[t] += sum(float32(a[r, k]) * float32(b[n, k]) over k in 16)

a: 16 rows of 32 bytes in shared memory; b: 16 rows, which are columns of the product, likewise.
The 32 threads of a warp do it together, and each has 8 of the 256 sums in registers: row r and
column n are element ``c[g, t, h, i, j]`` with

    r = 8 i + g,  n = 8 h + 2 t + j,  thread 4 g + t of the warp.

``mma_..._beside`` is the same with b in the order ``b[h, t, j, k]``, whatever columns of the
product its rows are: those of a thread may be side by side in memory then.

    copy_int8:  d[i] = s[i] over i in 16

is an asynchronous copy of 16 bytes, from memory to shared memory, by one thread.

Source: PTX ISA 8.5 (NVIDIA), 9.7.14.5, matrix fragments of mma.m16n8k16 and mma.m16n8k32, two of
which, side by side, are one of these.
"""

from collections.abc import Mapping

from ...dtypes import DType
from ...loops.expressions import Binary, BinaryFunction, Buffer, Cast, Variable
from ...loops.intrinsic import Intrinsic, by_name
from ...loops.ir import Function, Store, Update, loops
from .fragments import FRAGMENT_PRODUCTS, FRAGMENTS, ROW_RESULTS
from .warpgroups import GROUP_LANES, GROUP_PRODUCTS

__all__ = [
    "BESIDE",
    "COPIED_BYTES",
    "COPIES",
    "HOPPER",
    "INTRINSICS",
    "PRODUCTS",
    "ROW_BYTES",
    "lanes_of",
]

COPIED_BYTES = 16
"""A copy has so many, which begin at a multiple of them."""
ROWS, COLUMNS = 16, 16
ROW_BYTES = 32
"""A row of an operand has so many, whatever its elements are."""
LANES = (8, 4)
"""The dimensions of a result that are the threads of a warp: the first two."""


def _product(a: DType, b: DType, beside: bool = False) -> Intrinsic:
    total = DType.FLOAT32 if a.is_float else DType.INT32
    depth = ROW_BYTES // a.bytes
    name = f"mma_{a}_{b}" + ("_beside" if beside else "")
    columns = (2, 4, 2) if beside else (COLUMNS,)
    left, right = Buffer("a", (ROWS, depth), a), Buffer("b", (*columns, depth), b)
    sums = Buffer("c", (*LANES, 2, 2, 2), total)
    i, g, h, t, j, k = map(Variable, "ightjk")
    row, column = i * 8 + g, (h, t, j) if beside else (h * 8 + t * 2 + j,)
    value = Binary(BinaryFunction.MUL, Cast(total, left[row, k]), Cast(total, right[(*column, k)]))
    update = Update(sums, (g, t, h, i, j), BinaryFunction.ADD, value)
    nest = loops((("i", 2), ("g", 8), ("h", 2), ("t", 4), ("j", 2), ("k", depth)), update)
    return Intrinsic(name, Function(name, (left, right), (sums,), nest))


def _copy(dtype: DType) -> Intrinsic:
    count, name = COPIED_BYTES // dtype.bytes, f"copy_{dtype}"
    source, target, i = Buffer("s", (count,), dtype), Buffer("d", (count,), dtype), Variable("i")
    nest = loops((("i", count),), Store(target, (i,), source[i]))
    return Intrinsic(name, Function(name, (source,), (target,), nest), asynchronous=True)


BYTES, HALVES = (DType.INT8, DType.UINT8), (DType.FLOAT16, DType.BFLOAT16)
PRODUCTS: Mapping[str, Intrinsic] = by_name(
    *(_product(a, b) for a in BYTES for b in BYTES), *(_product(each, each) for each in HALVES)
)
BESIDE: Mapping[str, Intrinsic] = by_name(
    *(_product(a, b, True) for a in BYTES for b in BYTES),
    *(_product(each, each, True) for each in HALVES),
)
"""The same products; see above."""
COPIES: Mapping[str, Intrinsic] = by_name(*map(_copy, (*BYTES, *HALVES)))
INTRINSICS: Mapping[str, Intrinsic] = {**PRODUCTS, **BESIDE, **COPIES, **FRAGMENTS}
"""Intrinsics that a kernel for these GPUs may call; ..."""
HOPPER: Mapping[str, Intrinsic] = {**INTRINSICS, **GROUP_PRODUCTS}
"""... and one for sm_90a."""
OF_WARPS = frozenset((*PRODUCTS, *BESIDE, *FRAGMENT_PRODUCTS, *ROW_RESULTS))
"""Intrinsics that all threads of a warp execute together."""


def lanes_of(name: str) -> tuple[int, ...]:
    """The dimensions of an intrinsic's result that are threads; none where one thread does it."""
    if name in GROUP_PRODUCTS:
        return GROUP_LANES
    return LANES if name in OF_WARPS else ()
