"""Footprint of an instruction: nothing else changes, and nothing else matters."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.isa import semantics
from dovetail.isa.configs import find_config
from dovetail.isa.footprint import (
    distinct,
    dram_rows,
    nest,
    results_written,
    scratchpad_reads,
    scratchpad_writes,
    with_bank_masks,
)
from dovetail.isa.instructions import (
    Finish,
    Fold,
    Gemm,
    Instruction,
    Load,
    Multiplier,
    Row,
    Store,
    Vector,
)
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState

TINY = find_config("tiny")
DRAM_BYTES = 1 << 12
RNG = np.random.default_rng
counts = st.integers(1, 3)
words = st.integers(0, 1 << 12)
steps = st.integers(-9, 9)
sides = st.sampled_from((Memory.ACT, Memory.ACC))


def _nest(values: st.SearchStrategy[int], levels: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[values] * levels)


@st.composite
def transfers(draw: st.DrawFn) -> Load | Store:
    memory = draw(st.sampled_from(Memory))
    is_load = draw(st.booleans())
    size = TINY.word_bytes(memory if is_load else Memory.ACT)
    block = {
        "sram_address": draw(words),
        "dram_address": DRAM_BYTES // 2 + size * draw(steps),
        "count_x": draw(counts),
        "count_y": draw(counts),
        "count_z": draw(counts),
        "dram_stride_y": size * draw(steps),
        "dram_stride_z": size * draw(steps),
        "sram_stride_y": draw(steps),
        "sram_stride_z": draw(steps),
    }
    if not is_load:
        return Store(**block)  # type: ignore[arg-type]
    pads = {f"pad_{side}": draw(st.integers(0, 2)) for side in ("x_before", "x_after", "y_before")}
    fill = draw(st.integers(0, 127))
    load = Load(memory=memory, **block, **pads, pad_value=fill)  # type: ignore[arg-type]
    if not draw(st.booleans()):
        return load
    return replace(
        load,
        memory=Memory.ACT,
        dram_address=DRAM_BYTES // 2 + draw(steps),
        dram_stride_y=4 * draw(steps),
        dram_stride_z=4 * draw(steps),
        pad_x_before=0,
        pad_x_after=0,
        step=draw(st.integers(4, 13)),
        gap=draw(st.integers(0, 2)),
        row_first=draw(st.integers(0, 9)),
        row_end=draw(st.integers(0, 40)),
    )


@st.composite
def computations(draw: st.DrawFn) -> Gemm | Vector:
    if draw(st.booleans()):
        return Gemm(
            act_address=draw(words),
            wgt_address=draw(words),
            acc_address=draw(words),
            extent=draw(_nest(counts, 6)),
            act_stride=draw(_nest(steps, 6)),
            wgt_stride=draw(_nest(steps, 6)),
            acc_stride=draw(_nest(steps, 6)),
            reduction=draw(st.integers(0, 63)),
            accumulate=draw(st.booleans()),
            weight_offset=draw(st.integers(-256, 255)),
            act_zero_point=draw(st.integers(-128, 127)),
        )
    destination = draw(sides)
    return Vector(
        source=draw(sides),
        destination=destination,
        source_address=draw(words),
        destination_address=draw(words),
        extent=draw(_nest(counts, 5)),
        source_stride=draw(_nest(steps, 5)),
        destination_stride=draw(_nest(steps, 4)),
        reduction_levels=draw(st.integers(1, 5)),
        fold=draw(st.sampled_from(Fold)),
        multiplier=draw(st.sampled_from(Multiplier)),
        finish=draw(st.sampled_from(tuple(Finish)[: Finish.CUSTOM])),
        lookup=destination is Memory.ACT and draw(st.booleans()),
        shift=draw(st.integers(0, 31)),
        m0=draw(st.integers(-999, 999)),
        m1=draw(st.integers(-999, 999)),
        par_address=draw(st.integers(0, 63)),
        par_stride=draw(_nest(steps, 4)),
        tap_address=draw(words),
        tap_stride=draw(_nest(steps, 5)),
        tab_address=draw(st.sampled_from((0, 256))),
        window_skip=draw(st.integers(0, 3)),
    )


def _state(seed: int) -> MachineState:
    rng = RNG(seed)
    state = MachineState.zeros(TINY, rng.integers(0, 256, DRAM_BYTES, dtype=np.uint8))
    for memory in Memory:
        shape = (TINY.depth(memory), TINY.word_bytes(memory))
        state.write_words(memory, np.arange(shape[0]), rng.integers(0, 256, shape, dtype=np.uint8))
    state.par.scale[...] = rng.uniform(1e-6, 1e-2, state.par.scale.shape)
    return state


def _masks(instruction: Instruction) -> tuple[dict[object, np.ndarray], dict[object, np.ndarray]]:
    """For each memory, and "dram", which words (bytes) are read, and which are written."""
    masks = []
    for touches in (scratchpad_reads(instruction, TINY), scratchpad_writes(instruction, TINY)):
        mask: dict[object, np.ndarray] = {m: np.zeros(TINY.depth(m), bool) for m in Memory}
        mask["dram"] = np.zeros(DRAM_BYTES, bool)
        for touch in touches:
            mask[touch.memory][touch.addresses] = True
        masks.append(mask)
    if isinstance(instruction, Load | Store):
        for start, size in dram_rows(instruction, TINY):
            masks[isinstance(instruction, Store)]["dram"][start : start + size] = True
    return masks[0], masks[1]


def _contents(state: MachineState) -> dict[object, np.ndarray]:
    return {**{m: state.words(m).copy() for m in Memory}, "dram": state.dram.copy()}


@settings(max_examples=120, deadline=None)
@given(st.one_of(transfers(), computations()), st.integers(0, 99))
def test_only_what_is_written_changes(instruction: Instruction, seed: int) -> None:
    state = _state(seed)
    before = _contents(state)
    semantics.execute(state, instruction)
    _, written = _masks(instruction)
    for where, after in _contents(state).items():
        np.testing.assert_array_equal(after[~written[where]], before[where][~written[where]])


@settings(max_examples=120, deadline=None)
@given(st.one_of(transfers(), computations()), st.integers(0, 99))
def test_only_what_is_read_matters(instruction: Instruction, seed: int) -> None:
    """With all else replaced, the instruction writes the same."""
    first, second, other = _state(seed), _state(seed), _state(seed + 1)
    read, written = _masks(instruction)
    for memory in Memory:
        places = np.flatnonzero(~read[memory])
        second.write_words(memory, places, other.words(memory)[places])
    second.dram[~read["dram"]] = other.dram[~read["dram"]]
    semantics.execute(first, instruction)
    semantics.execute(second, instruction)
    left, right = _contents(first), _contents(second)
    for where, mask in written.items():
        np.testing.assert_array_equal(left[where][mask], right[where][mask])


@settings(max_examples=60, deadline=None)
@given(st.one_of(transfers(), computations()))
def test_bank_masks_name_the_banks_of_all_addresses(instruction: Instruction) -> None:
    masked = with_bank_masks(instruction, TINY)
    read, written = _masks(instruction)
    for name, mask in (
        ("act_read_banks", read[Memory.ACT]),
        ("act_write_banks", written[Memory.ACT]),
        ("acc_banks", read[Memory.ACC] | written[Memory.ACC]),
    ):
        expected = sum(1 << bank for bank, part in enumerate(np.split(mask, 4)) if part.any())
        assert getattr(masked, name, 0) == expected


def test_a_transfer_without_words_reads_no_row() -> None:
    assert dram_rows(Load(memory=Memory.ACT, sram_address=0, count_x=0, pad_x_after=1), TINY) == []


@pytest.mark.parametrize("stride", [-4, 4])
def test_rows_wrap_at_the_end_of_the_address_space(stride: int) -> None:
    load = Load(memory=Memory.ACT, sram_address=0, dram_address=0, count_y=2, dram_stride_y=stride)
    assert dram_rows(load, TINY) == [(0, 4), (stride % (1 << 32), 4)]


@pytest.mark.parametrize("inner", [1, 2, 3, 4])
def test_pairs_read_their_odd_elements_from_a_place_of_their_own(inner: int) -> None:
    vector = Vector(
        source=Memory.ACT,
        destination=Memory.ACC,
        source_address=100,
        destination_address=0,
        extent=(inner, 2, 1, 1, 1),
        source_stride=(7, 30, 0, 0, 0),
        destination_stride=(0, 0, 0, 0),
        fold=Fold.MAC,
        multiplier=Multiplier.PAIR,
        tap_stride=(400, 3, 0, 0, 0),
        reduction_levels=2,
    )
    expected = set()
    for j in range(2):
        for i in range(inner):
            expected.add(100 + 7 + 400 * i + 3 * j if i % 2 else 100 + 7 * i + 30 * j)
    read = [t for t in scratchpad_reads(vector, TINY) if t.memory is Memory.ACT]
    assert {int(word) for touch in read for word in touch.addresses} == expected
    assert all(touch.addresses.size for touch in read)


PLAIN = Vector(
    source=Memory.ACT,
    destination=Memory.ACT,
    source_address=0,
    destination_address=9,
    extent=(2, 3, 2, 1, 1),
    source_stride=(1, 2, 6, 0, 0),
    destination_stride=(1, 5, 0, 0),
    reduction_levels=1,
    fold=Fold.MAC,
    multiplier=Multiplier.TAP,
    finish=Finish.REQUANTIZE,
    tap_address=9,
    tap_stride=(0, 4, 0, 0, 0),
    par_address=5,
    par_stride=(0, 2, 0, 0),
    tab_address=256,
)


@pytest.mark.parametrize(
    ("changes", "memory", "words"),
    [
        ({}, Memory.TAP, {9, 13, 17}),
        ({"multiplier": Multiplier.WINDOW}, Memory.TAP, {8, 9, 10, 12, 13, 14, 16, 17, 18}),
        ({"multiplier": Multiplier.IMMEDIATE}, Memory.TAP, set()),
        ({"multiplier": Multiplier.PAIR}, Memory.TAP, set()),
        ({"fold": Fold.ADD}, Memory.TAP, set()),
        ({}, Memory.PAR, {5, 7}),
        ({"reduction_levels": 3}, Memory.PAR, {5}),
        ({"finish": Finish.SHIFT}, Memory.PAR, set()),
        ({"finish": Finish.SHIFT, "row": Row.LESS}, Memory.PAR, {5, 7}),
        ({"row": Row.LESS, "fold": Fold.MAX}, Memory.PAR, set()),
        ({"row": Row.OVER, "fold": Fold.MAX}, Memory.PAR, {5, 7}),
        ({}, Memory.TAB, set()),
        ({"lookup": True}, Memory.TAB, set(range(256, 512))),
        ({"lookup": True, "row": Row.OVER}, Memory.TAB, set()),
    ],
)
def test_a_vector_reads_the_constants_of_its_kind(
    changes: dict[str, Any], memory: Memory, words: set[int]
) -> None:
    found = scratchpad_reads(replace(PLAIN, **changes), TINY)
    assert {int(n) for each in found if each.memory is memory for n in each.addresses} == words


@pytest.mark.parametrize("skip", [0, 1, 2, 3])
@pytest.mark.parametrize("levels", [1, 2, 3, 4, 5])
def test_windows_leave_the_first_results_of_each_run_unwritten(levels: int, skip: int) -> None:
    extent, stride = (2, 3, 2, 4, 2), (1, 5, 20, 90)
    vector = Vector(
        source=Memory.ACT,
        destination=Memory.ACC,
        source_address=0,
        destination_address=7,
        extent=extent,
        source_stride=(1, 2, 6, 12, 48),
        destination_stride=stride,
        fold=Fold.MAC,
        multiplier=Multiplier.WINDOW,
        reduction_levels=levels,
        window_skip=skip,
    )
    outer = [1 if level < levels else extent[level] for level in range(1, 5)]
    expected, addresses = [], set()
    for place in np.ndindex(*reversed(outer)):
        indices = place[::-1]
        expected.append((indices[levels - 1] if levels < 5 else 0) >= skip)
        if expected[-1]:
            word = 7 + sum(i * step for i, step in zip(indices, stride, strict=True))
            addresses.add(word % TINY.acc_depth)
    assert results_written(vector).tolist() == expected
    for nests in (nest, distinct):
        touches = scratchpad_writes(vector, TINY, nests)
        assert {word for touch in touches for word in touch.addresses.tolist()} == addresses
    other = replace(vector, multiplier=Multiplier.TAP)
    assert results_written(other).all()
    assert len(results_written(other)) == len(expected)
