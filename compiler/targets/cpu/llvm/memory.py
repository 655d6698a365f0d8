"""Loads and stores: of one element, of contiguous, strided and scattered lanes, under a mask."""

from collections.abc import Sequence

from ....dtypes import DType
from ....loops.expressions import BinaryFunction as B
from ....loops.expressions import Scope
from ...llvm.values import (
    Linear,
    Operand,
    Value,
    constant,
    intrinsic_suffix,
    llvm_type,
    memory_type,
)
from ..arch.arch import Ability
from .context import Context, Place
from .known import bounded

__all__ = ["load", "locate", "store"]


def locate(context: Context, place: Place, indices: Sequence[Operand]) -> Operand:
    """The offset, in elements, of ``place[indices]``."""
    fixed, stride = 0, 0
    scalar: Value | None = None
    vector: Value | None = None
    for index, step in zip(indices, place.strides, strict=True):
        step *= place.lanes
        if isinstance(index, Linear):
            stride += index.stride * step
            index = index.base
        if index.constant is not None:
            fixed += int(index.constant) * step
        elif index.lanes == 1:
            term = _times(context, index, step)
            scalar = term if scalar is None else _plus(context, scalar, term)
        else:
            term = _times(context, index, step)
            vector = term if vector is None else _plus(context, vector, term)
    stride += place.lanes > 1
    if scalar is None:
        base = constant(fixed, DType.INT64)
    else:
        base = _plus(context, scalar, constant(fixed, DType.INT64)) if fixed else scalar
    if vector is None:
        return Linear(base, stride, context.lanes) if stride else base
    rest = context.materialize(Linear(base, stride, context.lanes))
    return _plus(context, vector, rest)


def _times(context: Context, index: Value, step: int) -> Value:
    if step == 1:
        return index
    factor = constant(step, DType.INT64, index.lanes)
    flags = "mul nsw" if index.lanes == 1 else "mul"
    return bounded(B.MUL, index, factor, context.e.binary(flags, index, factor))


def _plus(context: Context, a: Value, b: Value) -> Value:
    flags = "add nsw" if a.lanes == 1 else "add"
    return bounded(B.ADD, a, b, context.e.binary(flags, a, b))


def load(context: Context, place: Place, offset: Operand) -> Value:
    """The element or elements at ``offset``; inactive lanes touch no memory and hold anything."""
    dtype = place.buffer.dtype
    if isinstance(offset, Linear):
        found = _load_linear(context, place, offset)
    elif offset.lanes > 1:
        found = _gather(context, place, offset)
    elif context.mask is not None and not context.some_active:
        found = _load_if_any(context, place, offset)
    else:
        found = _load(context, place, offset, 1)
    return _from_memory(context, found, dtype)


def _load(context: Context, place: Place, offset: Value, lanes: int) -> Value:
    kind = memory_type(place.buffer.dtype, lanes)
    pointer = _address(context, place, offset)
    return context.e.op(
        f"load {kind}, ptr {pointer}, align {place.buffer.dtype.bytes}", _kind(place), lanes
    )


def _load_if_any(context: Context, place: Place, offset: Value) -> Value:
    e = context.e
    assert context.mask is not None
    zero = constant(0, _kind(place))
    before = e.block
    some, end = e.label("some"), e.label("loaded")
    e.branch(context.any_lane(context.mask), some, end)
    e.start(some)
    found = _load(context, place, offset, 1)
    after = e.block
    e.jump(end)
    e.start(end)
    return e.phi([(zero, before), (found, after)])


def _load_linear(context: Context, place: Place, offset: Linear) -> Value:
    lanes, stride = offset.lanes, offset.stride
    if stride == 1 and context.mask is None:
        padded = _padded(context, place, lanes)
        if padded == lanes:
            return _load(context, place, offset.base, lanes)
        mask = _first_lanes(lanes, padded)
        found = _masked_load(context, place, offset.base, padded, mask)
        return _resized(context, found, lanes)
    if stride == 1:
        assert context.mask is not None
        return _masked_load(context, place, offset.base, lanes, context.mask)
    if context.mask is None and abs(stride) <= _most_stride(context, place):
        return _load_strided(context, place, offset)
    return _gather(context, place, context.materialize(offset))


