"""Tiles are the iterations of leading serial loops that all stages share and none folds."""

import numpy as np
import pytest

from dovetail.compiler.errors import GraphError
from dovetail.compiler.tensor.interpreter import run_kernel
from dovetail.compiler.tensor.ir import Kernel
from dovetail.compiler.tensor.parse import parse_text
from dovetail.compiler.tensor.tiles import tile_loops

SUM = """
kernel "k" macs 0
buffer "x": int8[2, 3, 4] in act
buffer "acc": int32[2, 4] in acc
stage "sum"
for i in 2 serial
for k in 3 serial reduces
for l in 4 serial
"acc"[i, l] = sum("x"[i, k, l])
"""


def names(text: str) -> list[str]:
    """The tile loops of a kernel in text form."""
    return [loop.name for loop in tile_loops(parse_text(text))]


def test_tiles_end_before_a_loop_that_folds() -> None:
    assert names(SUM) == ["i"]


def test_tiles_end_before_a_loop_of_hardware_or_lanes() -> None:
    assert names(SUM.replace("i in 2 serial", "i in 2 hardware")) == []
    assert names(SUM.replace("i in 2 serial", "i in 2 lane")) == []


def test_tiles_end_before_a_loop_that_another_stage_lacks() -> None:
    copy = (
        'buffer "y": int32[2, 4] in acc\nstage "copy"\n'
        'for i in 2 serial\nfor l in 4 serial\n"y"[i, l] = "acc"[i, l]\n'
    )
    assert names(SUM + copy) == ["i"]
    other = copy.replace(
        "for i in 2 serial\nfor l in 4 serial", "for l in 4 serial\nfor i in 2 lane"
    )
    assert names(SUM + other) == []


def test_a_serial_loop_that_folds_is_summed_whole_in_each_tile() -> None:
    x = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
    arrays = {"x": x, "acc": np.zeros((2, 4), np.int32)}
    seen = []
    run_kernel(parse_text(SUM), arrays, lambda tile, _: seen.append(dict(tile)))
    assert seen == [{"i": 0}, {"i": 1}]
    np.testing.assert_array_equal(arrays["acc"], x.sum(axis=1))


def test_a_kernel_without_stages_has_no_tiles() -> None:
    with pytest.raises(GraphError, match="'k' has no stages"):
        tile_loops(Kernel("k", ()))
