"""Instructions of dot products, by what the CPU has."""

from dataclasses import dataclass

from ....dtypes import DType
from .context import Place
from .conversions import convert, to_float32
from .emitter import Emitter
from .values import Value, constant, llvm_type

__all__ = ["Dot", "emit_dot"]


@dataclass(frozen=True, slots=True)
class Dot:
    """``c[lanes] += a . b[lanes, ...]``; columns: ``a[..., lane]`` in place of ``a``."""

    a: DType
    b: DType
    lanes: int
    columns: bool = False


def emit_dot(e: Emitter, dot: Dot, a: Place, b: Place, c: Place) -> None:
    """The dot product of operands that are contiguous."""
    count = 4 // dot.a.bytes
    total = DType.FLOAT32 if dot.a.is_float else DType.INT32
    before = _load(e, c, total, dot.lanes)
    vector = _load(e, b, dot.b, dot.lanes * count)
    if dot.columns:
        after = _columns(e, dot, before, _load(e, a, dot.a, dot.lanes * count), vector)
        e.line(f"store {after.typed}, ptr {c.pointer}, align 4")
        return
    four = _load(e, a, DType.INT32, 1)
    match dot.a:
        case DType.UINT8 | DType.INT8:
            after = _bytes(e, dot, before, four, vector)
        case DType.INT16:
            after = _pairs(e, before, _spread(e, four, dot), vector)
        case _:
            after = _bfloat16(e, dot, before, four, vector)
    e.line(f"store {after.typed}, ptr {c.pointer}, align 4")


def _load(e: Emitter, place: Place, dtype: DType, lanes: int) -> Value:
    text = f"load {llvm_type(dtype, lanes)}, ptr {place.pointer}, align {place.buffer.dtype.bytes}"
    return e.op(text, dtype, lanes)


def _spread(e: Emitter, four: Value, dot: Dot) -> Value:
    """Four bytes, of one operand's elements, in every lane."""
    wide = e.broadcast(four, dot.lanes)
    lanes = dot.lanes * 4 // dot.a.bytes
    return e.op(f"bitcast {wide.typed} to {llvm_type(dot.a, lanes)}", dot.a, lanes)


def _shuffled(e: Emitter, a: Value, picks: list[int]) -> Value:
    mask = ", ".join(f"i32 {pick}" for pick in picks)
    text = f"shufflevector {a.typed}, {a.type} poison, <{len(picks)} x i32> <{mask}>"
    return e.op(text, a.dtype, len(picks))


def _bytes(e: Emitter, dot: Dot, before: Value, four: Value, vector: Value) -> Value:
    name = _vnni(e, dot.lanes)
    if name is None:
        return _bytes_as_words(e, dot, before, four, vector)
    if dot.a is DType.UINT8:
        return e.call(name, DType.INT32, dot.lanes, (before, _spread(e, four, dot), vector))
    raised = e.binary("xor", four, constant(-0x7F7F7F80, DType.INT32))
    sums = e.call(name, DType.INT32, dot.lanes, (before, _spread(e, raised, dot), vector))
    offset = constant(-128, DType.INT8, vector.lanes)
    zero = constant(0, DType.INT32, dot.lanes)
    return e.binary("sub", sums, e.call(name, DType.INT32, dot.lanes, (zero, offset, vector)))


