"""The accelerator's compute instructions: what each means, as a loop program, and how it is made.

A meaning covers one tile or one vector.  The further loops of a nest that matches become the levels
of the instruction, and move every operand by whole words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache

from dovetail.isa.instruction_formats import GEMM_LEVELS, VECTOR_LEVELS
from dovetail.isa.instructions import Finish, Gemm, Multiplier, Rounding, Row, Vector
from dovetail.isa.instructions import Fold as IsaFold
from dovetail.isa.memories import Memory, Unit

from ...dtypes import DType
from ...loops.expressions import (
    BinaryFunction,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    Scope,
    Variable,
)
from ...loops.intrinsic import Intrinsic as Declaration
from ...loops.ir import Allocate, Function, LoopKind, Store, Update, block, loops
from .finishes import negated, over_sum
from .nest import Fold, Nest, Over, Product, Total, Value
from .operands import Operand, Tile
from .read_nests import read_nests
from .sliding import Windowed, slide

__all__ = ["Intrinsic", "intrinsics"]

ADDRESS_MASK = 0xFFFF
"""Addresses wrap: results that are skipped may lie before the first word."""

MEMORY = {Scope.ACT: Memory.ACT, Scope.ACC: Memory.ACC, Scope.PAR: Memory.ACT}
"""Memories of operands; a parameter of a row goes to PAR, whatever the instruction says."""


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """An instruction, or one way to use it.

    declaration: its name, and what it means for one vector or tile, whose parameters are the
    operands; the step ``tensorize`` of schedules takes it too.
    scopes: where an operand may lie, if not only where the meaning has it.
    folds: what the nest's reduction loops outside the lanes may do.
    finishes: whether the result may be requantised and looked up.
    nest: of the meaning.
    """

    declaration: Declaration
    unit: Unit
    scopes: Mapping[str, tuple[Scope, ...]]
    folds: tuple[Fold, ...]
    finishes: bool
    levels: int
    emit: Callable[[Tile], Gemm | Vector]
    nest: Nest = field(init=False, compare=False)

    def __post_init__(self) -> None:
        (nest,) = read_nests(self.declaration.meaning).nests
        object.__setattr__(self, "nest", nest)

    @property
    def name(self) -> str:
        """The declaration's."""
        return self.declaration.name


@cache
def intrinsics(lanes: int) -> tuple[Intrinsic, ...]:
    """All of them, for an accelerator with blocks of ``lanes``."""
    anywhere = (Scope.ACT, Scope.ACC)
    multiplied = {"target": anywhere}
    moved = {"target": anywhere, "source": anywhere}
    source = Buffer("source", (lanes,), DType.INT8, Scope.ACT)
    other = Buffer("other", (lanes,), DType.INT8, Scope.ACT)
    taps = Buffer("taps", (lanes,), DType.INT8, Scope.TAP)
    folds = (Fold.NONE, Fold.SUM, Fold.MAX)
    vector = (True, VECTOR_LEVELS, _emit_vector)
    tile = _tile_program(lanes)
    copy = _vector_program("vector.fold", source[LANE], source)
    scaled = _vector_program("vector.taps", _wide(source) * _wide(taps), source, taps)
    total = _wide(source) * FIRST + _wide(other) * SECOND
    pair = _vector_program("vector.pair", total, source, other)
    raised = (_wide(source) + FIRST) * (_wide(other) + SECOND)
    product = _vector_program("vector.product", raised, source, other)
    largest = _row_program("vector.largest", BinaryFunction.MAX, -128, source[COLUMN], source)
    sums = Buffer("source", (lanes,), DType.INT32, Scope.ACC)
    parameters = (
        Buffer("bias", (lanes,), DType.INT32, Scope.PAR),
        Buffer("scale", (lanes,), DType.FLOAT32, Scope.PAR),
    )
    weighted = sums[COLUMN] * Cast(DType.INT32, taps[COLUMN])
    inputs = (sums, taps, *parameters)
    over = _row_program("vector.over", BinaryFunction.ADD, 0, weighted, *inputs)
    return (
        Intrinsic(tile, Unit.GEMM, {}, folds[1:2], False, GEMM_LEVELS, _emit_gemm),
        Intrinsic(copy, Unit.VECTOR, moved, folds, *vector),
        Intrinsic(scaled, Unit.VECTOR, multiplied, folds[:2], *vector),
        Intrinsic(pair, Unit.VECTOR, multiplied, folds[:1], *vector),
        Intrinsic(product, Unit.VECTOR, multiplied, folds[:1], *vector),
        Intrinsic(largest, Unit.VECTOR, {}, folds[2:], *vector),
        Intrinsic(over, Unit.VECTOR, {}, folds[1:2], *vector),
    )


