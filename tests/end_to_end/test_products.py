"""Products of two tensors on the accelerator, as in squeeze and excitation."""

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from tests.kept_costs import check_costs

from .models import Network, Tensor, reference
from .test_networks import inputs_of, output_of


def excited(net: Network, x: Tensor, squeezed: int) -> Tensor:
    """``x`` times a number for each channel, which is made of the largest values of all channels.

    Not of averages, of which ONNX Runtime has several sums.
    """
    top = net.max_pool(x, x.shape[2], 1)
    small = net.conv(top, squeezed, (1, 1), activation="Relu")
    gate = net.unary(net.conv(small, x.shape[1], (1, 1)), "HardSigmoid")
    return net.multiply(x, gate)


def _block(net: Network) -> Tensor:
    x = net.conv(net.input(3, 9, 9), 20, pads=(1, 1, 1, 1), activation="Relu")
    return net.conv(excited(net, x, 5), 7, pads=(1, 1, 1, 1))


def _residual(net: Network) -> Tensor:
    """As in MobileNetV3: expand, filter, scale, project, add; a table after the product."""
    x = net.conv(net.input(3, 8, 8), 16, (1, 1))
    wide = net.conv(net.conv(x, 48, (1, 1)), 48, pads=(1, 1, 1, 1), depthwise=True)
    scaled = net.unary(excited(net, wide, 12), "HardSwish")
    return net.add(net.conv(scaled, 16, (1, 1)), x)


def _gated(net: Network) -> Tensor:
    """Two tensors of one shape, one of which has a halo."""
    x = net.input(4, 7, 6)
    a, b = net.conv(x, 18, pads=(1, 1, 1, 1)), net.unary(net.conv(x, 18, (1, 1)), "Sigmoid")
    other = net.conv(a, 18, pads=(1, 1, 1, 1))
    return net.add(net.multiply(other, b), net.multiply(b, a))


NETWORKS: dict[str, Callable[[Network], Tensor]] = {
    "block": _block,
    "residual": _residual,
    "gated": _gated,
    "result": lambda net: excited(net, net.conv(net.input(3, 5, 5), 9), 3),
}


@pytest.mark.parametrize("target", ["cpu", "vta:tiny", "vta:zynq7020"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_with_products_match_onnx_runtime(name: str, target: str) -> None:
    net = Network(np.random.default_rng(len(name)))
    model = net.model(NETWORKS[name](net))
    inputs = inputs_of(model, 1)
    module = compile(model, target)
    check_costs(module.parts)
    assert np.array_equal(output_of(module, inputs), reference(model, inputs["x"], integers=True))
    if target != "cpu":
        layers = accelerator_part(module).layers
        inexact = [layer.inexact_pairs for layer in layers if layer.kind.startswith("Multiply")]
        assert inexact
        assert not any(inexact)


@pytest.mark.parametrize("repeated", [True, False])
def test_products_in_parts_match_onnx_runtime(repeated: bool) -> None:
    """Operands that do not fit on chip, one of which stays there, or neither."""
    net = Network(np.random.default_rng(3))
    x = net.conv(net.input(3, 24, 24), 24, pads=(1, 1, 1, 1), activation="Relu")
    y = excited(net, x, 8) if repeated else net.multiply(x, net.conv(x, 24, pads=(1, 1, 1, 1)))
    model = net.model(net.conv(y, 5, pads=(1, 1, 1, 1)))
    inputs = inputs_of(model, 2)
    found = output_of(compile(model, "vta:tiny"), inputs)
    assert np.array_equal(found, reference(model, inputs["x"], integers=True))


def test_hardware_multiplies_as_the_simulator_does() -> None:
    net = Network(np.random.default_rng(4))
    x = net.conv(net.input(3, 5, 5), 6, (1, 1))
    model = net.model(net.multiply(excited(net, x, 3), x))
    inputs, module = inputs_of(model, 1), compile(model, "vta:tiny")
    results = [run(module, inputs, device) for device in ("sim", "rtl")]
    assert results[0].cycles == results[1].cycles
    for result in results:
        (output,) = result.outputs.values()
        assert np.array_equal(output, reference(model, inputs["x"], integers=True))
