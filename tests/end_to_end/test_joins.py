"""Concatenations and parts of channels: made, and read, where they lie."""

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from tests.kept_costs import check_costs

from .models import Network, Tensor, reference
from .test_networks import inputs_of, output_of


def _fire(net: Network, squeeze: int = 16, expand: int = 32) -> Tensor:
    """As in SqueezeNet: two convolutions of one tensor, joined, pooled and read again."""
    x = net.conv(net.input(3, 11, 9), squeeze, (1, 1))
    left = net.conv(x, expand, (1, 1), activation="Relu")
    right = net.conv(x, expand, pads=(1, 1, 1, 1), activation="Relu")
    joined = net.max_pool(net.concat(left, right), 3, 2)
    return net.conv(joined, 5, pads=(1, 1, 1, 1))


def _chain(net: Network) -> Tensor:
    """A part that the next part is made from has to be copied; so has the network's input."""
    x = net.input(16, 7, 6)
    a = net.conv(x, 32, (1, 1))
    b = net.conv(a, 16, pads=(1, 1, 1, 1))
    return net.conv(net.concat(x, a, b), 9, (1, 1))


def _nested(net: Network) -> Tensor:
    x = net.conv(net.input(3, 6, 6), 16)
    a, b = net.conv(x, 16, (1, 1)), net.conv(x, 16, (1, 1))
    inner = net.concat(a, b)
    other = net.conv(inner, 16, pads=(1, 1, 1, 1))
    return net.conv(net.concat(inner, other, net.concat(b, x)), 7, (1, 1))


def _parted(net: Network) -> Tensor:
    """As in networks that pass half of the channels by."""
    x = net.conv(net.input(3, 8, 8), 48, (1, 1))
    first, rest = net.part(x, 0, 16), net.part(x, 16, 32)
    turned = net.conv(rest, 32, pads=(1, 1, 1, 1), depthwise=True)
    summed = net.add(net.conv(turned, 16, (1, 1)), first)
    return net.conv(net.concat(summed, rest), 10, (1, 1))


def _result(net: Network) -> Tensor:
    x = net.conv(net.input(3, 5, 5), 16)
    return net.concat(net.conv(x, 16, (1, 1)), net.conv(x, 20, (1, 1)))


def _gaps(net: Network) -> Tensor:
    x = net.conv(net.input(3, 5, 5), 16)
    return net.concat(net.conv(x, 10, (1, 1)), net.conv(x, 6, (1, 1)))


def _grown(net: Network) -> Tensor:
    """As in detectors: a small image grown and joined with a large one."""
    large = net.conv(net.input(3, 8, 6), 16, pads=(1, 1, 1, 1))
    small = net.conv(net.max_pool(large, 2, 2), 32, (1, 1))
    return net.conv(net.concat(net.resize(small, 2, 2), large), 9, pads=(1, 1, 1, 1))


def _uneven(net: Network) -> Tensor:
    """Parts that fill no blocks; what reads the whole leaves the gaps out."""
    x = net.conv(net.input(3, 8, 8), 16)
    joined = net.concat(net.conv(x, 10, (1, 1)), net.conv(x, 7, (1, 1)), net.conv(x, 18, (1, 1)))
    pooled = net.max_pool(joined, 2, 2)
    return net.conv(net.conv(pooled, 35, pads=(1, 1, 1, 1), depthwise=True), 6, (1, 1))


def _ghosts(net: Network) -> Tensor:
    """As in GhostNet: what is added to parts that fill no blocks lies as they do."""
    x = net.conv(net.input(3, 8, 7), 16, pads=(1, 1, 1, 1), activation="Relu")
    made = net.conv(x, 12, (1, 1))
    ghosts = net.concat(made, net.conv(made, 12, pads=(1, 1, 1, 1), depthwise=True))
    scaled = net.multiply(ghosts, net.conv(net.global_average(ghosts), 24, (1, 1)))
    shortcut = net.conv(net.conv(x, 16, pads=(1, 1, 1, 1), depthwise=True), 24, (1, 1))
    return net.conv(net.add(scaled, net.add(shortcut, ghosts)), 7, (1, 1))


NETWORKS: dict[str, Callable[[Network], Tensor]] = {
    "fire": _fire,
    "chain": _chain,
    "nested": _nested,
    "parted": _parted,
    "result": _result,
    "result with gaps": _gaps,
    "grown": _grown,
    "uneven": _uneven,
    "ghosts": _ghosts,
    "grown down": lambda net: net.conv(net.resize(net.conv(net.input(3, 5, 6), 16), 3, 1), 4),
    "grown across": lambda net: net.conv(net.resize(net.conv(net.input(3, 6, 5), 16), 1, 3), 4),
}


@pytest.mark.parametrize("target", ["cpu", "vta:tiny", "vta:zynq7020"])
@pytest.mark.parametrize("name", NETWORKS)
def test_joined_networks_match_onnx_runtime(name: str, target: str) -> None:
    net = Network(np.random.default_rng(len(name)))
    model = net.model(NETWORKS[name](net))
    inputs, module = inputs_of(model, 1), compile(model, target)
    check_costs(module.parts)
    expected = reference(model, inputs["x"], integers=name == "ghosts")
    assert np.array_equal(output_of(module, inputs), expected)


def test_no_layer_is_there_only_to_join() -> None:
    net = Network(np.random.default_rng(1))
    module = compile(net.model(_fire(net)), "vta:zynq7020")
    kinds = [layer.kind.split("+")[0] for layer in accelerator_part(module).layers]
    assert kinds == ["Conv2d", "Conv2d", "Conv2d", "MaxPool2d", "Conv2d"]


def test_what_does_not_fit_on_chip_is_joined_in_memory() -> None:
    net = Network(np.random.default_rng(2))
    x = net.conv(net.input(3, 40, 40), 8, (1, 1))
    parts = [net.conv(x, 8, (1, 1)), net.conv(x, 12, pads=(1, 1, 1, 1))]
    model = net.model(net.conv(net.concat(*parts), 4, pads=(1, 1, 1, 1)))
    inputs = inputs_of(model, 3)
    found = output_of(compile(model, "vta:tiny"), inputs)
    assert np.array_equal(found, reference(model, inputs["x"]))


def test_hardware_joins_as_the_simulator_does() -> None:
    net = Network(np.random.default_rng(4))
    model = net.model(_fire(net, 4, 8))
    inputs, module = inputs_of(model, 1), compile(model, "vta:tiny")
    results = [run(module, inputs, device) for device in ("sim", "rtl")]
    assert results[0].cycles == results[1].cycles
    for result in results:
        (output,) = result.outputs.values()
        assert np.array_equal(output, reference(model, inputs["x"]))
