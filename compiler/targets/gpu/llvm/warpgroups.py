"""Products of warpgroups: descriptors of operands in shared memory, and inline assembly.

All products of one row of 128 bytes are one piece of assembly, whose registers are its results and
its inputs, as those of the wait are: nothing comes between them, and the assembler keeps them where
they are.  What threads copied they show to the asynchronous proxy, by which products read.

Source: PTX ISA 8.5, 9.7.15.5 (wgmma: matrix descriptor, mma_async, fence, commit_group, wait_group)
and 9.7.13.4 (fence.proxy.async); the bits of descriptors for rows in the 128-byte mode are those of
NVIDIA's CUTLASS (include/cute/arch/mma_sm90_desc.hpp, atom/mma_traits_sm90_gmma.hpp).
"""

from collections.abc import Iterable, Mapping
from math import prod

from ....dtypes import DType
from ....errors import GraphError
from ....loops.affine import linear
from ....loops.expressions import Buffer, Expr, Scope, as_index
from ....loops.ir import Invoke, Region
from ..shared import SWIZZLED_ROWS
from ..warpgroups import ATOM_BYTES, GROUP_PRODUCTS
from .emitter import element_type
from .expressions import Expressions

__all__ = ["emit_group_product", "emit_group_wait"]

STEP_BYTES = 32
"""One instruction multiplies so many of a row."""
SWIZZLE_128, STRIDE_BYTES, LEADING = 1 << 62, SWIZZLED_ROWS * ATOM_BYTES, 1 << 16
"""The mode, the distance of eight rows to the next eight, and a field that the mode leaves out."""
ADDRESS_BITS = 0x3FFFF
KINDS: Mapping[DType, str] = {
    DType.FLOAT16: "f16",
    DType.BFLOAT16: "bf16",
    DType.INT8: "s8",
    DType.UINT8: "u8",
}


def emit_group_product(x: Expressions, call: Invoke) -> None:
    """Its instructions, which all threads of the warpgroup come to.

    Raises GraphError for operands that are not rows of 128 bytes of shared memory.
    """
    left, right, sums = call.operands
    steps = range(0, ATOM_BYTES, STEP_BYTES)
    first = [_descriptor(x, each) for each in (left, right)]
    given = []
    for step in steps:
        given += [x.e.op(f"add i64 {each}, {step >> 4}") if step else each for each in first]
    parts, pairs, *rest, _ = GROUP_PRODUCTS[call.intrinsic].parameters[1].shape
    columns = parts * pairs * prod(rest)
    dtype = left.buffer.dtype
    total = "f32" if dtype.is_float else "s32"
    depth = STEP_BYTES // dtype.bytes
    shape = f"m64n{columns}k{depth}.{total}.{KINDS[dtype]}.{KINDS[right.buffer.dtype]}"
    count = columns // 2
    registers = ", ".join(f"${number}" for number in range(count))
    # Sums are added to; neither operand is negated, and both have the summed dimension in rows.
    modes = "1, 1, 1, 0, 0" if dtype.is_float else "1"
    lines = ["wgmma.fence.sync.aligned;"]
    for number in range(len(steps)):
        a, b = f"${count + 2 * number}", f"${count + 2 * number + 1}"
        product = f"wgmma.mma_async.sync.aligned.{shape}"
        lines.append(f"{product} {{{registers}}}, {a}, {b}, {modes};")
    lines.append("wgmma.commit_group.sync.aligned;")
    # Sums have no dimension for one part.
    inner = _every(tuple(size for size in (parts, pairs, 2, 2) if size > 1))
    base = x.evaluate(*sums.start[: -len(inner[0])])
    places = [(*base, *map(str, each)) for each in inner]
    _tied(x, sums.buffer, places, lines, [("l", "i64", each) for each in given])


def emit_group_wait(x: Expressions, buffers: Iterable[Buffer], last: int) -> None:
    """Wait until all products of the thread's warpgroup but the ``last`` ones have ended; once all
    have, the sums are in its registers.
    """
    for buffer in buffers:
        if buffer.name in x.addresses:
            places = [tuple(map(str, each)) for each in _every(buffer.shape)]
            _tied(x, buffer, places, [f"wgmma.wait_group.sync.aligned {last};"], [])
    x.e.assembly("fence.proxy.async.shared::cta;", (), ())


def _every(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for size in shape:
        found = [(*each, number) for each in found for number in range(size)]
    return found


def _tied(
    x: Expressions,
    buffer: Buffer,
    places: list[tuple[str, ...]],
    lines: list[str],
    given: list[tuple[str, str, str]],
) -> None:
    """Instructions on elements of a thread's array, which they read and write.

    given: of further inputs the constraint, type and value.
    """
    kind = element_type(buffer.dtype)
    where = [x.place(buffer, each) for each in places]
    old = [x.e.op(f"load {kind}, {space} {pointer}") for space, pointer in where]
    letter = "f" if kind == "float" else "r"
    ties = [(str(number), kind, each) for number, each in enumerate(old)]
    text = "\\0A\\09".join(lines)
    new = x.e.assembly(text, [(f"={letter}", kind)] * len(old), [*given, *ties])
    for (space, pointer), value in zip(where, new, strict=True):
        x.e.line(f"store {kind} {value}, {space} {pointer}")


def _descriptor(x: Expressions, region: Region) -> str:
    """The descriptor of the place of the region's rows, int64."""
    buffer = region.buffer
    address = x.addresses.get(buffer.name)
    rows = region.start[-2]
    if buffer.scope is not Scope.SHARED or address is None or not address.swizzled:
        raise GraphError(f"{buffer.name}: a warpgroup reads rows of {ATOM_BYTES} bytes of shared")
    if not _whole(rows) or region.start[-1] != as_index(0):
        raise GraphError(
            f"{buffer.name}: a warpgroup reads from row {rows} on; required a multiple of "
            f"{SWIZZLED_ROWS}, and its first byte"
        )
    kind, place = x.place(buffer, tuple(x.evaluate(*region.start)))
    whole = x.e.op(f"ptrtoint {kind} {place} to i64")
    start = x.e.op(f"lshr i64 {x.e.op(f'and i64 {whole}, {ADDRESS_BITS}')}, 4")
    fixed = SWIZZLE_128 | STRIDE_BYTES >> 4 << 32 | LEADING
    return x.e.op(f"or i64 {start}, {fixed}")


def _whole(row: Expr) -> bool:
    form = linear(row)
    return not any(each % SWIZZLED_ROWS for each in (form.constant, *form.terms.values()))
