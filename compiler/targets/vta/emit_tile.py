"""Instructions of tiles: a nest that matches an intrinsic, at one place."""

from enum import IntEnum

from dovetail.isa.instruction_formats import GEMM_LEVELS, VECTOR_LEVELS
from dovetail.isa.instructions import Finish, Gemm, Multiplier, Rounding, Row, Vector
from dovetail.isa.instructions import Fold as IsaFold
from dovetail.isa.memories import Memory

from ...loops.expressions import Scope
from .nest import Fold, Product, Requantized, RowFinish, Scaled, Total
from .operands import Operand, Tile
from .sliding import Windowed, slide

__all__ = ["gemm_of", "vector_of"]

ADDRESS_MASK = 0xFFFF
"""Addresses wrap: results that are skipped may be before the first word."""

MEMORY = {Scope.ACT: Memory.ACT, Scope.ACC: Memory.ACC, Scope.PAR: Memory.ACT}
"""Memories of operands; a parameter of a row goes to PAR, whatever the instruction says."""

Fields = dict[str, int | bool | IntEnum | tuple[int, ...]]
"""Fields of an instruction, by their names."""


def _padded(values: tuple[int, ...], levels: int, filler: int) -> tuple[int, ...]:
    return (*values, *[filler] * (levels - len(values)))


def gemm_of(tile: Tile) -> Gemm:
    """The outermost loops are the last levels."""
    act, wgt, acc = (tile.operands[name] for name in ("act", "wgt", "acc"))
    product = tile.nest.value
    assert isinstance(product, Product)
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
        weight_offset=product.offset,
        act_zero_point=-product.left_offset,
    )


def vector_of(tile: Tile) -> Vector:
    """Folded levels come first; there is always at least one, perhaps of one iteration."""
    windowed = slide(tile)
    if windowed:
        return _plain(windowed.tile, windowed)
    return _plain(tile)


def _apart(first: Operand, second: Operand) -> int:
    """Words from one to the other, as a stride; addresses wrap."""
    half = (ADDRESS_MASK + 1) // 2
    return ((second.address - first.address + half) & ADDRESS_MASK) - half


def _plain(tile: Tile, windowed: Windowed | None = None) -> Vector:
    """``windowed``: what makes the taps of ``tile`` windows of columns, if they are."""
    source, target = tile.operands["source"], tile.operands["target"]
    fields = _multiplied(tile)
    pairs = "other" in tile.operands
    lead = 1 if pairs or not tile.folded else 0
    extents = (*[2 if pairs else 1] * lead, *tile.extents)
    first_stride = _apart(source, tile.operands["other"]) if pairs else 0

    def strides(operand: Operand, first: int = 0) -> tuple[int, ...]:
        return _padded((*[first] * lead, *operand.strides), VECTOR_LEVELS, 0)

    if fields.get("multiplier") is Multiplier.PAIR:
        fields |= {"tap_stride": strides(tile.operands["other"])}
    if "taps" in tile.operands:
        taps = tile.operands["taps"]
        fields |= {"tap_address": taps.address, "tap_stride": strides(taps)}
    if windowed:
        fields |= {"multiplier": Multiplier.WINDOW, "window_skip": windowed.skip}
        fields |= {"wide_window": windowed.wide}
    for name in tile.nest.parameters:
        parameters = tile.operands[name]
        fields |= {"par_address": parameters.address, "par_stride": strides(parameters)[1:]}
    fields |= _finished(tile)
    return Vector(
        source=MEMORY[source.scope],
        destination=MEMORY[target.scope],
        source_address=source.address,
        destination_address=target.address & ADDRESS_MASK,
        extent=_padded(extents, VECTOR_LEVELS, 1),
        source_stride=strides(source, first_stride),
        destination_stride=strides(target)[1:],
        reduction_levels=lead + tile.folded.bit_length(),
        **fields,  # type: ignore[arg-type]
    )


def _multiplied(tile: Tile) -> Fields:
    """The fold, what elements are multiplied by, and what is added to them before."""
    fields: Fields = {"fold": IsaFold.MAX if tile.nest.fold is Fold.MAX else IsaFold.ADD}
    match tile.nest.value:
        case Scaled(factor=factor):
            fields |= {"multiplier": Multiplier.IMMEDIATE, "m0": factor}
        case Total(left=left, right=right):
            fields |= {"multiplier": Multiplier.IMMEDIATE, "m0": left.factor, "m1": right.factor}
        case Product(offset=offset, left_offset=left_offset) if "other" in tile.operands:
            fields |= {"multiplier": Multiplier.PAIR, "m0": left_offset, "m1": offset}
        case Product(offset=offset, left_offset=left_offset):
            fields |= {"m0": offset, "m1": left_offset}
        case _:
            return fields
    return fields | {"fold": IsaFold.MAC}


def _finished(tile: Tile) -> Fields:
    """Fields that say how the instruction finishes a folded value."""
    fields: Fields = {}
    match tile.nest.finish:
        case RowFinish(row=row, epsilon=epsilon, shift=shift):
            fields |= {"row": row}
            if row is Row.ROOT:
                fields |= {"m1": epsilon, "shift": shift}
        case Requantized(is_wide=True):
            fields |= {"finish": Finish.REQUANTIZE, "rounding": Rounding.WIDE}
        case Requantized(zero_point=zero_point, low=low, high=high) as finish:
            fields |= {"finish": Finish.REQUANTIZE, "zero_point": zero_point, "low": low}
            fields |= {"rounding": Rounding.FIXED if finish.is_fixed else Rounding.FLOAT}
            fields |= {"high": high}
    if tile.table is not None:
        fields |= {"lookup": True, "tab_address": tile.table}
    if tile.own is not None:
        fields |= {"finish": Finish.CUSTOM, "shift": tile.own}
    return fields
