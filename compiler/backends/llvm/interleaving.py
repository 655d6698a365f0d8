"""Columns of bytes brought together in rows."""

from ...dtypes import DType
from .context import Place
from .emitter import Emitter
from .values import Value, llvm_type

__all__ = ["emit_interleave"]


def emit_interleave(e: Emitter, a: Place, b: Place, c: Place, d: Place, rows: Place) -> None:
    """``rows[i] = a[i], b[i], c[i], d[i]``, all contiguous."""
    lanes = a.buffer.elements
    kind = llvm_type(DType.UINT8, lanes)
    columns = [
        e.op(f"load {kind}, ptr {each.pointer}, align 1", DType.UINT8, lanes)
        for each in (a, b, c, d)
    ]
    left, right = _woven(e, columns[0], columns[1], 1), _woven(e, columns[2], columns[3], 1)
    result = _woven(e, left, right, 2)
    e.line(f"store {result.typed}, ptr {rows.pointer}, align 1")


def _woven(e: Emitter, a: Value, b: Value, size: int) -> Value:
    """``size`` elements of each, in turn."""
    count = 2 * a.lanes
    picks = [
        n // (2 * size) * size + n % size + (a.lanes if n // size % 2 else 0) for n in range(count)
    ]
    mask = ", ".join(f"i32 {pick}" for pick in picks)
    text = f"shufflevector {a.typed}, {b.typed}, <{count} x i32> <{mask}>"
    return e.op(text, a.dtype, count)
