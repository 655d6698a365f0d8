"""The end of a program in two parts."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.targets.vta.cut_end import cut_ends
from dovetail.isa.configs import find_config
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Finish, Gemm, Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.semantics import execute
from dovetail.isa.state import MachineState

TINY = find_config("tiny")
LOAD = Load(memory=Memory.WGT, sram_address=5, dram_address=64, count_x=12)
GEMM = Gemm(
    act_address=3,
    wgt_address=5,
    acc_address=2,
    extent=(2, 6, 1, 1, 1, 1),
    act_stride=(1, 0, 0, 0, 0, 0),
    wgt_stride=(1, 2, 0, 0, 0, 0),
    acc_stride=(0, 1, 0, 0, 0, 0),
    reduction=1,
)
VECTOR = Vector(
    source=Memory.ACC,
    destination=Memory.ACT,
    source_address=2,
    destination_address=40,
    par_address=7,
    extent=(1, 6, 1, 1, 1),
    source_stride=(0, 1, 0, 0, 0),
    destination_stride=(1, 0, 0, 0),
    par_stride=(1, 0, 0, 0),
    finish=Finish.REQUANTIZE,
)
STORE = Store(sram_address=38, dram_address=1024, count_x=8)
FILL = Load(memory=Memory.ACT, sram_address=0, dram_address=512, count_x=8)
PROGRAM = [with_bank_masks(each, TINY) for each in (LOAD, FILL, LOAD, GEMM, VECTOR, STORE)]


def left(program: list[Instruction]) -> bytes:
    """DRAM after a program."""
    rng = np.random.default_rng(6)
    state = MachineState.zeros(TINY, rng.integers(0, 256, 2048).astype(np.uint8))
    state.par.scale[:] = rng.uniform(0.001, 0.01, state.par.scale.shape)
    for each in program:
        execute(state, each)
    return state.dram.tobytes()


def test_both_parts_do_what_the_whole_does() -> None:
    found = list(cut_ends(PROGRAM, TINY))
    assert [len(plain) for plain, _ in found] == [10] * 3
    for (plain, parts), blocks in zip(found, (1, 2, 4), strict=True):
        assert parts == [0, 1, 2, 2, 3, 4, 5, 3, 4, 5]
        assert left(plain) == left(PROGRAM)
        load, gemm, store = plain[3], plain[-3], plain[-1]
        assert isinstance(load, Load)
        assert isinstance(gemm, Gemm)
        assert isinstance(store, Store)
        assert (load.count_x, gemm.extent[1], store.count_x) == (2 * blocks, blocks, blocks)
        # The first part needs none of the last words of weights.
        assert (
            left([*plain[:3], *plain[4:7]])[1024 : 1024 + 4 * (8 - blocks)]
            == (left(PROGRAM)[1024 : 1024 + 4 * (8 - blocks)])
        )


@pytest.mark.parametrize(
    "program",
    [
        [GEMM, VECTOR, STORE],
        [LOAD, GEMM, VECTOR],
        [LOAD, replace(GEMM, extent=(2, 5, 1, 1, 1, 1)), VECTOR, STORE],
        [replace(LOAD, memory=Memory.PAR), GEMM, VECTOR, STORE],
        [LOAD, GEMM, VECTOR, replace(STORE, count_y=2)],
    ],
)
def test_other_ends_stay_whole(program: list[Instruction]) -> None:
    assert not list(cut_ends(program, TINY))