LANE, COLUMN = Variable("l"), Variable("i")
FIRST, SECOND = 3, 5
"""Factors of a sum of two, and what is added to those of a product, in place of any."""


def _wide(buffer: Buffer) -> Expr:
    return Cast(DType.INT32, buffer[LANE])


def _vector_program(name: str, value: Expr, *inputs: Buffer) -> Declaration:
    """``target[l] = value`` for every lane ``l``; int8 in ACT, or int32 in ACC."""
    scope = Scope.ACT if value.dtype is DType.INT8 else Scope.ACC
    target = Buffer("target", inputs[0].shape, value.dtype, scope)
    body = loops((("l", inputs[0].shape[0]),), Store(target, (LANE,), value), LoopKind.VECTOR)
    return Declaration(name, Function(name, inputs, (target,), body))


def _row_program(
    name: str, function: BinaryFunction, start: int, value: Expr, *inputs: Buffer
) -> Declaration:
    """A parameter of a row, in every lane ``l`` of target: of the fold of ``value`` over all lanes
    ``i``; what it is negated, or, with ``bias`` and ``scale`` among the inputs, lane 0's scale over
    it.
    """
    lanes = inputs[0].shape[0]
    total = Buffer("total", (), value.dtype, Scope.REGISTER)
    given = {buffer.name: buffer for buffer in inputs}
    result = negated(Load(total, ()))
    if "scale" in given:
        result = over_sum(Load(total, ()), given["bias"][0], given["scale"][0])
    target = Buffer("target", (lanes,), result.dtype, Scope.PAR)
    folded = loops((("i", lanes),), Update(total, (), function, value), LoopKind.VECTOR)
    first = Store(total, (), Constant(start, value.dtype))
    body = Allocate(total, block(first, folded, Store(target, (LANE,), result)))
    program = loops((("l", lanes),), body, LoopKind.VECTOR)
    return Declaration(name, Function(name, inputs, (target,), program))


def _tile_program(lanes: int) -> Declaration:
    """``acc[l] += sum over i of act[i] * wgt[l, i]``; offsets of both are fields."""
    act = Buffer("act", (lanes,), DType.INT8, Scope.ACT)
    wgt = Buffer("wgt", (lanes, lanes), DType.INT8, Scope.WGT)
    acc = Buffer("acc", (lanes,), DType.INT32, Scope.ACC)
    value = Cast(DType.INT32, act[COLUMN]) * Cast(DType.INT32, wgt[LANE, COLUMN])
    add = Update(acc, (LANE,), BinaryFunction.ADD, value)
    total = loops((("l", lanes), ("i", lanes)), add, LoopKind.VECTOR)
    return Declaration("gemm", Function("gemm", (act, wgt), (acc,), total))


def _padded(values: tuple[int, ...], levels: int, filler: int) -> tuple[int, ...]:
    return (*values, *[filler] * (levels - len(values)))


def _emit_gemm(tile: Tile) -> Gemm:
    act, wgt, acc = (tile.operands[name] for name in ("act", "wgt", "acc"))
    return Gemm(
        act_address=act.address,
        wgt_address=wgt.address,
        acc_address=acc.address,
        extent=_padded(tile.extents, GEMM_LEVELS, 1),
        act_stride=_padded(act.strides, GEMM_LEVELS, 0),
        wgt_stride=_padded(wgt.strides, GEMM_LEVELS, 0),
        acc_stride=_padded(acc.strides, GEMM_LEVELS, 0),
        reduction=tile.folded,
        accumulate=tile.again,
        weight_offset=_offset(tile.nest.value),
        act_zero_point=-_left_offset(tile.nest.value),
    )


