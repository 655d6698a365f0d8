"""Dense layers with weights of 4 bits, as exporters write them: stored and loaded as nibbles."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.front.integer import integer_graph
from dovetail.compiler.front.table import open_model
from dovetail.compiler.translation.validate import validate
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory
from dovetail.isa.program import program_from_bytes
from dovetail.runtime.accelerator.part import AcceleratorPart, accelerator_part
from tests.kept_costs import check_costs

from .models import reference
from .test_networks import inputs_of, output_of

Ints, Floats = NDArray[np.int64], NDArray[np.float32]
Form = Callable[[str, Ints, Floats], tuple[list[TensorProto], list[NodeProto]]]
"""Gives constants and nodes that make ``NAME_y`` of ``NAME_x``."""

TINY = find_config("tiny")
ROWS, WIDTHS, BLOCK = 1, (40, 20, 9), 16


def blocks(rng: np.random.Generator, channels: int, width: int) -> tuple[Ints, Floats]:
    """Numbers of 4 bits [channels, width], and scales [channels, blocks] that are small multiples
    of a power of two a channel: float32 sums of products are exact.
    """
    values = rng.integers(-8, 8, (channels, width))
    units = 2.0 ** rng.integers(-9, -6, (channels, 1))
    factors = rng.integers(1, 13, (channels, -(-width // BLOCK)))
    return values, (factors * units).astype(np.float32)


def by_dequantize(
    name: str, values: Ints, scales: Floats
) -> tuple[list[TensorProto], list[NodeProto]]:
    """DequantizeLinear of int4 with blocks along the sum, as opset 21 has it."""
    w, s, real = (f"{name}_{each}" for each in ("w", "s", "real"))
    constants = [
        helper.make_tensor(w, TensorProto.INT4, values.T.shape, values.T.reshape(-1).tolist()),
        numpy_helper.from_array(np.ascontiguousarray(scales.T), s),
    ]
    node = helper.make_node("DequantizeLinear", [w, s], [real], axis=0, block_size=BLOCK)
    return constants, [node, helper.make_node("MatMul", [f"{name}_x", real], [f"{name}_y"])]


def by_matmul(name: str, values: Ints, scales: Floats) -> tuple[list[TensorProto], list[NodeProto]]:
    """com.microsoft MatMulNBits without zero points: each number is stored as 8 more."""
    channels, width = values.shape
    whole = np.full((channels, scales.shape[1] * BLOCK), 8)
    whole[:, :width] = values + 8
    packed = (whole[:, ::2] | whole[:, 1::2] << 4).astype(np.uint8)
    constants = [
        numpy_helper.from_array(packed.reshape(channels, -1, BLOCK // 2), f"{name}_w"),
        numpy_helper.from_array(scales.reshape(-1), f"{name}_s"),
    ]
    inputs = [f"{name}_x", *(each.name for each in constants)]
    sizes = {"N": channels, "K": width, "bits": 4, "block_size": BLOCK}
    node = helper.make_node("MatMulNBits", inputs, [f"{name}_y"], domain="com.microsoft", **sizes)
    return constants, [node]


def network(form: Form, spread: float = 1.0) -> onnx.ModelProto:
    """Two dense layers between int8 tensors; ``spread``: of each second block's scale."""
    rng = np.random.default_rng(0)
    nodes, constants, before = [], [], "x"
    for number, (width, channels) in enumerate(pairwise(WIDTHS)):
        name = f"dense{number}"
        for part, value in (("scale", np.float32(2.0**-4)), ("zero", np.int8(3 - number))):
            constants.append(numpy_helper.from_array(np.asarray(value), f"{name}_{part}"))
        scaled = [f"{name}_scale", f"{name}_zero"]
        nodes.append(helper.make_node("DequantizeLinear", [before, *scaled], [f"{name}_x"]))
        values, scales = blocks(rng, channels, width)
        scales[:, 1::2] *= np.float32(spread)
        own, made = form(name, values, scales)
        constants += own
        before = f"{name}_q"
        nodes += [*made, helper.make_node("QuantizeLinear", [f"{name}_y", *scaled], [before])]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.INT8, (ROWS, width))
        for name, width in (("x", WIDTHS[0]), (before, WIDTHS[-1]))
    ]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def weight_loads(part: AcceleratorPart) -> list[Load]:
    """The LOADs to WGT."""
    end = part.program_address + part.program_bytes
    program = program_from_bytes(bytes(part.dram[part.program_address : end]))
    return [each for each in program if isinstance(each, Load) and each.memory is Memory.WGT]


@pytest.mark.parametrize("form", [by_dequantize, by_matmul])
def test_blocks_of_nibbles_are_loaded_as_such_and_give_onnx_runtimes_bytes(form: Form) -> None:
    model = network(form)
    inputs = inputs_of(model, 1)
    expected = reference(model, inputs["x"])
    assert len(np.unique(expected)) > 5
    module = compile(model, TINY)
    np.testing.assert_array_equal(output_of(module, inputs), expected)
    np.testing.assert_array_equal(output_of(compile(model, "cpu"), inputs), expected)
    part = accelerator_part(module)
    check_costs([part])
    assert all(each.nibbles for each in weight_loads(part))
    assert 0 < part.roof_cycles <= part.expected_cycles
    validate(integer_graph(open_model(model)), part)


def test_a_configuration_without_nibbles_loads_bytes() -> None:
    model = network(by_dequantize)
    inputs = inputs_of(model, 2)
    module = compile(model, replace(TINY, nibble_weights=False))
    assert not any(each.nibbles for each in weight_loads(accelerator_part(module)))
    np.testing.assert_array_equal(output_of(module, inputs), reference(model, inputs["x"]))


def test_scales_that_are_no_small_multiples_stay_floats() -> None:
    model = network(by_matmul, 1.0009765625)
    inputs = inputs_of(model, 3)
    found = output_of(compile(model, "cpu"), inputs)
    np.testing.assert_array_equal(found, reference(model, inputs["x"]))
