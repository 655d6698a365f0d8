"""The manual says all there is to know: what was written from it alone computes the same."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.instructions import Gemm, Instruction, Load, Store, Vector
from dovetail.isa.launch import Launch, LaunchResult
from dovetail.isa.memories import Memory
from dovetail.runtime import Session
from dovetail.runtime.accelerator.device import AcceleratorDevice
from dovetail.vta_sim.device import SimulatorDevice
from tests.differential.configs import VARIANTS

from .compare import compare, refusals_differ, sizes_of
from .decode import decode
from .machine import StuckError, run
from .memories import Memories
from .page import INSTRUCTION_BYTES, configuration, names_of_configurations, value_names

ONES = (1,) * 6
LOAD = Load(memory=Memory.PAR, sram_address=3, dram_address=2048, dram_stride_y=-512, count_y=2)
WINDOWS = Load(memory=Memory.ACT, sram_address=3, dram_address=77, step=16, row_end=9, gap=1)
GEMM = Gemm(
    **{f"{name}_address": 1 for name in ("act", "wgt", "acc")},
    **{f"{name}_stride": ONES for name in ("act", "wgt", "acc")},
    extent=ONES,
)
VECTOR = Vector(
    source=Memory.ACC,
    destination=Memory.ACT,
    source_address=0,
    destination_address=0,
    extent=ONES[1:],
    source_stride=ONES[1:],
    destination_stride=ONES[2:],
    low=-3,
)
STORE = Store(dram_address=2048, sram_address=5, count_x=2)


class Both:
    """A launcher: the simulator, and the interpreter, which must leave the same DRAM."""

    def __init__(self) -> None:
        self.instructions = 0

    def run(self, launch: Launch) -> LaunchResult:
        """Run one launch twice."""
        done = SimulatorDevice().run(launch)
        found = Memories(configuration(launch.config.name), launch.dram.copy())
        end = launch.program_address + INSTRUCTION_BYTES * launch.program_count
        run(launch.dram[launch.program_address : end].tobytes(), found, Random(1))
        np.testing.assert_array_equal(found.dram, done.dram)
        self.instructions += launch.program_count
        return done


@pytest.mark.parametrize("name", [*CONFIGS, *VARIANTS])
def test_random_programs_compute_the_same(name: str) -> None:
    config = {**CONFIGS, **VARIANTS}[name]
    for number in range(3):
        assert compare(config, sizes_of(config), 7, number).differences == []


@pytest.mark.parametrize("instruction", [LOAD, WINDOWS, GEMM, VECTOR, STORE])
def test_the_same_words_are_refused(instruction: Instruction) -> None:
    for name in ("tiny", "large", "zynq7020"):
        assert refusals_differ(instruction, find_config(name)) == []


def test_a_compiled_network_computes_the_same(digits_model: Path) -> None:
    both = Both()
    session = Session(compile(digits_model, "vta:ecp5_25"), AcceleratorDevice("manual", None, both))
    image = np.random.default_rng(3).integers(-128, 128, (1, 1, 8, 8)).astype(np.int8)
    session.run({"image": image.astype(np.float32)})
    assert both.instructions > 10


def test_resnet8_computes_the_same(shared_models: Path) -> None:
    path = shared_models / "mlperf_tiny" / "ic_resnet8_int8.onnx"
    both = Both()
    session = Session(compile(path, "vta:zynq7020"), AcceleratorDevice("manual", None, both))
    (given,), (name,) = session.inputs, (each.name for each in session.outputs)
    with np.load(path.with_suffix(".golden.npz")) as golden:
        image, expected = golden["input"][0], golden["onnxruntime"][0]
    found = session.run({given.name: image.reshape(given.shape)}).outputs[name]
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    assert both.instructions > 10


def test_the_page_names_every_configuration() -> None:
    assert names_of_configurations() == list(CONFIGS)
    for name in CONFIGS:
        sizes = configuration(name)
        assert all(getattr(find_config(name), field) == sizes[field] for field in ("block",))


def test_a_program_that_waits_for_nothing_is_stuck() -> None:
    sizes = configuration("tiny")
    gemm = 2 | 1 << 4 | sum(1 << low for low in (79, 91, 103, 115, 127, 139))
    word = gemm.to_bytes(INSTRUCTION_BYTES, "little")
    assert decode(word, sizes)["wait"] == 1
    with pytest.raises(StuckError, match="GEMM"):
        run(word, Memories(sizes, np.zeros(0, np.uint8)), Random(1))


def test_named_values_are_those_the_interpreter_knows() -> None:
    assert list(value_names("Folds").values()) == ["ADD", "SUB", "MAX", "MIN", "MAC"]
    assert list(value_names("Multipliers").values()) == ["TAP", "IMMEDIATE", "PAIR", "WINDOW"]
    assert list(value_names("Finishes").values()) == ["NONE", "REQUANTIZE", "SHIFT", "CUSTOM"]
    assert list(value_names("Roundings").values()) == ["FLOAT", "FIXED", "WIDE"]
    assert list(value_names("Parameters of rows").values()) == ["NONE", "LESS", "OVER", "ROOT"]