def _most_stride(context: Context, place: Place) -> int:
    """Up to which lanes are picked from contiguous loads; CPUs gather elements of 4 and 8 bytes."""
    gathers = context.e.module.target.can(Ability.GATHER) and place.buffer.dtype.bytes >= 4
    return 4 if gathers else 8


def _load_strided(context: Context, place: Place, offset: Linear) -> Value:
    """Contiguous vectors that cover the lanes' elements, and no others, shuffled together."""
    e, lanes, stride, base = context.e, offset.lanes, offset.stride, offset.base
    span = abs(stride) * (lanes - 1) + 1
    if stride < 0:
        base = _plus(context, base, constant(stride * (lanes - 1), DType.INT64))
    starts = [*range(0, span - lanes, lanes), span - lanes]
    positions = [stride * lane + (span - 1 if stride < 0 else 0) for lane in range(lanes)]
    result: Value | None = None
    origins: list[int | None] = []
    for start in starts:
        at = _plus(context, base, constant(start, DType.INT64)) if start else base
        piece = _load_linear(context, place, Linear(at, 1, lanes))
        if result is None:
            result = piece
            origins = [p if p < lanes else None for p in positions]
            continue
        picks = []
        for number, position in enumerate(positions):
            origin = origins[number]
            if origin is None and start <= position < start + lanes:
                origin = lanes + position - start
            picks.append("i32 poison" if origin is None else f"i32 {origin}")
            origins[number] = None if origin is None else number
        text = f"shufflevector {result.typed}, {piece.typed}, <{lanes} x i32> <{', '.join(picks)}>"
        result = e.op(text, piece.dtype, lanes)
    assert result is not None
    if len(starts) == 1:
        picks = [f"i32 {position}" for position in positions]
        text = f"shufflevector {result.typed}, {result.type} poison, "
        result = e.op(f"{text}<{lanes} x i32> <{', '.join(picks)}>", result.dtype, lanes)
    return result


def _masked_load(context: Context, place: Place, base: Value, lanes: int, mask: Value) -> Value:
    kind = _kind(place)
    name = f"llvm.masked.load.{intrinsic_suffix(kind, lanes)}.p0"
    pointer = _address(context, place, base, True)
    vector = llvm_type(kind, lanes)
    context.e.module.declare(name, vector, ("ptr", mask.type, vector))
    text = f"ptr align {place.buffer.dtype.bytes} {pointer}, {mask.typed}, {vector} poison"
    return context.e.op(f"call {vector} @{name}({text})", kind, lanes)


def _padded(context: Context, place: Place, lanes: int) -> int:
    """Lanes of the vector, a power of two, that memory is accessed by under a mask; or ``lanes``.

    Buffers in registers are accessed as they are: LLVM keeps no masked memory in registers.
    """
    target = context.e.module.target
    wide = 1 << (lanes - 1).bit_length()
    small = place.buffer.dtype.bytes < 4
    cheap = target.can(Ability.MASK_BYTES if small else Ability.MASK_WORDS)
    return wide if cheap and place.buffer.scope is not Scope.REGISTER else lanes


def _first_lanes(lanes: int, wide: int) -> Value:
    bits = ", ".join(f"i1 {str(lane < lanes).lower()}" for lane in range(wide))
    return Value(f"<{bits}>", DType.BOOL, wide)


def _resized(context: Context, a: Value, lanes: int) -> Value:
    """The first lanes, or more of them that hold anything."""
    picks = ", ".join(f"i32 {lane if lane < a.lanes else 'poison'}" for lane in range(lanes))
    text = f"shufflevector {a.typed}, {a.type} poison, <{lanes} x i32> <{picks}>"
    return context.e.op(text, a.dtype, lanes)


def _gather(context: Context, place: Place, offset: Value) -> Value:
    kind, lanes = _kind(place), offset.lanes
    pointers = _addresses(context, place, offset)
    mask = _active(context, lanes)
    name = f"llvm.masked.gather.{intrinsic_suffix(kind, lanes)}.v{lanes}p0"
    vector = llvm_type(kind, lanes)
    context.e.module.declare(name, vector, (f"<{lanes} x ptr>", mask.type, vector))
    align = place.buffer.dtype.bytes
    text = f"<{lanes} x ptr> align {align} {pointers}, {mask.typed}, {vector} poison"
    return context.e.op(f"call {vector} @{name}({text})", kind, lanes)


