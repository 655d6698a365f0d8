"""Instructions that differ in addresses alone, as one with a further level.

    GEMM(x, weights 368, sums 512)      ->  one GEMM with a level of extent 2, whose strides are
    GEMM(x, weights 412, sums 0)            from the addresses of the first to the second's

An instruction is as many beats of the bus as eight words of ACT or more; where LOAD sets the pace,
fewer of them are fewer cycles.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from dovetail.isa.footprint import is_pair, is_window
from dovetail.isa.frozen import replace
from dovetail.isa.instruction_formats import GEMM_LEVELS, VECTOR_LEVELS
from dovetail.isa.instructions import Gemm, Instruction, Store, Vector

from .postpone import first_use

__all__ = ["Merge", "merges", "merging"]

MOST = 8
"""Instructions of a unit looked at behind one."""

SHORT, LONG = 1 << 11, 1 << 15
"""Strides of 12 bits, and of 16, are below."""

Merge = tuple[int, int, int, Instruction]
"""The place of the first instruction and of the second, where both will be, and as what."""


def merges(program: Sequence[Instruction], before: Sequence[frozenset[int]]) -> Iterator[Merge]:
    """Pairs of instructions of one unit that may be one.

    before: of each instruction, those that it depends on.
    """
    first = first_use(before)
    for place, one in enumerate(program):
        if not isinstance(one, Gemm | Vector | Store):
            continue
        behind = (
            index for index in range(place + 1, len(program)) if program[index].unit is one.unit
        )
        for index, _ in zip(behind, range(MOST), strict=False):
            both = merging(one, program[index])
            if both is None:
                continue
            if max(before[index], default=-1) < place:
                yield place, index, place, both
            elif first[place] > index:
                yield place, index, index, both


def merging(one: Instruction, other: Instruction) -> Instruction | None:
    """The instruction that does the work of ``one``, then of ``other``; None if there is none."""
    match one, other:
        case Gemm(), Gemm() if one.extent == other.extent:
            return _gemm(one, other)
        case Vector(), Vector() if one.extent == other.extent:
            return _vector(one, other)
        case Store(), Store() if one.count_x == other.count_x:
            return _store(one, other)
        case _:
            return None


def _gemm(one: Gemm, other: Gemm) -> Gemm | None:
    names = ("act", "wgt", "acc")
    moved = {f"{name}_address": getattr(one, f"{name}_address") for name in names}
    same = replace(
        other, **moved, act_read_banks=one.act_read_banks, acc_banks=one.acc_banks, **_units(one)
    )
    level = _levels(one.extent)
    if same != one or level == GEMM_LEVELS:
        return None
    fields: dict[str, Any] = {"extent": _put(one.extent, level, 2)}
    for name in names:
        apart = _apart(getattr(one, f"{name}_address"), getattr(other, f"{name}_address"))
        fields[f"{name}_stride"] = _put(getattr(one, f"{name}_stride"), level, apart)
    fields["act_read_banks"] = one.act_read_banks | other.act_read_banks
    fields["acc_banks"] = one.acc_banks | other.acc_banks
    return replace(one, **fields)


def _vector(one: Vector, other: Vector) -> Vector | None:
    pairs, banks = is_pair(one), ("act_read_banks", "act_write_banks", "acc_banks")
    names = ("source_address", "destination_address", "par_address", "tap_address", *banks)
    own = {name: getattr(one, name) for name in names}
    if pairs and is_pair(other):
        stride = one.source_stride[0], *other.source_stride[1:]
        own["source_stride"] = stride
    level = max(_levels(one.extent), one.reduction_levels)
    if replace(other, **own, **_units(one)) != one or level == VECTOR_LEVELS or is_window(one):
        return None
    apart = {name: _apart(getattr(one, name), getattr(other, name)) for name in names[:4]}
    taps = apart["tap_address"]
    if pairs:
        taps = apart["source_address"] + other.source_stride[0] - one.source_stride[0]
    if max(abs(taps), abs(apart["par_address"])) >= SHORT:
        return None
    fields: dict[str, Any] = {
        "extent": _put(one.extent, level, 2),
        "source_stride": _put(one.source_stride, level, apart["source_address"]),
        "tap_stride": _put(one.tap_stride, level, taps),
        "destination_stride": _put(one.destination_stride, level - 1, apart["destination_address"]),
        "par_stride": _put(one.par_stride, level - 1, apart["par_address"]),
        **{name: getattr(one, name) | getattr(other, name) for name in banks},
    }
    return replace(one, **fields)


def _store(one: Store, other: Store) -> Store | None:
    same = replace(
        other,
        dram_address=one.dram_address,
        sram_address=one.sram_address,
        act_read_banks=one.act_read_banks,
        **_strides(one),
        **_units(one),
    )
    alike = _strides(one, plain=True) == _strides(other, plain=True)
    axis = "y" if one.count_y == 1 else "z"
    if same != one or not alike or getattr(one, f"count_{axis}") > 1:
        return None
    fields: dict[str, Any] = {
        f"count_{axis}": 2,
        f"dram_stride_{axis}": other.dram_address - one.dram_address,
        f"sram_stride_{axis}": _apart(one.sram_address, other.sram_address),
        "act_read_banks": one.act_read_banks | other.act_read_banks,
    }
    return replace(one, **fields)


def _strides(store: Store, *, plain: bool = False) -> dict[str, Any]:
    """The strides of a STORE; with ``plain``, 0 for those that it does not use."""
    return {
        f"{memory}_stride_{axis}": getattr(store, f"{memory}_stride_{axis}")
        * (not plain or getattr(store, f"count_{axis}") > 1)
        for memory in ("dram", "sram")
        for axis in "yz"
    }


def _units(one: Instruction) -> dict[str, Any]:
    return {"wait": one.wait, "post": one.post}


def _levels(extent: Sequence[int]) -> int:
    """Levels up to the last one of several iterations."""
    return max((level + 1 for level, count in enumerate(extent) if count > 1), default=0)


def _put(values: Sequence[int], level: int, value: int) -> tuple[int, ...]:
    return (*values[:level], value, *values[level + 1 :])


def _apart(one: int, other: int) -> int:
    """From one address to another, as a stride; addresses wrap."""
    return (other - one + LONG) % (2 * LONG) - LONG
