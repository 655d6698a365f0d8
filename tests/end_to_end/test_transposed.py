"""Transposed and grouped convolutions, and averages without padding: pixels put in their places."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from tests.compiler.graph.passes.integer_layers.models import F32, ModelBuilder, check
from tests.kept_costs import check_costs

TARGETS = ["cpu", "vta:tiny", "vta:zynq7020"]
Network = Callable[[ModelBuilder, str], str]
"""Adds nodes to a model that read a dequantised tensor of 3 channels; the float result."""


def weights(b: ModelBuilder, shape: tuple[int, ...], axis: int) -> str:
    """int8 weights, and scales that are powers of two, so that float sums are exact."""
    rng = np.random.default_rng(sum(shape))
    scales = (2.0 ** rng.integers(-9, -6, shape[axis])).astype(F32)
    values = b.constant(rng.integers(-127, 128, shape).astype(np.int8))
    zeros = b.constant(np.zeros(len(scales), np.int8))
    return b.node("DequantizeLinear", [values, b.constant(scales), zeros], axis=axis)


def requantized(b: ModelBuilder, x: str, scale: float = 0.5) -> str:
    """QuantizeLinear and DequantizeLinear."""
    return b.dequantize(b.quantize(x, F32(scale), np.int8(-3)), F32(scale), np.int8(-3))


def build(network: Network, size: tuple[int, int] = (9, 8)) -> onnx.ModelProto:
    """The network of an int8 image of three channels."""
    b = ModelBuilder()
    x = b.dequantize("x", F32(1 / 16), np.int8(-5))
    y = b.quantize(network(b, x), F32(0.5), np.int8(7))
    return b.build({"x": ("int8", (1, 3, *size))}, y)


def transposed(
    b: ModelBuilder, x: str, channels: int = 3, outputs: int = 6, **attributes: object
) -> str:
    kernel = attributes.pop("kernel_shape", (3, 3))
    groups = attributes.get("group", 1)
    assert isinstance(kernel, tuple)
    assert isinstance(groups, int)
    w = weights(b, (channels, outputs // groups, *kernel), 1)
    return b.node("ConvTranspose", [x, w], kernel_shape=kernel, **attributes)


def conv(b: ModelBuilder, x: str, outputs: int, channels: int, **attributes: object) -> str:
    """A convolution of one pixel, unless it is told otherwise."""
    kernel = attributes.pop("kernel_shape", (1, 1))
    assert isinstance(kernel, tuple)
    return b.node("Conv", [x, weights(b, (outputs, channels, *kernel), 0)], **attributes)


def plain_transposed(**attributes: object) -> Network:
    return lambda b, x: transposed(b, x, **attributes)


def _unet(b: ModelBuilder, x: str) -> str:
    """A small image grown and joined with the large one it was made from."""
    large = requantized(b, conv(b, x, 16, 3, kernel_shape=(3, 3), pads=(1, 1, 1, 1)))
    small = b.node("MaxPool", [large], kernel_shape=(2, 2), strides=(2, 2))
    grown = transposed(b, requantized(b, small), 16, 16, kernel_shape=(2, 2), strides=(2, 2))
    joined = b.node("Concat", [requantized(b, grown), large], axis=1)
    kernel = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
    return conv(b, requantized(b, joined), 5, 32, **kernel)


def _depthwise(b: ModelBuilder, x: str) -> str:
    grown = transposed(b, x, 3, 3, kernel_shape=(4, 4), strides=(2, 2), pads=(1, 1, 1, 1), group=3)
    return conv(b, requantized(b, grown), 4, 3)


def grouped(channels: int, outputs: int, groups: int) -> Network:
    def network(b: ModelBuilder, x: str) -> str:
        wide = requantized(b, conv(b, x, channels, 3))
        kernel = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "strides": (2, 1)}
        y = conv(b, wide, outputs, channels // groups, group=groups, **kernel)
        return conv(b, requantized(b, y), 3, outputs)

    return network


def averaged(**attributes: object) -> Network:
    """The result has the scale of the average's operand, whose ties ONNX Runtime rounds so."""

    def network(b: ModelBuilder, x: str) -> str:
        wide = requantized(b, conv(b, x, 18, 3))
        pooled = requantized(b, b.node("AveragePool", [wide], **attributes))
        return conv(b, pooled, 4, 18, kernel_shape=(3, 3), pads=(1, 1, 1, 1))

    return network


