"""The accelerator's compute instructions: what each means in tensor IR, and how it is made.

A meaning covers one tile or one vector: its loops are lanes.  The further loops of a stage that
matches become the levels of the instruction, and move every operand by whole words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dovetail.isa.instruction_formats import GEMM_LEVELS, VECTOR_LEVELS
from dovetail.isa.instructions import Finish, Gemm, Multiplier, Vector
from dovetail.isa.instructions import Fold as IsaFold
from dovetail.isa.memories import Memory, Unit

from ...tensor.ir import (
    Buffer,
    Fold,
    Loop,
    LoopKind,
    Product,
    Ref,
    Scaled,
    Scope,
    Stage,
    Total,
    Value,
    var,
)
from .operands import Operand, Tile
from .sliding import Windowed, slide

__all__ = ["Intrinsic", "intrinsics"]

ADDRESS_MASK = 0xFFFF
"""Addresses wrap: results that are skipped may lie before the first word."""

MEMORY = {Scope.ACT: Memory.ACT, Scope.ACC: Memory.ACC}


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """An instruction, or one way to use it.

    meaning: its names for buffers are those of the operands.
    scopes: where an operand may lie, if not only where the meaning has it.
    folds: what the stage's reduction loops outside the lanes may do.
    finishes: whether the result may be requantised and looked up.
    """

    name: str
    unit: Unit
    meaning: Stage
    scopes: Mapping[str, tuple[Scope, ...]]
    folds: tuple[Fold, ...]
    finishes: bool
    levels: int
    emit: Callable[[Tile], Gemm | Vector]


def intrinsics(lanes: int) -> tuple[Intrinsic, ...]:
    """All of them, for an accelerator with blocks of ``lanes``."""
    anywhere = (Scope.ACT, Scope.ACC)
    multiplied = {"target": anywhere}
    source = _vector("source", "int8", Scope.ACT, lanes)
    other = _vector("other", "int8", Scope.ACT, lanes)
    taps = Product(source, _vector("taps", "int8", Scope.TAP, lanes))
    total = Total(Scaled(source, 1), Scaled(other, 1))
    folds = (Fold.NONE, Fold.SUM, Fold.MAX)
    moved = {"target": anywhere, "source": anywhere}
    vector = (VECTOR_LEVELS, _emit_vector)
    return (
        Intrinsic(
            "gemm",
            Unit.GEMM,
            _gemm_meaning(lanes),
            {},
            (Fold.SUM,),
            False,
            GEMM_LEVELS,
            _emit_gemm,
        ),
        Intrinsic(
            "vector.fold",
            Unit.VECTOR,
            _meaning(source, "int8", lanes),
            moved,
            folds,
            True,
            *vector,
        ),
        Intrinsic(
            "vector.taps",
            Unit.VECTOR,
            _meaning(taps, "int32", lanes),
            multiplied,
            folds[:2],
            True,
            *vector,
        ),
        Intrinsic(
            "vector.pair",
            Unit.VECTOR,
            _meaning(total, "int32", lanes),
            multiplied,
            folds[:1],
            True,
            *vector,
        ),
    )


def _vector(name: str, dtype: str, scope: Scope, lanes: int) -> Ref:
    return Ref(Buffer(name, (lanes,), dtype, scope), (var("l"),))


def _meaning(value: Value, dtype: str, lanes: int) -> Stage:
    """``target[l] = value[l]`` for every lane ``l``; int8 in ACT, or int32 in ACC."""
    target = _vector("target", dtype, Scope.ACT if dtype == "int8" else Scope.ACC, lanes)
    loops = (Loop("l", lanes, LoopKind.LANE),)
    return Stage("vector", loops, frozenset(), target, Fold.NONE, value)


def _gemm_meaning(lanes: int) -> Stage:
    """``acc[l] = sum over i of act[i] * wgt[l, i]``; an offset of the weights is a field."""
    tile = Ref(Buffer("wgt", (lanes, lanes), "int8", Scope.WGT), (var("l"), var("i")))
    act = Ref(Buffer("act", (lanes,), "int8", Scope.ACT), (var("i"),))
    loops = tuple(Loop(name, lanes, LoopKind.LANE) for name in ("l", "i"))
    acc = _vector("acc", "int32", Scope.ACC, lanes)
    return Stage("gemm", loops, frozenset({"i"}), acc, Fold.SUM, Product(act, tile))


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
        weight_offset=_offset(tile.stage.value),
    )


def _offset(value: Value) -> int:
    """What is added to the weights or taps of a product."""
    return value.offset if isinstance(value, Product) else 0


def _emit_vector(tile: Tile) -> Vector:
    """Folded levels come first; there is always at least one, perhaps of one iteration."""
    windowed = slide(tile)
    if windowed:
        return _emit_plain(windowed.tile, windowed)
    return _emit_plain(tile)


def _emit_plain(tile: Tile, windowed: Windowed | None = None) -> Vector:
    """``windowed``: what makes the taps of ``tile`` windows of columns, if they are."""
    source, target = tile.operands["source"], tile.operands["target"]
    fold = IsaFold.MAX if tile.stage.fold is Fold.MAX else IsaFold.ADD
    extents, lead = tile.extents, 0
    first_stride = 0
    fields: dict[str, int | bool | IsaFold | Multiplier | Finish | tuple[int, ...]] = {}
    if not tile.folded:
        extents, lead = (1, *extents), 1
    if isinstance(tile.stage.value, Total):
        total, other = tile.stage.value, tile.operands["other"]
        extents, first_stride = (2, *extents[1:]), other.address - source.address
        fold = IsaFold.MAC
        fields |= {"multiplier": Multiplier.IMMEDIATE}
        fields |= {"m0": total.left.factor, "m1": total.right.factor}

    def strides(operand: Operand, first: int = 0) -> tuple[int, ...]:
        return _padded((*[first] * lead, *operand.strides), VECTOR_LEVELS, 0)

    if "taps" in tile.operands:
        taps, fold = tile.operands["taps"], IsaFold.MAC
        fields |= {"tap_address": taps.address, "tap_stride": strides(taps)}
        fields |= {"m0": _offset(tile.stage.value)}
    if windowed:
        fields |= {"multiplier": Multiplier.WINDOW, "window_skip": windowed.skip}
    finish = tile.stage.finish
    if finish:
        fields |= {
            "finish": Finish.REQUANTIZE,
            "par_address": tile.operands["bias"].address,
            "par_stride": strides(tile.operands["bias"])[1:],
            "zero_point": finish.zero_point,
            "low": finish.low,
            "high": finish.high,
        }
    if tile.table is not None:
        fields |= {"lookup": True, "tab_address": tile.table}
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
