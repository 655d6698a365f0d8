"""The CPU's dot products: what ``Invoke`` names, what it means, how it is emitted.

``dot_A_B_LANES`` is ``c[i] += sum over j of a[j] * b[i, j]``, a of A, b of B, c int32 or float32; j
runs over 4 elements of 8 bits or 2 of 16.

    name                  meaning                                  instruction, where there is one
    dot_uint8_int8_L      int32[L] += uint8[4] . int8[L, 4]        vpdpbusd (AVX512-VNNI, AVX-VNNI)
    dot_int8_int8_L       int32[L] += int8[4] . int8[L, 4]         vpdpbusd, twice
    dot_int16_int16_L     int32[L] += int16[2] . int16[L, 2]       vpdpwssd (AVX512-VNNI), vpmaddwd
    dot_bfloat16_bfloat16_L   float32[L] += bfloat16[2] . bfloat16[L, 2]   vdpbf16ps (AVX512-BF16)

``columns_A_B_LANES`` is ``c[i] += sum over j of a[j, i] * b[i, j]``.

    columns_uint8_int8_L  int32[L] += sum of uint8[4, L] * int8[L, 4]   the same, transposed first

``interleave_uint8_16xN`` is ``r[i] = a[i], b[i], c[i]``, N of them, 3 or 4.  ``pack_uint8_16`` is
``e[0] = a``, ``e[1] = b``, ..., int32 limited to 0..255 (vpackssdw, vpackuswb); rows of ``e`` may
are apart.

L is 4, 8 or 16.  Integer sums are exact on every CPU.  vdpbf16ps flushes subnormal numbers to zero.
Source: Intel SDM volume 2 (VPDPBUSD, PMADDWD, VDPBF16PS).
"""

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import Binary, BinaryFunction, Buffer, Cast, Constant, Variable, as_index
from ....loops.intrinsic import PREFETCH, Intrinsic
from ....loops.ir import Function, Invoke, Region, Stmt, Store, Update, block, loops
from ...llvm.values import Value, memory_type
from .context import Context, Place
from .dots import DotProduct, emit_dot
from .expressions import evaluate_scalar
from .interleaving import emit_interleave, emit_pack
from .memory import locate

__all__ = ["INTRINSICS", "columns", "dot", "interleave", "pack", "prepare"]

LANES = (4, 8, 16)


def dot(a: DType, b: DType, lanes: int) -> Intrinsic:
    """The declaration of one."""
    total = DType.FLOAT32 if a.is_float else DType.INT32
    count = 4 // a.bytes
    name = f"dot_{a}_{b}_{lanes}"
    x, y = Buffer("a", (count,), a), Buffer("b", (lanes, count), b)
    c = Buffer("c", (lanes,), total)
    i, j = Variable("i"), Variable("j")
    product = Cast(total, x[j]) * Cast(total, y[i, j])
    update = Update(c, (i,), BinaryFunction.ADD, product)
    return Intrinsic(
        name, Function(name, (x, y), (c,), loops((("i", lanes), ("j", count)), update))
    )


def columns(lanes: int) -> Intrinsic:
    """The declaration of one of bytes."""
    x, y = Buffer("a", (4, lanes), DType.UINT8), Buffer("b", (lanes, 4), DType.INT8)
    c = Buffer("c", (lanes,), DType.INT32)
    i, j = Variable("i"), Variable("j")
    product = Cast(DType.INT32, x[j, i]) * Cast(DType.INT32, y[i, j])
    body = loops((("i", lanes), ("j", 4)), Update(c, (i,), BinaryFunction.ADD, product))
    name = f"columns_uint8_int8_{lanes}"
    return Intrinsic(name, Function(name, (x, y), (c,), body))


def pack() -> Intrinsic:
    """The declaration of the one to bytes."""
    columns = [Buffer(name, (16,), DType.INT32) for name in "abcd"]
    rows, i = Buffer("e", (4, 16), DType.UINT8), Variable("i")
    low, high = Constant(0, DType.INT32), Constant(255, DType.INT32)
    stores = []
    for n, each in enumerate(columns):
        raised = Binary(BinaryFunction.MAX, each[i], low)
        limited = Binary(BinaryFunction.MIN, raised, high)
        stores.append(Store(rows, (as_index(n), i), Cast(DType.UINT8, limited)))
    body = loops((("i", 16),), block(*stores))
    name = "pack_uint8_16"
    return Intrinsic(name, Function(name, tuple(columns), (rows,), body))


