"""Whole networks from ONNX to the simulator, against ONNX Runtime and the graph interpreter."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import Rows, accelerator_part
from dovetail.runtime.module import Module
from tests.kept_costs import check_costs

from .models import Array, Network, Tensor, random_network, reference

TARGETS = ("vta:tiny", "vta:zynq7020")


def inputs_of(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    """A random input ``x``."""
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    return {"x": np.random.default_rng(seed).integers(-128, 128, shape, np.int8)}


def output_of(module: Module, inputs: dict[str, Array]) -> Array:
    """The only output, on the simulator or the CPU."""
    (output,) = run(module, inputs, "cpu" if module.target == "cpu" else "sim").outputs.values()
    return output


def averages(model: onnx.ModelProto) -> bool:
    """True if the model has an average, where ONNX Runtime's sums depend on its version's order."""
    return any(node.op_type in ("AveragePool", "GlobalAveragePool") for node in model.graph.node)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(20))
def test_random_networks_match_byte_for_byte(seed: int, target: str) -> None:
    model = random_network(seed)
    inputs = inputs_of(model, seed)
    module = compile(model, target)
    check_costs(module.parts)
    found = output_of(module, inputs)
    assert np.array_equal(found, output_of(compile(model, "cpu"), inputs))
    if not averages(model):
        assert np.array_equal(found, reference(model, inputs["x"]))


def _image(net: Network, channels: int = 5, height: int = 9, width: int = 7) -> Tensor:
    return net.conv(net.input(3, height, width), channels, (1, 1))


NETWORKS: dict[str, Callable[[Network], Tensor]] = {
    "pointwise conv": lambda net: net.conv(net.input(6, 5, 4), 9, (1, 1)),
    "conv of one pixel": lambda net: net.conv(net.input(3, 3, 3), 2),
    "conv with halo on one side": lambda net: net.conv(
        net.input(4, 8, 8), 6, strides=(2, 2), pads=(0, 0, 1, 1), activation="Relu"
    ),
    "conv of a tall kernel": lambda net: net.conv(
        net.input(1, 12, 6), 3, (7, 2), pads=(3, 0, 3, 1)
    ),
    "image of three channels, wide kernel": lambda net: net.conv(
        net.input(3, 17, 19), 9, (7, 7), strides=(2, 2), pads=(3, 3, 3, 3), activation="Relu"
    ),
    "image of one channel, tall kernel": lambda net: net.conv(
        net.input(1, 21, 7), 5, (10, 4), strides=(2, 2), pads=(4, 1, 5, 1)
    ),
    "conv with strides apart": lambda net: net.conv(net.input(2, 9, 9), 4, strides=(1, 3)),
    "many channels": lambda net: net.conv(net.input(19, 4, 4), 37, activation="Clip"),
    "two readers with two halos": lambda net: _two_readers(net),
    "depthwise": lambda net: net.conv(
        _image(net), 5, pads=(1, 1, 1, 1), strides=(2, 2), depthwise=True, activation="Relu"
    ),
    "residual": lambda net: _residual(net),
    "max pool": lambda net: net.max_pool(_image(net), 3, 2, (1, 1, 1, 1)),
    "sigmoid of a convolution": lambda net: net.unary(_image(net), "Sigmoid"),
    "sigmoid of a sum": lambda net: net.unary(_residual(net), "Sigmoid"),
    "dense of an image": lambda net: net.dense(_image(net), 10),
    "dense of dense": lambda net: net.dense(net.dense(_image(net), 21), 4),
}


def _two_readers(net: Network) -> Tensor:
    x = _image(net)
    wide = net.conv(x, 5, (5, 5), pads=(2, 2, 2, 2))
    return net.add(wide, net.conv(x, 5, (3, 3), pads=(1, 1, 1, 1)))


def _residual(net: Network) -> Tensor:
    x = _image(net)
    return net.add(net.conv(x, 5, pads=(1, 1, 1, 1)), x, relu=True)


@pytest.mark.parametrize("target", ["cpu", *TARGETS])
@pytest.mark.parametrize("name", NETWORKS)
def test_each_kind_of_layer_matches_onnx_runtime(name: str, target: str) -> None:
    net = Network(np.random.default_rng(len(name)))
    model = net.model(NETWORKS[name](net))
    inputs, module = inputs_of(model, 1), compile(model, target)
    check_costs(module.parts)
    assert np.array_equal(output_of(module, inputs), reference(model, inputs["x"]))


@pytest.mark.parametrize("target", TARGETS)
def test_averages_match_the_interpreter(target: str) -> None:
    net = Network(np.random.default_rng(3))
    model = net.model(net.global_average(net.average_pool(_image(net, 6, 8, 8), 2)))
    inputs = inputs_of(model, 2)
    found = output_of(compile(model, target), inputs)
    assert np.array_equal(found, output_of(compile(model, "cpu"), inputs))


def test_one_module_runs_many_inputs() -> None:
    model = random_network(7)
    module = compile(model, "vta:tiny")
    for seed in range(3):
        inputs = inputs_of(model, seed)
        assert np.array_equal(output_of(module, inputs), output_of(compile(model, "cpu"), inputs))


@pytest.mark.parametrize("name", [name for name in NETWORKS if name.startswith("image")])
def test_images_are_read_alike_by_simulator_and_hardware(name: str) -> None:
    net = Network(np.random.default_rng(len(name)))
    model = net.model(NETWORKS[name](net))
    inputs, module = inputs_of(model, 1), compile(model, "vta:tiny")
    assert isinstance(accelerator_part(module).sources[0].layout, Rows)
    results = [run(module, inputs, device) for device in ("sim", "rtl")]
    assert results[0].cycles == results[1].cycles
    for result in results:
        (output,) = result.outputs.values()
        assert np.array_equal(output, reference(model, inputs["x"]))


def test_a_window_that_fits_only_once_gets_one_buffer() -> None:
    """Two windows of 3x3 pixels of 512 channels would take 2,304 of 2,048 words."""
    net = Network(np.random.default_rng(5))
    model = net.model(net.conv(net.input(512, 5, 4), 5, pads=(1, 1, 1, 1)))
    inputs = inputs_of(model, 5)
    module = compile(model, "vta:tiny")
    assert np.array_equal(output_of(module, inputs), reference(model, inputs["x"]))
