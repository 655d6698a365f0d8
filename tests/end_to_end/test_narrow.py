"""Networks of few rows or columns, and results wider than what they are made of."""

import numpy as np
import pytest

from dovetail.compiler import compile
from tests.kept_costs import check_costs

from .models import Network, Tensor, reference
from .test_networks import inputs_of, output_of


def assert_exact(net: Network, result: Tensor, target: str) -> None:
    model = net.model(result)
    inputs = inputs_of(model, 1)
    module = compile(model, target)
    check_costs(module.parts)
    found = output_of(module, inputs)
    np.testing.assert_array_equal(found, reference(model, inputs["x"]))


@pytest.mark.parametrize("shape", [(8, 1, 1), (1, 4, 1), (1, 1, 4)])
@pytest.mark.parametrize("average", [False, True])
def test_one_row_or_column_goes_through_a_table_to_a_layer(
    shape: tuple[int, int, int], average: bool
) -> None:
    net = Network(np.random.default_rng(0))
    x = net.unary(net.input(*shape), "HardSwish")
    assert_exact(net, net.global_average(x) if average else net.conv(x, 8, (1, 1)), "vta:tiny")


def test_strips_of_a_result_that_is_wider_than_its_input() -> None:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(8, 6, 5), 13, pads=(1, 1, 1, 1), activation="Clip")
    assert_exact(net, net.resize(x, 1, 3), "vta:ecp5_25")


def test_an_image_made_larger_between_convolutions() -> None:
    net = Network(np.random.default_rng(0))
    x = net.resize(net.conv(net.input(8, 16, 16), 8, pads=(1, 1, 1, 1)), 2, 2)
    assert_exact(net, net.conv(x, 8, pads=(1, 1, 1, 1)), "vta:zynq7020")
