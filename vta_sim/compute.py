"""What instructions do to the data, fast where the loop nest allows; else as
``dovetail.isa.semantics``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa import semantics
from dovetail.isa.footprint import nest
from dovetail.isa.instructions import Gemm, Instruction
from dovetail.isa.state import MachineState

__all__ = ["apply"]

ONE_THREAD = 1 << 18
"""Multiplications in one BLAS call, at most: OpenBLAS runs products up to this size on the calling
thread.

Waking more threads for products of this size costs more than they save, above all on a busy
machine.
"""
LEAST_ROWS = 8

EXACT_FLOAT32 = 1 << 24
"""Sums of products below this are exact in float32."""


def apply(state: MachineState, instruction: Instruction) -> None:
    """Change ``state`` exactly as ``semantics.execute`` does."""
    if isinstance(instruction, Gemm) and _matrix_product(state, instruction):
        return
    semantics.execute(state, instruction)


def _matrix_product(state: MachineState, gemm: Gemm) -> bool:
    """Run ``gemm`` as one matrix product; False, with nothing done, when it is none.

    It is one when each result is complete in itself (the reduced levels do not move ACC, the others
    reach every ACC word at most once) and each other level moves either weights or inputs.
    """
    config, extent = state.config, gemm.extent
    reduced, rows, columns = [], [], []
    for level, count in enumerate(extent):
        if count == 1:
            continue
        if gemm.reduction >> level & 1:
            if gemm.acc_stride[level]:
                return False
            reduced.append(level)
        elif gemm.wgt_stride[level] == 0:
            rows.append(level)
        elif gemm.act_stride[level] == 0:
            columns.append(level)
        else:
            return False

    def addresses(stem: str, levels: list[int], depth: int) -> NDArray[np.int64]:
        base, stride = getattr(gemm, f"{stem}_address"), getattr(gemm, f"{stem}_stride")
        return nest(base, [extent[i] for i in levels], [stride[i] for i in levels], depth)

    acc = addresses("acc", rows + columns, config.acc_depth)
    if len(np.unique(acc)) != len(acc):
        return False
    act = addresses("act", reduced + rows, config.act_depth)
    wgt = addresses("wgt", reduced + columns, config.wgt_depth)
    lanes = config.block
    terms = int(np.prod([extent[i] for i in reduced], dtype=np.int64)) * lanes
    exact = terms * (1 << 14) < EXACT_FLOAT32
    kind = np.float32 if exact else np.float64
    left = state.act[act].astype(kind).reshape(-1, terms)
    # Weights [column, reduced, out, in] become [(reduced, in), (column, out)].
    tiles = state.wgt[wgt].reshape(-1, terms // lanes, lanes, lanes)
    right = tiles.astype(kind).transpose(1, 3, 0, 2).reshape(terms, -1)
    product = _multiply(left, right)
    # acc runs over rows fastest; the product is [row, (column, out)].
    result = product.astype(np.int64).astype(np.int32)
    result = result.reshape(len(left), -1, lanes).transpose(1, 0, 2).reshape(-1, lanes)
    if gemm.accumulate:
        state.acc[acc] += result
    else:
        state.acc[acc] = result
    return True


def _multiply(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """``left @ right``, some rows at a time."""
    step = max(LEAST_ROWS, ONE_THREAD // right.size)
    if step >= len(left):
        return left @ right
    product = np.empty((len(left), right.shape[1]), left.dtype)
    for start in range(0, len(left), step):
        np.matmul(left[start : start + step], right, out=product[start : start + step])
    return product
