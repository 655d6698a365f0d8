"""Faults planted in compiled programs are told to the layer, the element and the instruction."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.compiler.debug.debugger import CheckResult
from dovetail.isa.instructions import Gemm, Load, Vector
from dovetail.isa.memories import Memory, Unit
from dovetail.runtime.module import Module

from .planted import Subject, changed_bytes, changed_instruction, scaled, subject

LAYER, DEPTHWISE, POOL = 5, 3, 7
"""Layers of digits: a 3x3 convolution, a depthwise one, an average."""


@pytest.fixture(scope="module")
def digits(digits_model: Path) -> Subject:
    return subject(digits_model)


def load_of(whole: Subject, layer: int, memory: Memory) -> int:
    """The first LOAD of a layer into a memory."""
    found = [
        index
        for index in whole.of_layer(layer, Unit.LOAD)
        if whole.program[index].memory is memory  # type: ignore[union-attr]
    ]
    return found[0]


def check(whole: Subject, module: Module, index: int) -> CheckResult:
    """The check of a module with a fault in ``index``: it names the fault, and a byte that is
    wrong.
    """
    debugger = whole.debug(module)
    found = debugger.check()
    assert found.finding is not None
    assert found.cause is not None
    assert (found.cause.kind, found.cause.instruction.index) == ("program", index)
    assert debugger.cycle == found.finding.cycle
    name = found.finding.tensor
    if name is not None and found.finding.channel is not None:
        truth = debugger.reference.values[name].reshape(debugger.tensor(name).values.shape)
        place = (found.finding.row, found.finding.column, found.finding.channel)
        place = place[3 - truth.ndim :]
        assert truth[place] == found.finding.expected
        assert debugger.tensor(name).values[place] == found.finding.found
    return found


def test_the_sound_program_passes(digits: Subject) -> None:
    found = digits.debug(digits.module).check()
    assert found.passes
    assert len(found.compared) == len(digits.part.layers)
    assert all(found.compared.values())


def test_a_wrong_scale_is_told_to_the_load_that_brought_it(digits: Subject) -> None:
    index = load_of(digits, LAYER, Memory.PAR)
    load = digits.program[index]
    assert isinstance(load, Load)
    address = load.dram_address + 4 * digits.config.block + 4
    old = digits.part.dram[address : address + 4]
    found = check(digits, changed_bytes(digits.module, address, scaled(old, 1.3)), index)
    assert found.cause is not None
    assert "scale of channel 1 " in found.cause.reason
    assert found.finding is not None
    assert (found.finding.channel, found.finding.instruction.layer) == (1, "b1")


def test_a_wrong_bias_is_told_apart_from_a_wrong_scale(digits: Subject) -> None:
    index = load_of(digits, LAYER, Memory.PAR)
    load = digits.program[index]
    assert isinstance(load, Load)
    old = np.frombuffer(digits.part.dram, np.int32, 1, load.dram_address)
    module = changed_bytes(digits.module, load.dram_address, (old + 9999).tobytes())
    found = check(digits, module, index)
    assert found.cause is not None
    assert f"bias of channel 0 in par {load.sram_address}" in found.cause.reason


@pytest.mark.parametrize("memory", [Memory.WGT, Memory.TAP, Memory.PAR])
def test_a_wrong_address_of_a_constant_is_told_to_its_load(digits: Subject, memory: Memory) -> None:
    index = load_of(digits, DEPTHWISE if memory is Memory.TAP else LAYER, memory)
    load = digits.program[index]
    assert isinstance(load, Load)
    wrong = load.dram_address + digits.config.word_bytes(memory)
    found = check(digits, changed_instruction(digits, index, dram_address=wrong), index)
    assert found.cause is not None
    assert found.cause.certain
    assert f"{wrong:#x}" in found.cause.reason


def test_a_wrong_padding_value_is_found_where_it_is_written(digits: Subject) -> None:
    index = next(
        index
        for index in digits.of_layer(LAYER, Unit.LOAD)
        if not digits.program[index].words  # type: ignore[union-attr]
    )
    found = check(digits, changed_instruction(digits, index, pad_value=3), index)
    assert found.finding is not None
    assert (found.finding.channel, found.finding.found) == (None, 3)


@pytest.mark.parametrize("field", ["act_address", "wgt_address", "acc_address"])
def test_a_wrong_address_of_a_gemm_is_told_to_it(digits: Subject, field: str) -> None:
    index = digits.of_layer(LAYER, Unit.GEMM)[1]
    wrong = getattr(digits.program[index], field) + 1
    check(digits, changed_instruction(digits, index, **{field: wrong}), index)


def test_a_gemm_that_stops_early_is_named(digits: Subject) -> None:
    index = digits.of_layer(LAYER, Unit.GEMM)[1]
    gemm = digits.program[index]
    assert isinstance(gemm, Gemm)
    extent = (gemm.extent[0] - 1, *gemm.extent[1:])
    found = check(digits, changed_instruction(digits, index, extent=extent), index)
    assert found.cause is not None
    assert "products are missing" in found.cause.reason


@pytest.mark.parametrize(
    ("layer", "changes"),
    [
        (LAYER, {"zero_point": 3}),
        (LAYER, {"low": 0}),
        (LAYER, {"par_address": 1}),
        (LAYER, {"source_address": 1}),
        (LAYER, {"destination_address": 1}),
        (DEPTHWISE, {"destination_address": 1}),
        (DEPTHWISE, {"source_address": 1}),
        (DEPTHWISE, {"tap_address": 4}),
        (DEPTHWISE, {"m0": 1}),
        (POOL, {"zero_point": 9}),
    ],
)
def test_a_wrong_field_of_a_vector_is_told_to_it(
    digits: Subject, layer: int, changes: dict[str, Any]
) -> None:
    index = digits.of_layer(layer, Unit.VECTOR)[0]
    vector = digits.program[index]
    assert isinstance(vector, Vector)
    values = {
        name: getattr(vector, name) + by if name.endswith("address") else by
        for name, by in changes.items()
    }
    found = check(digits, changed_instruction(digits, index, **values), index)
    assert found.finding is not None
    assert found.finding.instruction.index == index


def test_a_result_stored_to_another_place_is_noticed(digits: Subject) -> None:
    (index,) = (i for i, each in enumerate(digits.program) if each.unit is Unit.STORE)
    store = digits.program[index]
    wrong = store.dram_address + 64  # type: ignore[union-attr]
    check(digits, changed_instruction(digits, index, dram_address=wrong), index)


def test_wrong_taps_are_told_to_the_load_that_brought_them(digits: Subject) -> None:
    index = load_of(digits, DEPTHWISE, Memory.TAP)
    load = digits.program[index]
    assert isinstance(load, Load)
    size = digits.config.word_bytes(Memory.TAP)
    old = np.frombuffer(digits.part.dram, np.int8, size, load.dram_address)
    module = changed_bytes(digits.module, load.dram_address, (old ^ 64).tobytes())
    found = check(digits, module, index)
    assert found.cause is not None
    assert found.cause.reason == (
        f"the sum of taps is wrong, and inputs are right: taps from tap {load.sram_address} on, "
        f"loaded by instruction {index} from {load.dram_address:#x}"
    )
