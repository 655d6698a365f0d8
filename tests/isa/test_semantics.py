"""GEMM, LOAD and STORE against plain loops over Python integers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.isa import semantics
from dovetail.isa.instructions import Gemm, Load, Store
from dovetail.isa.memories import Memory

from .loops import TINY, at, nest, random_state, signed, steps, wrap

extents6 = st.tuples(*[st.integers(1, 3)] * 3, st.just(1), st.integers(1, 2), st.just(1))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1000),
    extents6,
    *[st.tuples(*[steps] * 6)] * 3,
    st.integers(0, 63),
    st.booleans(),
    st.integers(-256, 255),
    st.integers(-128, 127),
)
def test_gemm_is_its_loop(
    seed: int,
    extent: tuple[int, ...],
    act: tuple[int, ...],
    wgt: tuple[int, ...],
    acc: tuple[int, ...],
    reduction: int,
    accumulate: bool,
    offset: int,
    zero_point: int,
) -> None:
    state = random_state(seed)
    gemm = Gemm(
        act_address=3,
        wgt_address=120,
        acc_address=2,
        extent=extent,
        act_stride=act,
        wgt_stride=wgt,
        acc_stride=acc,
        reduction=reduction,
        accumulate=accumulate,
        weight_offset=offset,
        act_zero_point=zero_point,
    )
    expected = state.acc.astype(object)
    for index in nest(extent):
        a = state.act[at(3, index, act, TINY.act_depth)]
        w = state.wgt[at(120, index, wgt, TINY.wgt_depth)]
        o = at(2, index, acc, TINY.acc_depth)
        first = not accumulate and all(
            i == 0 for level, i in enumerate(index) if reduction >> level & 1
        )
        for lane in range(TINY.block):
            terms = ((int(w[lane][k]) + offset, int(a[k]) - zero_point) for k in range(TINY.block))
            dot = sum(weight * value for weight, value in terms)
            expected[o][lane] = wrap((0 if first else int(expected[o][lane])) + dot)
    semantics.gemm(state, gemm)
    np.testing.assert_array_equal(state.acc, expected.astype(np.int64))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(Memory), st.data())
def test_load_is_its_loop(seed: int, memory: Memory, data: st.DataObject) -> None:
    state = random_state(seed)
    draw, size = data.draw, TINY.word_bytes(memory)
    load = Load(
        memory=memory,
        sram_address=draw(st.integers(0, 30)),
        dram_address=size * 4,
        count_x=draw(st.integers(0, 3)),
        count_y=draw(st.integers(0, 3)),
        count_z=draw(st.integers(1, 2)),
        dram_stride_y=size * draw(st.integers(0, 5)),
        dram_stride_z=size * draw(st.integers(0, 5)),
        sram_stride_y=8,
        sram_stride_z=64,
        pad_x_before=1,
        pad_x_after=draw(st.integers(0, 2)),
        pad_y_before=1,
        pad_y_after=draw(st.integers(0, 2)),
        pad_value=draw(st.integers(0, 127)),
    )
    expected = state.words(memory).copy()
    dram = state.dram
    for z in range(load.count_z):
        for row in range(load.rows):
            for column in range(load.columns):
                cell = (load.sram_address + z * 64 + row * 8 + column) % TINY.depth(memory)
                y, x = row - 1, column - 1
                if 0 <= y < load.count_y and 0 <= x < load.count_x:
                    start = load.dram_address + z * load.dram_stride_z
                    start += y * load.dram_stride_y + x * size
                    expected[cell] = dram[start : start + size]
                else:
                    expected[cell] = load.pad_value
    semantics.load(state, load)
    np.testing.assert_array_equal(state.words(memory), expected)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1000), st.data())
def test_a_load_with_a_step_takes_windows(seed: int, data: st.DataObject) -> None:
    state, draw = random_state(seed), data.draw
    load = Load(
        memory=Memory.ACT,
        sram_address=draw(st.integers(0, 30)),
        dram_address=draw(st.integers(100, 200)),
        count_x=draw(st.integers(1, 5)),
        count_y=draw(st.integers(0, 3)),
        count_z=draw(st.integers(1, 2)),
        dram_stride_y=4 * draw(st.integers(-5, 5)),
        dram_stride_z=4 * draw(st.integers(-5, 5)),
        sram_stride_y=16,
        sram_stride_z=128,
        pad_y_before=1,
        pad_y_after=draw(st.integers(0, 2)),
        pad_value=draw(st.integers(-128, 127)),
        step=draw(st.integers(4, 11)),
        gap=draw(st.integers(0, 2)),
        row_first=draw(st.integers(0, 9)),
        row_end=draw(st.integers(0, 50)),
    )
    expected = state.act.copy()
    for z in range(load.count_z):
        for row in range(load.rows):
            for x in range(load.count_x):
                cell = load.sram_address + z * 128 + row * 16 + x * (1 + load.gap)
                for lane in range(TINY.block):
                    place = x * load.step + lane
                    value = load.pad_value
                    if 0 <= row - 1 < load.count_y and load.row_first <= place < load.row_end:
                        start = load.dram_address + z * load.dram_stride_z
                        value = signed(
                            int(state.dram[start + (row - 1) * load.dram_stride_y + place]), 8
                        )
                    expected[cell][lane] = value
    semantics.load(state, load)
    np.testing.assert_array_equal(state.act, expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(-9, 9), st.integers(-9, 9))
def test_store_is_its_loop(seed: int, stride_y: int, stride_z: int) -> None:
    state = random_state(seed)
    store = Store(
        dram_address=2048,
        sram_address=5,
        count_x=3,
        count_y=4,
        count_z=2,
        dram_stride_y=16,
        dram_stride_z=-128,
        sram_stride_y=stride_y,
        sram_stride_z=stride_z,
    )
    expected = state.dram.copy()
    for z in range(2):
        for y in range(4):
            for x in range(3):
                word = state.act[(5 + z * stride_z + y * stride_y + x) % TINY.act_depth]
                start = 2048 - z * 128 + y * 16 + x * 4
                expected[start : start + 4] = word.view(np.uint8)
    semantics.store(state, store)
    np.testing.assert_array_equal(state.dram, expected)
