"""Products of warps: ``ldmatrix`` of both operands, and two ``mma``; asynchronous copies.

Operands are read again by each product; LLVM leaves out what a product before has read, since
nothing writes shared memory between them.
Source: PTX ISA 8.5, 9.7.14.5 (mma, ldmatrix), and 9.7.9.25.3 (cp.async).
"""

from collections.abc import Mapping

from ....dtypes import DType
from ....errors import GraphError
from ....loops.affine import linear
from ....loops.expressions import Scope
from ....loops.ir import Invoke, Region
from ..tensor_cores import COPIED_BYTES, ROW_BYTES
from .emitter import element_type, value_type
from .expressions import Expressions

__all__ = [
    "CHUNK",
    "as_factor",
    "emit_copy",
    "emit_fill",
    "emit_product",
    "load_matrices",
    "multiply",
]

LOAD = "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"
LANE = "llvm.nvvm.read.ptx.sreg.laneid"
FOUR = "{i32, i32, i32, i32}"
CHUNK = 16
"""Bytes of a row of one of the matrices that ``ldmatrix`` reads."""
COPY = "llvm.nvvm.cp.async.cg.shared.global.16"
WORDS: Mapping[DType, str] = {DType.INT8: "s8", DType.UINT8: "u8"}


def emit_product(x: Expressions, call: Invoke) -> None:
    """Its instructions, which all threads of the warp come to.

    Raises GraphError for rows of operands that do not begin at multiples of 16 bytes.
    """
    left, right, sums = call.operands
    given = [*load_matrices(x, left, (8, CHUNK)), *load_matrices(x, right, (CHUNK, 8))]
    dtypes = left.buffer.dtype, right.buffer.dtype
    multiply(x, *dtypes, [as_factor(x, dtypes[0], each) for each in given], sums)


def multiply(
    x: Expressions, a: DType, b: DType, given: list[tuple[str, str]], sums: Region
) -> None:
    """Two ``mma``, side by side: ``given`` are four registers of each factor."""
    e, kind = x.e, value_type(sums.buffer.dtype)
    instruction = _instruction(a, b)
    for half in (0, 1):
        places = [_place(x, sums, (half, i, j)) for i in (0, 1) for j in (0, 1)]
        memory = element_type(sums.buffer.dtype)
        old = [(kind, e.op(f"load {memory}, {each[0]} {each[1]}")) for each in places]
        factors = [*given[:4], *given[4 + 2 * half : 6 + 2 * half]]
        new = e.call(instruction, f"{{{', '.join([kind] * 4)}}}", *factors, *old)
        for number, (pointer, place) in enumerate(places):
            value = e.op(f"extractvalue {{{', '.join([kind] * 4)}}} {new}, {number}")
            e.line(f"store {memory} {value}, {pointer} {place}")


def emit_copy(x: Expressions, call: Invoke) -> None:
    """Its instruction.  Raises GraphError for places that are not multiples of 16 bytes."""
    x.e.call(COPY, "void", *_places(x, call))


def emit_fill(x: Expressions, call: Invoke, condition: str) -> None:
    """A copy where the condition holds, else zeros: of 16 bytes so many are read.  Raises as
    ``emit_copy``.
    """
    count = x.e.op(f"select i1 {condition}, i32 {COPIED_BYTES}, i32 0")
    x.e.call(f"{COPY}.s", "void", *_places(x, call), ("i32", count))


def _places(x: Expressions, call: Invoke) -> list[tuple[str, str]]:
    """The places that a copy writes and reads."""
    source, target = call.operands
    for region in call.operands:
        _require_aligned(region, f"a thread copies {COPIED_BYTES} bytes")
    if target.buffer.scope is not Scope.SHARED or source.buffer.scope is Scope.SHARED:
        raise GraphError(
            f"{target.buffer.name}: found a copy from {source.buffer.scope} to "
            f"{target.buffer.scope} memory; required one to shared memory"
        )
    return [x.place(each.buffer, tuple(x.evaluate(*each.start))) for each in (target, source)]


def _require_aligned(region: Region, what: str) -> None:
    """Raise GraphError unless the region begins at a multiple of 16 bytes of its buffer."""
    buffer = region.buffer
    form = linear(region.start[-1])
    steps = (form.constant, *form.terms.values(), buffer.shape[-1])
    if any(each * buffer.dtype.bytes % CHUNK for each in steps):
        raise GraphError(f"{buffer.name}: {what}; required rows at multiples of {CHUNK} bytes")


def _instruction(a: DType, b: DType) -> str:
    if a is DType.FLOAT16:
        return "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
    if a is DType.BFLOAT16:
        return "llvm.nvvm.mma.m16n8k16.row.col.bf16"
    kinds = WORDS[a] if a is b else f"{WORDS[a]}.{WORDS[b]}"
    return f"llvm.nvvm.mma.m16n8k32.row.col.{kinds}"


def as_factor(x: Expressions, dtype: DType, register: str) -> tuple[str, str]:
    """The type and the value of a register as ``mma`` takes it."""
    if dtype is not DType.FLOAT16:
        return "i32", register
    return "<2 x half>", x.e.op(f"bitcast i32 {register} to <2 x half>")


def _place(x: Expressions, region: Region, last: tuple[int, int, int]) -> tuple[str, str]:
    """The type and the value of a pointer to one of the sums."""
    first = x.evaluate(*region.start[:-3])
    return x.place(region.buffer, (*first, *map(str, last)))


def load_matrices(
    x: Expressions, region: Region, strides: tuple[int, int], turned: bool = False
) -> list[str]:
    """Four registers, each of one of 2 x 2 matrices of 8 rows of 16 bytes.

    strides: what the two bits of a matrix's number move by: 8 rows, or 16 bytes.  turned: rows of
    the matrices become columns.

    Raises GraphError for rows that do not begin at multiples of 16 bytes of shared memory.
    """
    buffer = region.buffer
    row_bytes = buffer.shape[-1] * buffer.dtype.bytes
    _require_aligned(region, f"a warp reads rows of {ROW_BYTES} bytes")
    if buffer.scope is not Scope.SHARED:
        raise GraphError(f"{buffer.name}: a warp reads {buffer.scope} memory; required shared")
    e = x.e
    pointer, place = x.place(buffer, tuple(x.evaluate(*region.start)))
    lane = e.call(LANE, "i32")
    row, low = e.op(f"and i32 {lane}, 7"), e.op(f"lshr i32 {lane}, 3")
    bits = e.op(f"and i32 {low}, 1"), e.op(f"lshr i32 {low}, 1")
    offset = e.op(f"mul i32 {row}, {row_bytes}")
    for bit, stride in zip(bits, strides, strict=True):
        step = stride if stride == CHUNK else stride * row_bytes
        offset = e.op(f"add i32 {offset}, {e.op(f'mul i32 {bit}, {step}')}")
    own = e.op(f"getelementptr i8, {pointer} {place}, i32 {offset}")
    load = LOAD.replace("x4", "x4.trans") if turned else LOAD
    found = e.call(load, FOUR, (pointer, own))
    return [e.op(f"extractvalue {FOUR} {found}, {number}") for number in range(4)]