def interleave(count: int) -> Intrinsic:
    """The declaration of the one of ``count`` columns."""
    columns = [Buffer(name, (16,), DType.UINT8) for name in "abcd"[:count]]
    rows, i = Buffer("r", (16, count), DType.UINT8), Variable("i")
    stores = (Store(rows, (i, as_index(n)), each[i]) for n, each in enumerate(columns))
    body = loops((("i", 16),), block(*stores))
    name = f"interleave_uint8_16x{count}"
    return Intrinsic(name, Function(name, tuple(columns), (rows,), body))


KINDS = (
    (DType.UINT8, DType.INT8),
    (DType.INT8, DType.INT8),
    (DType.INT16, DType.INT16),
    (DType.BFLOAT16, DType.BFLOAT16),
)
INTRINSICS = {
    each.name: each
    for each in (
        *(dot(a, b, lanes) for a, b in KINDS for lanes in LANES),
        *(columns(lanes) for lanes in LANES),
        interleave(3),
        interleave(4),
        pack(),
    )
}
"""All that code can be made for."""


def prepare(context: Context, call: Invoke) -> tuple[Stmt, dict[str, Place]] | None:
    """Emit the instruction; or give the meaning to emit, and the places of its parameters.

    The latter where an operand is not contiguous.  Raises GraphError for an unknown intrinsic and
    for operands of other shapes or dtypes.
    """
    if call.intrinsic == PREFETCH:
        _prefetch(context, call)
        return None
    intrinsic = INTRINSICS.get(call.intrinsic)
    if intrinsic is None:
        raise GraphError(
            f"{context.function}: no intrinsic {call.intrinsic}; known are {', '.join(INTRINSICS)}"
        )
    intrinsic.check(call)
    places = {
        parameter.name: _place(context, region, parameter)
        for region, parameter in zip(call.operands, intrinsic.parameters, strict=True)
    }
    ordered = [places[parameter.name] for parameter in intrinsic.parameters]
    apart = [each for each in ordered if each.strides != Place(each.buffer, "").strides]
    if call.intrinsic == "pack_uint8_16" and all(each.strides[-1] == 1 for each in apart):
        emit_pack(context.e, ordered[:4], ordered[4])
        return None
    if apart:
        return intrinsic.meaning.body, places
    if call.intrinsic.startswith("interleave"):
        emit_interleave(context.e, ordered[:-1], ordered[-1])
        return None
    a, b, c = ordered
    kind = DotProduct(a.buffer.dtype, b.buffer.dtype, c.buffer.elements, len(a.buffer.shape) == 2)
    emit_dot(context.e, kind, a, b, c)
    return None


def _prefetch(context: Context, call: Invoke) -> None:
    """Into the second-level cache, the line of the first element of each region."""
    context.e.module.declare("llvm.prefetch.p0", "void", ("ptr", "i32", "i32", "i32"))
    for region in call.operands:
        place = _place(context, region, Buffer("line", (), region.buffer.dtype))
        context.e.line(f"call void @llvm.prefetch.p0(ptr {place.pointer}, i32 0, i32 2, i32 1)")


def _place(context: Context, region: Region, parameter: Buffer) -> Place:
    """The parameter as the region: from its first element on, with its buffer's strides."""
    place = context.places.get(region.buffer.name)
    if place is None:
        raise GraphError(f"{context.function}: {region.buffer.name} is not in scope")
    offset = locate(context, place, [evaluate_scalar(context, start) for start in region.start])
    assert isinstance(offset, Value)
    kind = memory_type(region.buffer.dtype)
    text = f"getelementptr inbounds {kind}, ptr {place.pointer}, {offset.typed}"
    pointer = context.e.op(text, DType.INT64).ref
    wide = [step for step, size in zip(place.strides, region.shape, strict=True) if size != 1]
    steps = [wide.pop(0) if size != 1 else 1 for size in parameter.shape]
    return Place(parameter, pointer, 1, tuple(steps))