NETWORKS: dict[str, Network] = {
    "transposed": plain_transposed(strides=(2, 2)),
    "transposed, padded": plain_transposed(strides=(2, 2), pads=(1, 1, 1, 1)),
    "transposed, grown": plain_transposed(strides=(2, 2), pads=(1, 1, 1, 1), output_padding=(1, 1)),
    "transposed, cut": plain_transposed(strides=(2, 3), pads=(2, 0, 1, 2)),
    "transposed, apart": plain_transposed(kernel_shape=(1, 2), strides=(2, 3)),
    "transposed, by one": plain_transposed(pads=(1, 0, 0, 2)),
    "transposed, dilated": plain_transposed(strides=(2, 3), dilations=(2, 3), pads=(1, 2, 0, 1)),
    "transposed, dilated by one": plain_transposed(dilations=(2, 1), pads=(2, 1, 2, 1)),
    "transposed, same upper": plain_transposed(strides=(2, 2), auto_pad="SAME_UPPER"),
    "transposed, same lower": plain_transposed(strides=(3, 2), auto_pad="SAME_LOWER"),
    "transposed, of a shape": plain_transposed(strides=(2, 2), output_shape=(17, 14)),
    "transposed, depthwise": _depthwise,
    "transposed, joined": _unet,
    "groups of blocks": grouped(64, 32, 2),
    "groups within blocks": grouped(32, 32, 8),
    "groups of more outputs": grouped(16, 32, 16),
    "groups of no blocks": grouped(15, 10, 5),
    "average": averaged(kernel_shape=(3, 3), pads=(1, 1, 1, 1)),
    "average, strides": averaged(kernel_shape=(3, 2), pads=(1, 0, 1, 1), strides=(2, 2)),
    "average, last windows cut": averaged(kernel_shape=(2, 2), strides=(2, 2), ceil_mode=1),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NETWORKS)
def test_pixels_in_their_places_match_onnx_runtime(name: str, target: str) -> None:
    size = (8, 8) if "joined" in name else (9, 7)
    model = build(NETWORKS[name], size)
    x = np.random.default_rng(1).integers(-128, 128, (1, 3, *size)).astype(np.int8)
    wanted = check(model, {"x": x})
    module = compile(model, target)
    (found,) = run(module, {"x": x}, "cpu" if target == "cpu" else "sim").outputs.values()
    assert np.array_equal(found, wanted)
    check_costs(module.parts)


@pytest.mark.parametrize("name", ["transposed, grown", "average"])
def test_pixels_that_do_not_fit_on_chip_are_stored_in_their_places(name: str) -> None:
    model = build(NETWORKS[name], (24, 60))
    x = np.random.default_rng(1).integers(-128, 128, (1, 3, 24, 60)).astype(np.int8)
    module = compile(model, "vta:tiny")
    (found,) = run(module, {"x": x}).outputs.values()
    assert np.array_equal(found, check(model, {"x": x}))


@pytest.mark.parametrize(
    "name", ["transposed, grown", "groups of blocks", "groups within blocks", "average"]
)
def test_hardware_runs_them_as_the_simulator_does(name: str) -> None:
    module = compile(build(NETWORKS[name], (7, 6)), "vta:tiny")
    x = np.random.default_rng(2).integers(-128, 128, (1, 3, 7, 6)).astype(np.int8)
    simulated, real = (run(module, {"x": x}, device) for device in ("sim", "rtl"))
    assert simulated.cycles == real.cycles
    for each, found in simulated.outputs.items():
        assert np.array_equal(found, real.outputs[each])


def test_no_product_is_by_a_zero_between_rows() -> None:
    module = compile(build(NETWORKS["transposed, grown"]), "vta:zynq7020")
    layers = accelerator_part(module).layers
    assert len(layers) == 4
    assert sum(layer.macs for layer in layers) == 9 * 8 * 3 * 6 * 9


def test_groups_multiply_only_blocks_with_weights() -> None:
    """16 groups of 4 channels: four of them fill a block; all others of its row are left out."""
    module = compile(build(grouped(64, 64, 16), (8, 8)), "vta:zynq7020")
    layer = accelerator_part(module).layers[1]
    assert layer.macs == 4 * 8 * 64 * 16 * 9