def _columns(e: Emitter, dot: Dot, before: Value, rows: Value, vector: Value) -> Value:
    """The four elements of each lane of ``rows`` brought together: a transposition."""
    lanes = dot.lanes
    name = _vnni(e, lanes)
    if name is not None:
        picked = _shuffled(e, rows, [lanes * (n % 4) + n // 4 for n in range(4 * lanes)])
        return e.call(name, DType.INT32, lanes, (before, picked, vector))
    total = before
    for pair in (0, 2):
        left = [lanes * (pair + n % 2) + n // 2 for n in range(2 * lanes)]
        right = [4 * (n // 2) + pair + n % 2 for n in range(2 * lanes)]
        both = (_shuffled(e, each, own) for each, own in ((rows, left), (vector, right)))
        total = _pairs(e, total, *(convert(e, each, DType.INT16) for each in both))
    return total


def _vnni(e: Emitter, lanes: int) -> str | None:
    """The intrinsic of unsigned times signed bytes, if the CPU has it."""
    features = e.module.target.features
    wide = {"avx512vnni"} <= features
    narrow = "avxvnni" in features or {"avx512vnni", "avx512vl"} <= features
    if lanes == 16:
        return "llvm.x86.avx512.vpdpbusd.512" if wide else None
    return f"llvm.x86.avx512.vpdpbusd.{32 * lanes}" if narrow else None


def _bytes_as_words(e: Emitter, dot: Dot, before: Value, four: Value, vector: Value) -> Value:
    """Pairs of bytes as pairs of 16-bit words, which cannot overflow."""
    scalars = e.op(f"bitcast {four.typed} to {llvm_type(dot.a, 4)}", dot.a, 4)
    words = convert(e, scalars, DType.INT16)
    total = before
    for pair in (0, 1):
        picked = _shuffled(e, words, [2 * pair, 2 * pair + 1])
        both = e.op(f"bitcast {picked.typed} to i32", DType.INT32)
        spread = e.broadcast(both, dot.lanes)
        lanes = 2 * dot.lanes
        left = e.op(f"bitcast {spread.typed} to <{lanes} x i16>", DType.INT16, lanes)
        picks = [4 * (n // 2) + 2 * pair + n % 2 for n in range(lanes)]
        right = convert(e, _shuffled(e, vector, picks), DType.INT16)
        total = _pairs(e, total, left, right)
    return total


def _pairs(e: Emitter, before: Value, a: Value, b: Value) -> Value:
    """``before[i] + a[2i] b[2i] + a[2i+1] b[2i+1]``, by vpdpwssd, or vpmaddwd in its width."""
    features = e.module.target.features
    lanes = before.lanes
    if lanes == 16 and "avx512vnni" in features:
        return e.call("llvm.x86.avx512.vpdpwssd.512", DType.INT32, lanes, (before, a, b))
    width = 16 if "avx512bw" in features else 8 if "avx2" in features else 4
    width = min(width, lanes)
    name = {16: "avx512.pmaddw.d.512", 8: "avx2.pmadd.wd", 4: "sse2.pmadd.wd"}[width]
    parts = []
    for first in range(0, lanes, width):
        picks = list(range(2 * first, 2 * (first + width)))
        operands = [_shuffled(e, x, picks) if width < lanes else x for x in (a, b)]
        parts.append(e.call(f"llvm.x86.{name}", DType.INT32, width, operands))
    while len(parts) > 1:
        parts = [_joined(e, *parts[n : n + 2]) for n in range(0, len(parts), 2)]
    return e.binary("add", before, parts[0])


def _joined(e: Emitter, a: Value, b: Value) -> Value:
    lanes = 2 * a.lanes
    mask = ", ".join(f"i32 {pick}" for pick in range(lanes))
    text = f"shufflevector {a.typed}, {b.typed}, <{lanes} x i32> <{mask}>"
    return e.op(text, a.dtype, lanes)


def _bfloat16(e: Emitter, dot: Dot, before: Value, four: Value, vector: Value) -> Value:
    features = e.module.target.features
    if "avx512bf16" in features and (dot.lanes == 16 or "avx512vl" in features):
        kind = f"<{2 * dot.lanes} x bfloat>"
        name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * dot.lanes}"
        operands = []
        for each in (_spread(e, four, dot), vector):
            operands.append(e.op(f"bitcast {each.typed} to {kind}", each.dtype, each.lanes))
        result = before.type
        e.module.declare(name, result, (result, kind, kind))
        arguments = ", ".join((before.typed, *(f"{kind} {each.ref}" for each in operands)))
        return e.op(f"call {result} @{name}({arguments})", before.dtype, before.lanes)
    pair = e.op(f"bitcast {four.typed} to {llvm_type(dot.a, 2)}", dot.a, 2)
    total = before
    for n in (0, 1):
        left = e.broadcast(to_float32(e, e.extract(pair, n)), dot.lanes)
        picked = _shuffled(e, vector, list(range(n, 2 * dot.lanes, 2)))
        total = e.intrinsic("fmuladd", left, to_float32(e, picked), total)
    return total