def _offset(value: Value) -> int:
    """What is added to the weights or taps of a product."""
    return value.offset if isinstance(value, Product) else 0


def _left_offset(value: Value) -> int:
    """What is added to the inputs of a product."""
    return value.left_offset if isinstance(value, Product) else 0


def _emit_vector(tile: Tile) -> Vector:
    """Folded levels come first; there is always at least one, perhaps of one iteration."""
    windowed = slide(tile)
    if windowed:
        return _emit_plain(windowed.tile, windowed)
    return _emit_plain(tile)


def _apart(first: Operand, second: Operand) -> int:
    """Words from one to the other, as a stride; addresses wrap."""
    half = (ADDRESS_MASK + 1) // 2
    return ((second.address - first.address + half) & ADDRESS_MASK) - half


def _emit_plain(tile: Tile, windowed: Windowed | None = None) -> Vector:
    """``windowed``: what makes the taps of ``tile`` windows of columns, if they are."""
    source, target = tile.operands["source"], tile.operands["target"]
    fold = IsaFold.MAX if tile.nest.fold is Fold.MAX else IsaFold.ADD
    extents, lead = tile.extents, 0
    first_stride = 0
    fields: dict[str, int | bool | IntEnum | tuple[int, ...]] = {}
    if not tile.folded:
        extents, lead = (1, *extents), 1
    if isinstance(tile.nest.value, Total):
        total, other = tile.nest.value, tile.operands["other"]
        extents, first_stride = (2, *extents[1:]), _apart(source, other)
        fold = IsaFold.MAC
        fields |= {"multiplier": Multiplier.IMMEDIATE}
        fields |= {"m0": total.left.factor, "m1": total.right.factor}

    def strides(operand: Operand, first: int = 0) -> tuple[int, ...]:
        return _padded((*[first] * lead, *operand.strides), VECTOR_LEVELS, 0)

    if isinstance(tile.nest.value, Product) and "other" in tile.operands:
        value, other = tile.nest.value, tile.operands["other"]
        extents, first_stride = (2, *extents[1:]), _apart(source, other)
        fold = IsaFold.MAC
        fields |= {"multiplier": Multiplier.PAIR, "tap_stride": strides(other)}
        fields |= {"m0": value.left_offset, "m1": value.offset}
    if "taps" in tile.operands:
        taps, fold = tile.operands["taps"], IsaFold.MAC
        fields |= {"tap_address": taps.address, "tap_stride": strides(taps)}
        fields |= {"m0": _offset(tile.nest.value)}
    if windowed:
        fields |= {"multiplier": Multiplier.WINDOW, "window_skip": windowed.skip}
    finish = tile.nest.finish
    if finish:
        parameters = next(tile.operands[name] for name in tile.nest.parameters)
        fields |= {"par_address": parameters.address, "par_stride": strides(parameters)[1:]}
    if tile.nest.makes_row:
        fields |= {"row": Row.OVER if finish else Row.LESS}
    if finish and not isinstance(finish, Over):
        fields |= {
            "finish": Finish.REQUANTIZE,
            "rounding": Rounding.FIXED if finish.is_fixed else Rounding.FLOAT,
            "zero_point": finish.zero_point,
            "low": finish.low,
            "high": finish.high,
        }
    if tile.table is not None:
        fields |= {"lookup": True, "tab_address": tile.table}
    if tile.own is not None:
        fields |= {"finish": Finish.CUSTOM, "shift": tile.own}
    return Vector(
        source=MEMORY[source.scope],
        destination=MEMORY[target.scope],
        source_address=source.address,
        destination_address=target.address & ADDRESS_MASK,
        extent=_padded(extents, VECTOR_LEVELS, 1),
        source_stride=strides(source, first_stride),
        destination_stride=strides(target)[1:],
        reduction_levels=max(1, tile.folded.bit_length()),
        fold=fold,
        **fields,  # type: ignore[arg-type]
    )
