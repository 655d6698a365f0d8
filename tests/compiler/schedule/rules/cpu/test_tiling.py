"""Tiles of contractions: what they leave for threads to share."""

from math import prod
from pathlib import Path

import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.operators.contractions import Contract, contract
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.schedule.rules.cpu.machine import Machine
from dovetail.compiler.schedule.rules.cpu.products import Products
from dovetail.compiler.schedule.rules.cpu.tiling import Tiling, choose_rows, choose_tiling
from tests.kept import check_kept

from .products import products

KEPT = Path(__file__).with_name("kept_tiles.json")


def dense(outputs: int, inputs: int) -> Products:
    """``y[o, l] = sum(x[i] * w[o, i, l])``: blocks of 16 outputs of one position."""
    kinds = TensorType((inputs,), "float32"), TensorType((outputs // 16, inputs, 16), "float32")
    return products(contract(kinds, ((1,), (0, 1, 2)), (0, 2), DType.FLOAT32))


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(("outputs", "inputs"), [(240, 960), (480, 120), (1280, 960)])
def test_a_layer_of_one_position_leaves_tiles_for_most_threads(
    outputs: int, inputs: int, threads: int
) -> None:
    """One tile as large as the registers reads the inputs once, but occupies one thread."""
    tiling = choose_tiling(dense(outputs, inputs), Machine(threads=threads))
    tile = prod(tiling.tiles.values())
    assert 2 * (outputs // 16 // tile) > threads


@pytest.mark.parametrize(
    ("labels", "waited"),
    [
        (((0, 1), (1, 2)), True),
        (((0, 1), (1,), (1, 2)), True),
        (((0, 1, 2), (1, 2)), False),
        (((0, 1, 2), (1,), (1, 2)), False),
    ],
)
def test_only_an_operand_that_alone_has_the_lanes_is_waited_for(
    labels: tuple[tuple[int, ...], ...], waited: bool
) -> None:
    """A slow memory changes tiles where one operand comes from it, vector by vector."""
    kinds = [TensorType((64,) * len(each), "float32") for each in labels]
    found = products(contract(kinds, labels, (0, 2), DType.FLOAT32))
    slow = Machine(streamed_bytes=1, memory_bytes=1)
    assert (choose_tiling(found, slow) != choose_tiling(found, Machine())) == waited


@pytest.mark.parametrize(("dtype", "width"), [("float32", 4), ("float64", 8)])
def test_an_operand_comes_from_memory_if_it_is_as_large_as_the_cache(
    dtype: str, width: int
) -> None:
    labels = (0, 1), (1, 2)
    kinds = [TensorType((64, 64), dtype)] * 2
    found = products(contract((kinds[0], kinds[1]), labels, (0, 2), DType(dtype)))
    size, cached = 64 * 64 * width, choose_tiling(found, Machine())
    for streamed_bytes, waited in ((size, True), (size + 1, False)):
        slow = Machine(streamed_bytes=streamed_bytes, memory_bytes=1)
        assert (choose_tiling(found, slow) != cached) == waited


def test_too_few_products_are_left_to_one_thread() -> None:
    small = dense(240, 8)
    assert choose_tiling(small, Machine(threads=4)) == choose_tiling(small, Machine())
    assert prod(choose_tiling(small, Machine()).tiles.values()) == 15


MACHINES = {
    "plain": Machine(),
    "narrow": Machine(vector_bytes=16, registers=16, loads=1, cache_bytes=16),
    "streams": Machine(streamed_bytes=1 << 10, memory_bytes=2, latency=2),
    "threads": Machine(threads=3, multiply_adds=1),
}


def windows(channels: int, size: int, taps: int, stride: int) -> Products:
    """Depthwise: ``y[h, w, c] = sum(x[s h + i, s w + j, c] * k[i, j, c])``."""
    h, w, c, i, j = range(5)
    rows, columns = (((each, stride), (tap, 1)) for each, tap in ((h, i), (w, j)))
    x, k = (rows, columns, ((c, 1),)), (((i, 1),), ((j, 1),), ((c, 1),))
    output = tuple(((each, 1),) for each in (h, w, c))
    sizes = size, size + 3, channels, taps, taps
    return products(Contract(sizes, (x, k), output, DType.FLOAT32))


def test_tiles_are_those_that_are_kept() -> None:
    found = []
    for name, machine in MACHINES.items():
        for m, k, n in ((1, 64, 48), (7, 128, 33), (30, 5, 96), (64, 300, 64), (200, 64, 3)):
            kinds = TensorType((m, k), "float32"), TensorType((k, n), "float32")
            own = products(contract(kinds, ((0, 1), (1, 2)), (0, 2), DType.FLOAT32))
            turned = TensorType((m, k), "float32"), TensorType((n, k), "float32")
            along = products(contract(turned, ((0, 1), (2, 1)), (0, 2), DType.FLOAT32))
            tiles = " ".join(_text(choose_tiling(each, machine)) for each in (own, along))
            found.append(f"{name}, {m} x {k} x {n}: {tiles}")
        for case in ((16, 9, 3, 1), (48, 14, 3, 2), (64, 28, 3, 1)):
            found.append(f"{name}, windows {case}: {_text(choose_tiling(windows(*case), machine))}")
    sizes = range(1, 31, 2)
    for taps, stride in ((3, 1), (5, 2)):
        rows = [choose_rows(windows(16, size, taps, stride), Machine()).tiles for size in sizes]
        tiles = " ".join(str(*each.values()) or "-" for each in rows)
        found.append(f"rows, {taps} taps, stride {stride}: {tiles}")
    check_kept(KEPT, "tiles", found)


def _text(tiling: Tiling) -> str:
    tiles = ",".join(f"{label}={size}" for label, size in tiling.tiles.items())
    return f"{tiling.vector}/{tiling.lanes}:{tiles}"
