"""Memories that hold less than all constants of a layer: the bytes stay right."""

from dataclasses import replace

import numpy as np
import onnx

from dovetail.compiler import CompileOptions, compile
from dovetail.isa.configs import find_config
from dovetail.runtime import run

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
    (found,) = run(module, {"x": x}).outputs.values()
    np.testing.assert_array_equal(found, reference(proto, x))


def test_biases_and_that_of_a_sum_do_not_overwrite_each_other() -> None:
    net = Network(np.random.default_rng(1))
    x = net.input(8, 3, 3)
    check(net.model(net.add(net.conv(net.conv(x, 8, (1, 1)), 8, (1, 1)), x)), par_depth=2)


def test_rows_without_room_for_their_parameters_are_the_cpus() -> None:
    check(attending(), par_depth=2)


def test_tables_that_do_not_fit_together_come_in_turn() -> None:
    check(attending(), tab_depth=256)