def store(context: Context, place: Place, offset: Operand, value: Operand) -> None:
    """Write the active lanes, in their order where two write one element."""
    held = context.materialize(value)
    surely = context.mask is None or context.some_active
    if surely and isinstance(offset, Value) and offset.lanes == held.lanes == 1:
        _store(context, place, offset, _to_memory(context, held))
        return
    lanes = context.lanes
    held = _to_memory(context, context.e.broadcast(held, lanes))
    if isinstance(offset, Linear) and offset.stride == 1:
        wide = _padded(context, place, lanes)
        if context.mask is not None:
            _masked_store(context, place, offset.base, held, context.mask)
        elif wide > lanes:
            mask = _first_lanes(lanes, wide)
            _masked_store(context, place, offset.base, _resized(context, held, wide), mask)
        else:
            _store(context, place, offset.base, held)
        return
    _scatter(context, place, context.e.broadcast(context.materialize(offset), lanes), held)


def _store(context: Context, place: Place, offset: Value, held: Value) -> None:
    pointer = _address(context, place, offset)
    context.e.line(f"store {held.typed}, ptr {pointer}, align {place.buffer.dtype.bytes}")


def _masked_store(context: Context, place: Place, base: Value, held: Value, mask: Value) -> None:
    name = f"llvm.masked.store.{intrinsic_suffix(held.dtype, held.lanes)}.p0"
    pointer = _address(context, place, base, True)
    context.e.module.declare(name, "void", (held.type, "ptr", mask.type))
    text = f"{held.typed}, ptr align {place.buffer.dtype.bytes} {pointer}, {mask.typed}"
    context.e.line(f"call void @{name}({text})")


def _scatter(context: Context, place: Place, offset: Value, held: Value) -> None:
    lanes = held.lanes
    pointers = _addresses(context, place, offset)
    mask = _active(context, lanes)
    name = f"llvm.masked.scatter.{intrinsic_suffix(held.dtype, lanes)}.v{lanes}p0"
    context.e.module.declare(name, "void", (held.type, f"<{lanes} x ptr>", mask.type))
    align = place.buffer.dtype.bytes
    text = f"{held.typed}, <{lanes} x ptr> align {align} {pointers}, {mask.typed}"
    context.e.line(f"call void @{name}({text})")


def _kind(place: Place) -> DType:
    """The dtype memory is read as: bool is bytes."""
    dtype = place.buffer.dtype
    return DType.UINT8 if dtype is DType.BOOL else dtype


def _active(context: Context, lanes: int) -> Value:
    return constant(True, DType.BOOL, lanes) if context.mask is None else context.mask


def _address(context: Context, place: Place, offset: Value, masked: bool = False) -> str:
    """masked: the first lane may be inactive, and outside the buffer."""
    if offset.constant == 0:
        return place.pointer
    kind = memory_type(place.buffer.dtype)
    opcode = "getelementptr" if masked else "getelementptr inbounds"
    text = f"{opcode} {kind}, ptr {place.pointer}, {offset.typed}"
    return context.e.op(text, DType.INT64).ref


def _addresses(context: Context, place: Place, offset: Value) -> str:
    kind = memory_type(place.buffer.dtype)
    low, high = offset.low, offset.high
    if low is not None and high is not None and -(1 << 31) <= low <= high < 1 << 31:
        offset = context.e.convert("trunc", offset, DType.INT32)
    text = f"getelementptr {kind}, ptr {place.pointer}, {offset.typed}"
    return context.e.op(text, DType.INT64).ref


def _from_memory(context: Context, found: Value, dtype: DType) -> Value:
    if dtype is not DType.BOOL:
        return found
    return context.e.compare("ne", found, constant(0, DType.UINT8, found.lanes))


def _to_memory(context: Context, held: Value) -> Value:
    if held.dtype is not DType.BOOL:
        return held
    return context.e.convert("zext", held, DType.UINT8)
