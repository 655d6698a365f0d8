"""Buffers of some rows: every row where it must be, whatever a strip reads in one piece."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.compiler.targets.vta.rows import Reader, RowBuffer, RowRing, mirror_rows
from dovetail.isa.footprint import scratchpad_writes
from dovetail.isa.memories import Memory

from .programs import TINY

X = Activation("x", 2 * TINY.block, 40, 3, TINY.block, (1, 1, 1, 0), 7)


def ring(depth: int, mirror: int) -> RowRing:
    return RowRing(X, depth, mirror, (), None)


@given(st.integers(1, 12), st.data())
def test_rows_lie_once_or_where_they_are_mirrored_twice(depth: int, data: st.DataObject) -> None:
    mirror = data.draw(st.integers(0, depth - 1))
    first, count = data.draw(st.integers(0, 30)), data.draw(st.integers(1, depth))
    found = [
        (run.first + n, run.place + n)
        for run in ring(depth, mirror).runs(first, count)
        for n in range(run.count)
    ]
    rows = range(first, first + count)
    wanted = {(row, row % depth) for row in rows}
    wanted |= {(row, row % depth + depth) for row in rows if row % depth < mirror}
    assert set(found) == wanted
    assert len({place for _, place in found}) == len(found)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 2), st.integers(0, 6))
def test_what_a_strip_reads_lies_together(step: int, length: int, first: int, more: int) -> None:
    reader = Reader(0, first, step, length, 20)
    depth = length + more
    mirror = mirror_rows((reader,), depth)
    assert mirror < length
    places = {
        row: {run.place + n for run in ring(depth, mirror).runs(row, 1) for n in range(run.count)}
        for row in range(first + 20 * step + length)
    }
    for strip in range(20):
        start = reader.start(strip)
        for offset in range(length):
            assert start % depth + offset in places[start + offset]


def test_rows_at_the_edge_are_loaded_with_their_halo() -> None:
    buffer = RowBuffer(ring(8, 0), 100, 4096, TINY.bus_bytes)
    (load,) = buffer.fetch(0, 4)
    assert (load.pad_y_before, load.count_y, load.pad_y_after) == (1, 3, 0)
    assert (load.pad_x_before, load.count_x, load.pad_x_after) == (1, 3, 0)
    assert (load.sram_address, load.dram_address, load.count_z) == (100, 4096, 2)
    wrapped = list(buffer.fetch(6, 4))
    assert [(each.sram_address, each.count_y) for each in wrapped] == [(100 + 6 * 4, 2), (100, 2)]


def test_rows_are_stored_without_their_halo() -> None:
    buffer = RowBuffer(ring(8, 2), 100, 4096, TINY.bus_bytes)
    stores = list(buffer.put(7, 3))
    assert [(each.sram_address, each.count_y) for each in stores] == [(100 + 7 * 4 + 1, 3)]
    assert stores[0].dram_address == 4096 + 6 * 3 * TINY.block


@pytest.mark.parametrize("mirror", [0, 2])
def test_the_halo_beside_the_rows_is_filled_once(mirror: int) -> None:
    buffer = RowBuffer(ring(6, mirror), 100, 0, TINY.bus_bytes)
    touched = {
        int(word)
        for load, _ in buffer.sides()
        for word in scratchpad_writes(load, TINY)[0].addresses
        if load.memory is Memory.ACT
    }
    rows = 6 + mirror
    assert touched == {100 + 4 * (block * rows + row) for block in range(2) for row in range(rows)}
