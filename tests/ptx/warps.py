"""Joint computations of the threads of a warp: matrices in fragments.

A fragment is an array [warp, thread of the warp, element], an element in a register or in a part
of one.  Where each element of a matrix lies is written down from the manual's figures and formulas.
Source: PTX ISA 8.5 (NVIDIA), 9.7.14.5: mma.m16n8k16 with .f16 and .bf16, mma.m16n8k32 with .s8
and .u8, ldmatrix.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .operations import KINDS, UnknownInstructionError

__all__ = ["MULTIPLIED", "WARP", "matrix_rows", "multiplied"]

Array = NDArray[Any]
WARP = 32
LANE = np.arange(WARP)[:, None]
GROUP, THREAD = LANE >> 2, LANE & 3
"""The manual's groupID and threadID_in_group."""

PAIRS: Mapping[str, tuple[str, ...]] = {
    "m16n8k32": ("s8", "u8"),
    "m16n8k16": ("f16", "bf16"),
}
MULTIPLIED: Mapping[str, tuple[str, str]] = {"m16n8k32": ("s32", "s32"), "m16n8k16": ("f32", "f32")}
"""The types of sums and results, by shape."""


def _a(shape: str) -> tuple[Array, Array]:
    """Rows and columns of the elements of A."""
    if shape == "m16n8k32":
        i = np.arange(16)
        row = np.where((i < 4) | ((i >= 8) & (i < 12)), GROUP, GROUP + 8)
        return row, THREAD * 4 + (i & 3) + np.where(i < 8, 0, 16)
    i = np.arange(8)
    row = np.where((i < 2) | ((i >= 4) & (i < 6)), GROUP, GROUP + 8)
    return row, THREAD * 2 + (i & 1) + np.where(i < 4, 0, 8)


def _b(shape: str) -> tuple[Array, Array]:
    """Rows and columns of the elements of B."""
    if shape == "m16n8k32":
        i = np.arange(8)
        return THREAD * 4 + (i & 3) + np.where(i < 4, 0, 16), GROUP + 0 * i
    i = np.arange(4)
    return THREAD * 2 + (i & 1) + np.where(i < 2, 0, 8), GROUP + 0 * i


def _c() -> tuple[Array, Array]:
    """Rows and columns of the elements of C and D."""
    i = np.arange(4)
    return np.where(i < 2, GROUP, GROUP + 8), THREAD * 2 + (i & 1)


def multiplied(words: tuple[str, ...], a: Array, b: Array, c: Array) -> Array:
    """``D = A B + C`` of fragments: registers, as uint32[warp, 32, registers].

    words: the instruction, cut at the dots.  Sums of floats are in float64 and rounded once.
    Raises UnknownInstructionError.
    """
    _, *modes, shape, left, right, total, first, second, start = words
    known = (
        modes == ["sync", "aligned"]
        and (left, right) == ("row", "col")
        and (total, start) == MULTIPLIED.get(shape)
        and {first, second} <= set(PAIRS[shape])
        and (shape == "m16n8k32" or first == second)
    )
    if not known:
        raise UnknownInstructionError(".".join(words))
    depth = int(shape.partition("k")[2])
    kind = KINDS[total]
    wide = np.int64 if kind.kind == "i" else np.float64
    warps = len(a)
    matrices = []
    for held, name, size, place in (
        (a, first, (16, depth), _a(shape)),
        (b, second, (depth, 8), _b(shape)),
        (c, start, (16, 8), _c()),
    ):
        elements = np.ascontiguousarray(held).view(KINDS[name]).astype(wide)
        matrix = np.zeros((warps, *size), wide)
        matrix[:, place[0], place[1]] = elements
        matrices.append(matrix)
    found = (matrices[0] @ matrices[1] + matrices[2]).astype(kind)
    rows, columns = _c()
    return np.ascontiguousarray(found[:, rows, columns]).view(np.uint32)


def matrix_rows(count: int, turned: bool = False) -> tuple[Array, Array]:
    """Where the bytes are that each thread receives from ``ldmatrix`` of so many matrices.

    Of each thread, matrix and byte of a register: the thread of the warp that has the address of
    the row, and the byte in the row.  turned: with ``.trans`` a register holds two elements of a
    column.
    """
    numbers, byte = np.arange(count)[:, None], np.arange(4)
    group, thread = GROUP[..., None], THREAD[..., None]
    if turned:
        return 8 * numbers + 2 * thread + byte // 2, 2 * group + byte % 2 + 0 * numbers
    return 8 * numbers + group + 0 * byte, 4 * thread + byte + 0 * numbers
