"""LOADs and STOREs of more than their fields count: as several they move the same."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler import compile
from dovetail.compiler.targets.vta.long_moves import MOST, MOST_PADDING, moves
from dovetail.isa.configs import find_config
from dovetail.isa.footprint import dram_word_bytes, load_cells
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory
from dovetail.runtime import run

from ....end_to_end.models import Network, reference

CONFIG = find_config("zynq7020")
WORD = CONFIG.word_bytes(Memory.ACT)
PLAIN = Load(
    memory=Memory.ACT, sram_address=7, dram_address=160, dram_stride_y=1600, dram_stride_z=32000,
    sram_stride_y=20_000, sram_stride_z=2**28, pad_value=3,
)  # fmt: skip
PADDED = replace(PLAIN, pad_x_before=2, pad_x_after=1, pad_y_before=1, pad_y_after=2)
WINDOWS = replace(PLAIN, count_x=6000, step=24, gap=1, row_first=40, row_end=130_000)


def cells(load: Load) -> NDArray[np.int64]:
    """For each cell: its word, where in DRAM what it gets begins, or -1, and which bytes of it."""
    words, data = load_cells(load, 2**40)
    z, y, x = np.indices(words.shape)
    x, y = x - load.pad_x_before, y - load.pad_y_before
    size = load.step or dram_word_bytes(load, CONFIG)
    start = load.dram_address + z * load.dram_stride_z + y * load.dram_stride_y + x * size
    ends = [np.clip(end - x * size, 0, WORD) for end in (load.row_first, load.row_end)]
    parts = words, *(np.where(data, each, -1) for each in (start, *ends))
    found: NDArray[np.int64] = np.stack([each.reshape(-1) for each in parts], -1)
    return found[np.argsort(found[:, 0])]


@pytest.mark.parametrize(
    ("whole", "pieces"),
    [
        (replace(PADDED, count_x=4095, count_y=3), 1),
        (replace(PADDED, count_x=9000, count_y=2), 3),
        (replace(PADDED, count_y=4096, count_z=2), 2),
        (replace(PADDED, count_z=5000, count_y=2, sram_stride_z=2**20), 2),
        (replace(PADDED, pad_x_before=700, pad_x_after=256, count_y=2), 4),
        (replace(PADDED, pad_y_before=255, pad_y_after=600), 3),
        (replace(PADDED, count_x=0, pad_x_before=300, count_y=4096), 4),
        (WINDOWS, 2),
        (replace(WINDOWS, row_end=97_000), 2),
    ],
)
def test_the_same_cells_get_the_same_bytes_once(whole: Load, pieces: int) -> None:
    found = list(moves(whole, CONFIG))
    assert len(found) == pieces
    for each in found:
        assert max(each.count_x, each.count_y, each.count_z) <= MOST
        assert isinstance(each, Load)
        assert max(each.pad_x_before, each.pad_x_after) <= MOST_PADDING
        assert max(each.pad_y_before, each.pad_y_after) <= MOST_PADDING
    parts = np.concatenate([cells(each) for each in found if isinstance(each, Load)])
    np.testing.assert_array_equal(parts[np.argsort(parts[:, 0])], cells(whole))


def test_a_store_is_cut_too() -> None:
    store = Store(dram_address=64, sram_address=5, count_x=4097, count_z=2, dram_stride_z=1 << 20)
    first, second = moves(store, CONFIG)
    assert first == replace(store, count_x=4095)
    moved = replace(store, count_x=2, sram_address=5 + 4095, dram_address=64 + 4095 * WORD)
    assert second == moved


def test_a_vector_of_more_blocks_than_a_load_counts_is_multiplied() -> None:
    net = Network(np.random.default_rng(1))
    proto = net.model(net.dense(net.input((MOST + 1) * CONFIG.block, 1, 1), 2))
    x = np.random.default_rng(2).integers(-128, 128, (1, (MOST + 1) * CONFIG.block, 1, 1), np.int8)
    done = run(compile(proto, CONFIG), {"x": x})
    np.testing.assert_array_equal(*done.outputs.values(), reference(proto, x))
