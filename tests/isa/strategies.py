"""Random instructions for property-based tests: any legal field values, not only sensible ones."""

from dataclasses import replace

from hypothesis import strategies as st

from dovetail.isa.instructions import (
    Finish,
    Fold,
    Gemm,
    Instruction,
    Load,
    Multiplier,
    Rounding,
    Row,
    Store,
    Vector,
)
from dovetail.isa.memories import Memory, Unit

__all__ = ["instructions"]


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _unsigned(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << bits) - 1)


def _units(own: Unit) -> st.SearchStrategy[frozenset[Unit]]:
    return st.frozensets(st.sampled_from([unit for unit in Unit if unit is not own]))


def _levels(values: st.SearchStrategy[int], count: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[values] * count)


BLOCK = {
    "dram_address": _unsigned(32),
    "dram_stride_y": _signed(32),
    "dram_stride_z": _signed(32),
    "sram_address": _unsigned(16),
    "sram_stride_y": _signed(16),
    "sram_stride_z": _signed(16),
    "count_x": st.integers(1, 4095),
    "count_y": st.integers(1, 4095),
    "count_z": st.integers(1, 4095),
    "act_read_banks": _unsigned(8),
}

loads = st.builds(
    Load,
    **{name: values for name, values in BLOCK.items() if name != "act_read_banks"},
    memory=st.sampled_from(Memory),
    **{f"pad_{side}": _unsigned(8) for side in ("x_before", "x_after", "y_before", "y_after")},
    pad_value=_signed(8),
    gap=_unsigned(8),
    row_first=_unsigned(20),
    row_end=_unsigned(20),
    act_write_banks=_unsigned(8),
    acc_banks=_unsigned(4),
    wait=_units(Unit.LOAD),
    post=_units(Unit.LOAD),
)
windows = st.builds(
    replace,
    loads,
    memory=st.just(Memory.ACT),
    step=_unsigned(8),
    **dict.fromkeys(("pad_x_before", "pad_x_after"), st.just(0)),
)
short = st.sampled_from((Memory.WGT, Memory.PAR, Memory.TAB))
packed = st.builds(replace, loads, memory=short, nibbles=st.just(True))
stores = st.builds(Store, **BLOCK, wait=_units(Unit.STORE), post=_units(Unit.STORE))
gemms = st.builds(
    Gemm,
    act_address=_unsigned(16),
    wgt_address=_unsigned(16),
    acc_address=_unsigned(16),
    extent=_levels(st.integers(1, 4095), 6),
    act_stride=_levels(_signed(16), 6),
    wgt_stride=_levels(_signed(16), 6),
    acc_stride=_levels(_signed(16), 6),
    reduction=_unsigned(6),
    accumulate=st.booleans(),
    weight_offset=_signed(9),
    act_zero_point=_signed(8),
    act_read_banks=_unsigned(8),
    acc_banks=_unsigned(4),
    wait=_units(Unit.GEMM),
    post=_units(Unit.GEMM),
)


@st.composite
def vectors(draw: st.DrawFn) -> Vector:
    low, high = sorted((draw(_signed(8)), draw(_signed(8))))
    destination = draw(st.sampled_from((Memory.ACT, Memory.ACC)))
    roundings = list(Rounding)[: len(Rounding) if destination is Memory.ACC else Rounding.WIDE]
    return Vector(
        source=draw(st.sampled_from((Memory.ACT, Memory.ACC))),
        destination=destination,
        source_address=draw(_unsigned(16)),
        destination_address=draw(_unsigned(16)),
        extent=draw(_levels(st.integers(1, 4095), 5)),
        source_stride=draw(_levels(_signed(16), 5)),
        destination_stride=draw(_levels(_signed(16), 4)),
        reduction_levels=draw(st.integers(1, 5)),
        fold=draw(st.sampled_from(Fold)),
        multiplier=draw(st.sampled_from(Multiplier)),
        finish=draw(st.sampled_from(Finish)),
        rounding=draw(st.sampled_from(roundings)),
        lookup=destination is Memory.ACT and draw(st.booleans()),
        zero_point=draw(_signed(8)),
        low=low,
        high=high,
        shift=draw(_unsigned(5)),
        m0=draw(_signed(24)),
        m1=draw(_signed(24)),
        par_address=draw(_unsigned(12)),
        par_stride=draw(_levels(_signed(12), 4)),
        tap_address=draw(_unsigned(12)),
        tap_stride=draw(_levels(_signed(12), 5)),
        tab_address=256 * draw(st.integers(0, 15)),
        window_skip=draw(_unsigned(2)),
        wide_window=draw(st.booleans()),
        row=draw(st.sampled_from(Row)),
        act_read_banks=draw(_unsigned(8)),
        act_write_banks=draw(_unsigned(8)),
        acc_banks=draw(_unsigned(4)),
        wait=draw(_units(Unit.VECTOR)),
        post=draw(_units(Unit.VECTOR)),
    )


instructions: st.SearchStrategy[Instruction] = st.one_of(
    loads, windows, packed, gemms, vectors(), stores
)
