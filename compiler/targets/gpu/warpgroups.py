"""Tensor cores of Hopper GPUs (sm_90a) as intrinsics: products of four warps at a time.

    wgmma_float16_float16_N:  c[t] += sum(float32(a[r, k]) * float32(b[n, k]) over k in 64)
    wgmma_int8_int8_N:  c[t] += sum(int32(a[r, k]) * int32(b[n, k]) over k in 128)

a: 64 rows of 128 bytes in shared memory; b: N rows, which are columns of the product, likewise.
The 128 threads of a warpgroup do it together, while they go on: it is asynchronous, and neither
operands nor sums may be touched before a wait.  Each thread has N / 2 of the sums in registers: row
r and column n are element ``c[w, g, t, p, h, i, j]`` with

    r = 16 w + 8 i + g,  n = 32 p + 8 h + 2 t + j,  thread 32 w + 4 g + t of the warpgroup.

Row n of b is ``b[p, h, t, j]``, whatever column of the product it is: so the columns of a thread
may be side by side in memory.

Rows of operands are in shared memory one after the other, in pieces of 16 bytes: piece p of row r
is where p ^ (r % 8) of them would come before it, so that eight rows have it in different banks.

Source: PTX ISA 8.5 (NVIDIA), 9.7.15.5: wgmma.mma_async with .f16, .bf16, .s8 and .u8, the fragment
of D, shared memory in the 128-byte swizzling mode.  Four instructions are one of these.
"""

from collections.abc import Mapping

from ...dtypes import DType
from ...loops.expressions import Binary, BinaryFunction, Buffer, Cast, Variable
from ...loops.intrinsic import Intrinsic, by_name
from ...loops.ir import Function, Update, loops

__all__ = ["ATOM_BYTES", "COLUMNS", "GROUP_LANES", "GROUP_PRODUCTS", "ROWS"]

ROWS = 64
COLUMNS = (16, 32, 64, 128, 192, 256)
"""A product has one of these numbers."""
ATOM_BYTES = 128
"""A row of an operand has so many, whatever its elements are."""
GROUP_LANES = (4, 8, 4)
"""The dimensions of a result that are the threads of a warpgroup: the first three."""


def _product(a: DType, b: DType, columns: int) -> Intrinsic:
    total = DType.FLOAT32 if a.is_float else DType.INT32
    depth = ATOM_BYTES // a.bytes
    name = f"wgmma_{a}_{b}_{columns}"
    pairs = min(columns // 8, 4)
    parts = columns // (8 * pairs)
    left, right = Buffer("a", (ROWS, depth), a), Buffer("b", (parts, pairs, 4, 2, depth), b)
    sums = Buffer("c", (*GROUP_LANES, parts, pairs, 2, 2), total)
    w, i, g, p, h, t, j, k = map(Variable, "wigphtjk")
    row = w * 16 + i * 8 + g
    factors = Cast(total, left[row, k]), Cast(total, right[p, h, t, j, k])
    update = Update(
        sums, (w, g, t, p, h, i, j), BinaryFunction.ADD, Binary(BinaryFunction.MUL, *factors)
    )
    extents = (4, 2, 8, parts, pairs, 4, 2, depth)
    nest = loops(tuple(zip("wigphtjk", extents, strict=True)), update)
    return Intrinsic(name, Function(name, (left, right), (sums,), nest), asynchronous=True)


BYTES, HALVES = (DType.INT8, DType.UINT8), (DType.FLOAT16, DType.BFLOAT16)
TYPES = (*((a, b) for a in BYTES for b in BYTES), *((each, each) for each in HALVES))
GROUP_PRODUCTS: Mapping[str, Intrinsic] = by_name(
    *(_product(*types, columns) for types in TYPES for columns in COLUMNS)
)
