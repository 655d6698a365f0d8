"""The accelerator's compute instructions: what each means, as a loop program, and how it is made.

A meaning covers one tile or one vector.  The further loops of a nest that matches become the levels
of the instruction, and move every operand by whole words.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache

from dovetail.isa.frozen import frozen
from dovetail.isa.instruction_formats import GEMM_LEVELS, VECTOR_LEVELS
from dovetail.isa.instructions import Gemm, Vector
from dovetail.isa.memories import Unit

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
from .emit_tile import gemm_of, vector_of
from .nest import Fold, Nest
from .operands import Tile
from .read_nests import read_nests
from .row_finishes import negated, over_root, over_sum

__all__ = ["Intrinsic", "intrinsics"]


@frozen
class Intrinsic:
    """An instruction, or one way to use it.

    declaration: its name, and what it means for one vector or tile, whose parameters are the
    operands; the step ``tensorize`` of schedules takes it too.
    scopes: where an operand may be, if not only where the meaning has it.
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
    sums, others = (Buffer(each, (lanes,), DType.INT32, Scope.ACC) for each in ("source", "other"))
    folds = (Fold.NONE, Fold.SUM, Fold.MAX)
    vector = (True, VECTOR_LEVELS, vector_of)
    tile = _tile_program(lanes)
    copy = _vector_program("vector.fold", source[LANE], source)
    scaled = _vector_program("vector.taps", (_wide(source) + FIRST) * _wide(taps), source, taps)
    kept = _vector_program("vector.kept", sums[LANE] * _wide(taps), sums, taps)
    total = _wide(source) * FIRST + _wide(other) * SECOND
    pair = _vector_program("vector.pair", total, source, other)
    raised = (_wide(source) + FIRST) * (_wide(other) + SECOND)
    product = _vector_program("vector.product", raised, source, other)
    factor = _vector_program("vector.factor", _wide(source) * FIRST, source)
    low = Cast(DType.INT32, Cast(DType.INT16, sums[LANE]))
    low_factor = _vector_program("vector.low_factor", low * FIRST, sums)
    bias = Buffer("bias", (lanes,), DType.INT32, Scope.PAR)
    scale = Buffer("scale", (lanes,), DType.FLOAT32, Scope.PAR)

    def row(name: str, value: Expr, finish: Callable[[Expr], Expr], *inputs: Buffer) -> Declaration:
        return _row_program(name, BinaryFunction.ADD, 0, value, finish, *inputs)

    inputs = (source[COLUMN], negated, source)
    largest = _row_program("vector.largest", BinaryFunction.MAX, -128, *inputs)
    less = row("vector.less", Cast(DType.INT32, source[COLUMN]), negated, source)
    some = row(
        "vector.some",
        Cast(DType.INT32, source[COLUMN]) * Cast(DType.INT32, taps[COLUMN]),
        negated,
        source,
        taps,
    )
    squares = row("vector.squares", sums[COLUMN] * others[COLUMN], negated, sums, others)
    byte, second = (Cast(DType.INT32, each[COLUMN]) for each in (source, other))
    byte_squares = row("vector.byte_squares", byte * second, negated, source, other)
    weighted = sums[COLUMN] * Cast(DType.INT32, taps[COLUMN])
    over = row(
        "vector.over",
        weighted,
        lambda total: over_sum(total, bias[0], scale[0]),
        *(sums, taps, bias, scale),
    )
    root = row(
        "vector.root",
        sums[COLUMN] * others[COLUMN],
        lambda total: over_root(total, FIRST, scale[0]),
        *(sums, others, scale),
    )
    first = row(
        "vector.root_of_bytes",
        Cast(DType.INT32, source[COLUMN]) * Cast(DType.INT32, taps[COLUMN]),
        lambda total: over_root(total, FIRST, scale[0]),
        *(source, taps, scale),
    )
    return (
        Intrinsic(tile, Unit.GEMM, {}, folds[1:2], False, GEMM_LEVELS, gemm_of),
        Intrinsic(copy, Unit.VECTOR, moved, folds, *vector),
        Intrinsic(scaled, Unit.VECTOR, multiplied, folds[:2], *vector),
        Intrinsic(kept, Unit.VECTOR, multiplied, folds[:1], *vector),
        Intrinsic(pair, Unit.VECTOR, multiplied, folds[:1], *vector),
        Intrinsic(product, Unit.VECTOR, multiplied, folds[:1], *vector),
        Intrinsic(factor, Unit.VECTOR, multiplied, folds[:1], *vector),
        Intrinsic(low_factor, Unit.VECTOR, multiplied, folds[:1], *vector),
        Intrinsic(largest, Unit.VECTOR, {}, folds[2:], *vector),
        Intrinsic(less, Unit.VECTOR, {}, folds[1:2], *vector),
        Intrinsic(some, Unit.VECTOR, {}, folds[1:2], *vector),
        Intrinsic(over, Unit.VECTOR, {}, folds[1:2], *vector),
        Intrinsic(squares, Unit.VECTOR, {}, folds[1:2], True, VECTOR_LEVELS - 1, vector_of),
        Intrinsic(byte_squares, Unit.VECTOR, {}, folds[1:2], True, VECTOR_LEVELS - 1, vector_of),
        Intrinsic(first, Unit.VECTOR, {}, folds[1:2], *vector),
        Intrinsic(root, Unit.VECTOR, {}, folds[1:2], True, VECTOR_LEVELS - 1, vector_of),
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
    name: str,
    function: BinaryFunction,
    start: int,
    value: Expr,
    finish: Callable[[Expr], Expr],
    *inputs: Buffer,
) -> Declaration:
    """A parameter of a row, in every lane ``l`` of target: ``finish`` of the fold of ``value`` over
    all lanes ``i``.
    """
    lanes = inputs[0].shape[0]
    total = Buffer("total", (), value.dtype, Scope.REGISTER)
    result = finish(Load(total, ()))
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
