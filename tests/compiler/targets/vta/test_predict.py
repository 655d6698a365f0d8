"""Predicted cycles of every instruction are the simulator's."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.targets.vta.predict import predict
from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.encoding import encode
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Instruction, Load, Store
from dovetail.isa.memories import Memory, Unit
from dovetail.vta_sim.machine import time_program
from tests.differential.configs import VARIANTS
from tests.differential.generate import generate
from tests.instructions import gemm

ADDRESS = 1 << 24
ZYNQ = find_config("zynq7020")
GEMM = gemm((30, 1, 1, 0), reduction=1, wait=frozenset({Unit.LOAD}))


def _timed(program: Sequence[Instruction], config: HardwareConfig) -> list[tuple[int, int]]:
    code = b"".join(encode(instruction) for instruction in program)
    words = np.frombuffer(code, np.uint8).reshape(-1, INSTRUCTION_BYTES)
    found = time_program(words, config, ADDRESS, config.dram)
    return list(zip(found.accepted.tolist(), found.ended.tolist(), strict=True))


@pytest.mark.parametrize("config", [*CONFIGS.values(), *VARIANTS.values()], ids=lambda c: c.name)
def test_random_programs(config: HardwareConfig) -> None:
    for number in range(12):
        case = generate(config, 77, number)
        chosen = replace(config, dram=case.timing)
        assert predict(case.instructions, chosen, ADDRESS) == _timed(case.instructions, chosen)


@pytest.mark.parametrize("latency", [1, 24, 300])
@pytest.mark.parametrize("interval", [1, 3])
@pytest.mark.parametrize("address", [0, 16, 112])
def test_long_runs_of_bursts_while_others_come(latency: int, interval: int, address: int) -> None:
    dram = replace(ZYNQ.dram, latency_cycles=latency, beat_interval_cycles=interval)
    config = replace(ZYNQ, dram=dram)
    first = Load(
        memory=Memory.ACT,
        sram_address=0,
        dram_address=address,
        count_x=2000,
        post=frozenset({Unit.GEMM}),
    )
    other = Load(memory=Memory.ACT, sram_address=0, dram_address=address, count_x=700)
    store = Store(dram_address=1 << 20, count_x=33, sram_address=5000)
    free = replace(GEMM, wait=frozenset())
    program = [free, first, GEMM, store, other, store, first, *[free] * 9, GEMM, store]
    masked = [with_bank_masks(each, config) for each in program]
    assert predict(masked, config, ADDRESS) == _timed(masked, config)


def test_a_program_that_waits_for_ever_is_refused() -> None:
    with pytest.raises(ValueError, match="instruction 0 never ends"):
        predict([with_bank_masks(GEMM, ZYNQ)], ZYNQ)
