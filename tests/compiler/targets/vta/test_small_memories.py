"""Memories that hold less than all constants of a layer: the bytes stay right."""

from dataclasses import replace

import numpy as np
import onnx

from dovetail.compiler import CompileOptions, compile
from dovetail.isa.configs import find_config
from dovetail.runtime import run
from tests.kept_costs import check_costs

from ....end_to_end.models import Network, reference
from ....end_to_end.test_attention import F32, WIDTH, Rows, attention

TINY = find_config("tiny")
QUICK = CompileOptions(effort=0)


def attending() -> onnx.ModelProto:
    net = Rows(5)
    y = attention(net, net.dequantize("x", F32(0.02), np.int8(3)))
    return net.build({"x": ("int8", (1, 5, WIDTH))}, net.quantize(y, F32(0.2), np.int8(-9)))


def check(proto: onnx.ModelProto, **small: int) -> None:
    shape = [each.dim_value for each in proto.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(1).integers(-128, 128, shape, np.int8)
    module = compile(proto, replace(TINY, name="small", **small), QUICK)
    check_costs(module.parts)
    (found,) = run(module, {"x": x}).outputs.values()
    np.testing.assert_array_equal(found, reference(proto, x))


def test_biases_and_that_of_a_sum_do_not_overwrite_each_other() -> None:
    net = Network(np.random.default_rng(1))
    x = net.input(8, 3, 3)
    check(net.model(net.add(net.conv(net.conv(x, 8, (1, 1)), 8, (1, 1)), x)), par_depth=2)


def test_rows_without_room_for_their_parameters_are_the_cpus() -> None:
    check(attending(), par_depth=2)


def test_windows_that_do_not_fit_are_the_cpus() -> None:
    net = Network(np.random.default_rng(1))
    taps = net.conv(net.input(4, 8, 8), 4, (5, 5), pads=(2, 2, 2, 2), depthwise=True)
    mean = net.global_average(net.conv(taps, 4, (3, 3), pads=(1, 1, 1, 1)))
    proto = net.model(net.conv(mean, 4, (1, 1)))
    small = {"act_depth": 64, "tap_depth": 16, "wgt_depth": 8}
    for memory, depth in small.items():
        check(proto, **{memory: depth})
    module = compile(proto, replace(TINY, name="small", **small), QUICK)
    reasons = " ".join(each.reason for each in module.placement)
    assert "tap scratchpad: 25 words required for a window of 5x5 pixels, 16 avail" in reasons
    assert "act scratchpad: 65 words required for a window of 8x8 pixels, 64 avail" in reasons
    assert "wgt scratchpad: 9 words required for a window of 3x3 pixels, 8 avail" in reasons


def test_tables_that_do_not_fit_together_come_in_turn() -> None:
    check(attending(), tab_depth=256)
