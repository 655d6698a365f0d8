"""A matrix core that drops one product is found out: which instruction, which byte."""

from functools import cache
from pathlib import Path
from typing import Any

import onnx
import pytest
from amaranth.hdl import C

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.compiler.debug.debugger import Debugger
from dovetail.isa.memories import Memory, Unit
from dovetail.vta_hw import dot_products, simulate
from dovetail.vta_hw.build import TOP, build_executable, harness_files
from dovetail.vta_hw.device import RtlDevice
from dovetail.vta_hw.simulation_top import SimulationTop
from dovetail.vta_hw.verilog import to_verilog

OUTPUT_LANE, INPUT_LANE = 3, 2


@pytest.fixture
def broken_device(monkeypatch: pytest.MonkeyPatch) -> RtlDevice:
    """The RTL with a gap in its matrix core: one input lane does not reach one output lane."""
    whole = dot_products._products

    def gapped(*arguments: Any) -> list[list[Any]]:
        products = whole(*arguments)
        products[OUTPUT_LANE][INPUT_LANE] = C(0)
        return products

    @cache
    def build(config: Any, waves: str = "") -> Path:
        monkeypatch.setattr(dot_products, "_products", gapped)
        rtl = to_verilog(SimulationTop(config), TOP)
        return build_executable("tiny-gapped", TOP, harness_files(config, rtl))

    monkeypatch.setattr(simulate, "build_harness", build)
    return RtlDevice()


def test_a_dropped_product_is_told_to_the_first_gemm(
    digits_model: Path, broken_device: RtlDevice
) -> None:
    module = compile(digits_model, target="vta:tiny")
    inputs, model = random_inputs(module), onnx.load(digits_model)
    found = Debugger(module, inputs, "rtl", model, opened=broken_device).check()
    assert not found.passes
    assert found.late is None
    assert found.cause is None
    assert found.fault is not None
    first = next(
        index
        for index, each in enumerate(Debugger(module, inputs).program)
        if each.unit is Unit.GEMM
    )
    assert found.fault.instruction.index == first
    assert found.fault.instruction.layer == "first"
    assert (found.fault.space, found.fault.lane) == (Memory.ACC, OUTPUT_LANE)
    assert found.finding is not None
    assert found.finding.instruction.layer == "first"
    assert found.finding.instruction.unit is Unit.VECTOR
    assert found.finding.channel == OUTPUT_LANE
