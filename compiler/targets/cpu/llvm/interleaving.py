"""Columns of bytes brought together in rows; vectors packed as bytes."""

from collections.abc import Sequence

from ....dtypes import DType
from ...llvm.values import Value, constant, llvm_type
from .context import Place
from .emitter import Emitter

__all__ = ["emit_interleave", "emit_pack"]


def emit_interleave(e: Emitter, places: Sequence[Place], rows: Place) -> None:
    """``rows[i]`` is the i-th of each of three or four columns; all are contiguous."""
    lanes = places[0].buffer.elements
    kind = llvm_type(DType.UINT8, lanes)
    columns = [
        e.op(f"load {kind}, ptr {each.pointer}, align 1", DType.UINT8, lanes) for each in places
    ]
    last = Value("poison", DType.UINT8, lanes)
    columns += [last] * (4 - len(columns))
    left, right = _woven(e, columns[0], columns[1], 1), _woven(e, columns[2], columns[3], 1)
    result = _woven(e, left, right, 2)
    if len(places) == 3:
        picks = ", ".join(f"i32 {4 * (n // 3) + n % 3}" for n in range(3 * lanes))
        text = f"shufflevector {result.typed}, {result.type} poison, <{3 * lanes} x i32> <{picks}>"
        result = e.op(text, DType.UINT8, 3 * lanes)
    e.line(f"store {result.typed}, ptr {rows.pointer}, align 1")


def emit_pack(e: Emitter, vectors: Sequence[Place], rows: Place) -> None:
    """``rows[n] = vectors[n]``, limited to 0..255; the vectors and each row are contiguous.

    The instructions saturate, but pack 128 bits at a time: the parts of a row are apart.
    """
    lanes = vectors[0].buffer.elements
    kind = llvm_type(DType.INT32, lanes)
    loaded = [
        e.op(f"load {kind}, ptr {each.pointer}, align 4", DType.INT32, lanes) for each in vectors
    ]
    target = e.module.target
    packing = target.arch.packing
    if lanes != 16 or packing is None or not packing.needs <= target.features:
        for number, each in enumerate(loaded):
            _store_row(e, rows, number, _limited(e, each))
        return
    pairs = [e.call(packing.words, DType.INT16, 32, loaded[n : n + 2]) for n in (0, 2)]
    packed = e.call(packing.bytes, DType.UINT8, 64, pairs)
    words = e.op(f"bitcast {packed.typed} to <16 x i32>", DType.INT32, 16)
    mask = ", ".join(f"i32 {4 * (n % 4) + n // 4}" for n in range(16))
    text = f"shufflevector {words.typed}, {words.type} poison, <16 x i32> <{mask}>"
    ordered = e.op(text, DType.INT32, 16)
    result = e.op(f"bitcast {ordered.typed} to <64 x i8>", DType.UINT8, 64)
    if rows.strides[0] == lanes:
        e.line(f"store {result.typed}, ptr {rows.pointer}, align 1")
        return
    for number in range(len(loaded)):
        picks = ", ".join(f"i32 {lanes * number + n}" for n in range(lanes))
        text = f"shufflevector {result.typed}, {result.type} poison, <{lanes} x i32> <{picks}>"
        _store_row(e, rows, number, e.op(text, DType.UINT8, lanes))


def _store_row(e: Emitter, rows: Place, number: int, value: Value) -> None:
    text = f"getelementptr inbounds i8, ptr {rows.pointer}, i64 {number * rows.strides[0]}"
    pointer = e.op(text, DType.INT64).ref
    e.line(f"store {value.typed}, ptr {pointer}, align 1")


def _limited(e: Emitter, a: Value) -> Value:
    a = e.intrinsic("smax", a, constant(0, a.dtype, a.lanes))
    a = e.intrinsic("smin", a, constant(255, a.dtype, a.lanes))
    return e.convert("trunc", a, DType.UINT8)


def _woven(e: Emitter, a: Value, b: Value, size: int) -> Value:
    """``size`` elements of each, in turn."""
    count = 2 * a.lanes
    picks = [
        n // (2 * size) * size + n % size + (a.lanes if n // size % 2 else 0) for n in range(count)
    ]
    mask = ", ".join(f"i32 {pick}" for pick in picks)
    text = f"shufflevector {a.typed}, {b.typed}, <{count} x i32> <{mask}>"
    return e.op(text, a.dtype, count)
