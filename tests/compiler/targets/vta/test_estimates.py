"""Estimates of what nodes take, by the figures that docs/compiler.md gives and the data sheet's."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Lookup
from dovetail.compiler.graph.operators.movement import Reshape
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.estimates import costs_of
from dovetail.isa.configs import CONFIGS


def test_a_word_takes_a_cycle_and_an_element_of_the_cpu_10_ns() -> None:
    builder = GraphBuilder([], [], {}, {})
    x = builder.input("x", TensorType((1, 2, 4, 32), DType.INT8))
    table = builder.constant("t", np.zeros(256, np.int8))
    x = builder.node(Lookup(), (x, table), "looked", "n")
    x = builder.node(Reshape((1, 4, 2, 32)), (x,), "shaped", "n")
    weights = builder.constant("w", np.zeros((8, 1, 1, 32), np.int8))
    bias = builder.constant("b", np.zeros(8, np.int32))
    builder.node(Conv2d((1, 1), (0, 0, 0, 0), 1, 0, 0), (x, weights, bias), "y", "n")
    graph = builder.build(("y",))
    looked, shaped, product = graph.nodes
    config = CONFIGS["zynq7020"]
    costs = costs_of(config)
    assert (config.block, config.clock_hz) == (16, 100_000_000)
    assert costs.own(graph, looked) == pytest.approx(16 / 100e6)
    assert costs.host(graph, looked) == pytest.approx(256 * 10e-9)
    assert costs.own(graph, shaped) == costs.host(graph, shaped) == 0
    assert costs.own(graph, product) == pytest.approx(4 / 100e6)
    assert costs.host(graph, product) is None  # Products never stay on the CPU.
    assert costs.launch == 50e-6
    assert costs.byte == pytest.approx(2.5e-9)
