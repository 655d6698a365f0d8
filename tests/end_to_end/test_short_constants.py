"""Parameters and tables in their short form: which LOADs have it, with ONNX Runtime's bytes."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.errors import TranslationError
from dovetail.compiler.front.integer import integer_graph
from dovetail.compiler.front.table import open_model
from dovetail.compiler.translation.validate import validate
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Gemm, Load
from dovetail.isa.memories import Memory
from dovetail.runtime.accelerator.part import AcceleratorPart, accelerator_part
from tests.kept_costs import check_costs

from .models import reference
from .test_networks import inputs_of, output_of

WIDE = replace(find_config("tiny"), name="wide", block=8)
"""Words of two beats, so that a table's short form is shorter."""
LONG = replace(WIDE, short_constants=False)
INPUTS, OUTPUTS = 40, 24


def network(bias: bool) -> onnx.ModelProto:
    """A dense layer with a scale for each channel, and a table, between int8 tensors."""
    rng = np.random.default_rng(1)
    constants = {
        "x_scale": np.float32(2.0**-4),
        "x_zero": np.int8(5),
        "w": rng.integers(-127, 128, (INPUTS, OUTPUTS)).astype(np.int8),
        "w_scale": (rng.uniform(0.5, 2.0, OUTPUTS) * 2.0**-9).astype(np.float32),
        "w_zero": np.zeros(OUTPUTS, np.int8),
        "b": rng.integers(1, 900, OUTPUTS).astype(np.int32),
        "b_zero": np.zeros(OUTPUTS, np.int32),
        "h_scale": np.float32(2.0**-5),
        "h_zero": np.int8(-3),
        "y_scale": np.float32(2.0**-8),
        "y_zero": np.int8(-128),
    }
    constants["b_scale"] = constants["x_scale"] * constants["w_scale"]
    product = [helper.make_node("MatMul", ["x_real", "w_real"], ["sum"])]
    if bias:
        given = ["b", "b_scale", "b_zero"]
        product = [
            helper.make_node("DequantizeLinear", given, ["b_real"], axis=0),
            helper.make_node("Gemm", ["x_real", "w_real", "b_real"], ["sum"]),
        ]
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "x_scale", "x_zero"], ["x_real"]),
        helper.make_node("DequantizeLinear", ["w", "w_scale", "w_zero"], ["w_real"], axis=1),
        *product,
        helper.make_node("QuantizeLinear", ["sum", "h_scale", "h_zero"], ["h"]),
        helper.make_node("DequantizeLinear", ["h", "h_scale", "h_zero"], ["h_real"]),
        helper.make_node("Sigmoid", ["h_real"], ["s"]),
        helper.make_node("QuantizeLinear", ["s", "y_scale", "y_zero"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.INT8, (1, width))
        for name, width in (("x", INPUTS), ("y", OUTPUTS))
    ]
    tensors = [
        numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()
    ]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def loads(part: AcceleratorPart, memory: Memory) -> list[Load]:
    return [each for each in part.program if isinstance(each, Load) and each.memory is memory]


@pytest.mark.parametrize("bias", [False, True])
def test_scales_come_alone_where_a_layer_has_no_biases(bias: bool) -> None:
    model = network(bias)
    inputs = inputs_of(model, 1)
    expected = reference(model, inputs["x"])
    assert len(np.unique(expected)) > 5
    module = compile(model, WIDE)
    np.testing.assert_array_equal(output_of(module, inputs), expected)
    part = accelerator_part(module)
    check_costs([part])
    assert [each.nibbles for each in loads(part, Memory.PAR)] == [not bias]
    (zero,) = {each.act_zero_point for each in part.program if isinstance(each, Gemm)}
    assert zero == (0 if bias else 5)
    assert all(each.nibbles for each in loads(part, Memory.TAB))
    assert 0 < part.roof_cycles <= part.expected_cycles
    validate(integer_graph(open_model(model)), part)
    long = accelerator_part(compile(model, LONG))
    assert not any(each.nibbles for memory in Memory for each in loads(long, memory))
    assert long.expected_cycles > part.expected_cycles


def test_another_byte_in_a_short_form_is_another_result() -> None:
    model = network(bias=False)
    part = accelerator_part(compile(model, WIDE))
    for memory in (Memory.PAR, Memory.TAB):
        place = loads(part, memory)[0].dram_address + 2
        dram = bytearray(part.dram)
        dram[place] ^= 1
        with pytest.raises(TranslationError):
            validate(integer_graph(open_model(model)), replace(part, dram=bytes(dram)))
