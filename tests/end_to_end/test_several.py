"""Models of several inputs and outputs, from ONNX to every device."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.checking.layers import check_layers
from dovetail.compiler.debug.expected import reference
from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.configs import find_config
from dovetail.isa.encoding import encode
from dovetail.isa.instructions import Instruction, Store
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import PartOutput, accelerator_part
from dovetail.runtime.debug.compare import first_difference
from dovetail.runtime.debug.session import Session
from dovetail.vta_sim.timing import time_program
from tests.compiler.debug.planted import changed_bytes
from tests.kept_costs import check_costs

from .models import Network, references

TINY = find_config("tiny")


def pyramid() -> onnx.ModelProto:
    """As in detectors: heads at two scales, and what joins them; a second image comes in late."""
    net = Network(np.random.default_rng(5))
    large = net.conv(net.input(3, 8, 6), 16, pads=(1, 1, 1, 1), activation="Relu")
    small = net.conv(net.max_pool(large, 2, 2), 32, (1, 1))
    mixed = net.add(small, net.input(32, 4, 3, "late"))
    grown = net.resize(net.conv(mixed, 10, (1, 1)), 2, 2)
    joined = net.concat(grown, large)
    head = net.conv(joined, 9, pads=(1, 1, 1, 1))
    return net.model(head, mixed, grown, net.conv(mixed, 5, (1, 1)), joined)


def inputs_of(model: onnx.ModelProto) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    shapes = {
        each.name: [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in model.graph.input
    }
    return {name: rng.integers(-128, 128, shape, np.int8) for name, shape in shapes.items()}


@pytest.mark.parametrize("target", ["cpu", "vta:tiny", "vta:zynq7020"])
def test_all_outputs_match_onnx_runtime(target: str) -> None:
    model = pyramid()
    inputs, module = inputs_of(model), compile(model, target)
    assert len(module.parts) == 1
    check_costs(module.parts)
    found = run(module, inputs, "cpu" if target == "cpu" else "sim").outputs
    assert list(found) == [each.name for each in model.graph.output]
    for array, expected in zip(found.values(), references(model, inputs), strict=True):
        np.testing.assert_array_equal(array, expected)


def test_every_layer_is_checked() -> None:
    model = pyramid()
    found = list(check_layers(model, "vta:tiny", "sim", inputs_of(model), time_program))
    assert all(each.passes for each in found)
    tensors = [each.difference.tensor for each in found]
    assert len(set(tensors)) == len(tensors)
    assert set(tensors) >= {each.name for each in model.graph.output}


def test_a_word_of_any_output_that_is_not_stored_is_found() -> None:
    model = pyramid()
    inputs, module = inputs_of(model), compile(model, "vta:tiny")
    truth = reference(model, inputs, TINY).values
    part = accelerator_part(module)
    assert first_difference(Session(module, inputs), truth) is None
    for result in part.results:
        stores = [n for n, each in enumerate(part.program) if _stores(each, result)]
        store = part.program[stores[-1]]
        code = encode(replace(store, count_x=store.count_x - 1))
        address = part.program_address + stores[-1] * INSTRUCTION_BYTES
        session = Session(changed_bytes(module, address, code), inputs)
        elsewhere = replace(result, address=part.program_address)
        session.part = replace(part, results=(elsewhere, *part.results))
        found = first_difference(session, truth)
        assert found is not None
        assert found.memory == "dram"


def _stores(instruction: Instruction, result: PartOutput) -> bool:
    """True if it is a STORE to the place of ``result``."""
    return (
        isinstance(instruction, Store)
        and 0 <= instruction.dram_address - result.address < result.layout.size
    )
