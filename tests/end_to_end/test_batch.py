"""Several images a run: the bytes of each are those of the model for one image."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper

from dovetail.compiler.driver import compile_model
from dovetail.compiler.errors import ModelError
from dovetail.compiler.options import CompileOptions
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.module import Module
from dovetail.runtime.session import Session
from tests.kept_costs import check_costs

from .models import Network, random_network, references

VERIFIED = CompileOptions(verify=True)


def batched(model: onnx.ModelProto, images: int, target: str = "vta:tiny") -> Module:
    return compile_model(model, target, replace(VERIFIED, batch=images))


def require_equal(model: onnx.ModelProto, module: Module, images: int, seed: int = 3) -> None:
    """Each image's outputs are ONNX Runtime's, image by image."""
    check_costs(module.parts)
    rng = np.random.default_rng(seed)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    x = rng.integers(-128, 128, (images * shape[0], *shape[1:]), np.int8)
    parts = [references(model, {"x": part}, integers=True) for part in np.split(x, images)]
    for got, *wanted in zip(Session(module).run(None, {"x": x}), *parts, strict=True):
        np.testing.assert_array_equal(got, np.concatenate(wanted))


def classifier() -> onnx.ModelProto:
    """A residual network; its last convolution and dense layers may work on all images at once."""
    net = Network(np.random.default_rng(1))
    x = net.conv(net.input(3, 8, 6), 8, pads=(1, 1, 1, 1), activation="Relu")
    x = net.add(x, net.conv(x, 8, pads=(1, 1, 1, 1)), relu=True)
    head = net.conv(x, 5, pads=(1, 1, 1, 1))
    x = net.global_average(net.conv(x, 24, (1, 1), activation="Relu"))
    return net.model(head, net.dense(net.unary(net.dense(x, 40), "Tanh"), 7))


def test_images_are_computed_as_one_by_one() -> None:
    model = classifier()
    module = batched(model, 3)
    assert [tensor.shape for tensor in module.outputs] == [(3, 5, 8, 6), (3, 7)]
    require_equal(model, module, 3)


@pytest.mark.parametrize("seed", [2, 14])
def test_random_networks_in_batches(seed: int) -> None:
    model = random_network(seed)
    require_equal(model, batched(model, 2), 2)


def test_dense_layers_load_their_weights_once() -> None:
    net = Network(np.random.default_rng(4))
    x = net.dense(net.input(64, 1, 1), 96)
    model = net.model(net.dense(net.unary(x, "Tanh"), 64))
    one, eight = (
        accelerator_part(batched(model, images, "vta:zynq7020")).expected_cycles
        for images in (1, 8)
    )
    assert eight < 2 * one
    require_equal(model, batched(model, 8, "vta:zynq7020"), 8)


def test_parts_of_the_cpu_compute_all_images() -> None:
    net = Network(np.random.default_rng(5))
    x = net.conv(net.input(3, 6, 6), 8, pads=(1, 1, 1, 1))
    # The accelerator has no sine.
    x = net._quantized(net._node("Sin", [x.name]), x.shape, 1 / 128, 0)
    model = net.model(net.conv(net.conv(x, 16, pads=(1, 1, 1, 1)), 4, (1, 1)))
    require_equal(model, batched(model, 2), 2)
    require_equal(model, batched(model, 2, "cpu"), 2)


def test_sums_are_written_between_columns_of_others() -> None:
    """Joined along the width, where operands and result of a sum would have other row lengths."""
    net = Network(np.random.default_rng(6))
    x = net.input(4, 5, 3)
    parts = [net.conv(x, 4, pads=(1, 1, 1, 1)) for _ in range(2)]
    sums = [net.add(x, part) for part in parts]
    joined = net._node("Concat", [each.name for each in sums], axis=3)
    whole = net._quantized(joined, (1, 4, 5, 6), sums[0].scale, sums[0].zero_point)
    model = net.model(net.conv(whole, 4, pads=(1, 1, 1, 1)))
    require_equal(model, compile_model(model, "vta:tiny", VERIFIED), 1)


def test_a_model_with_open_sizes_has_its_own_batch() -> None:
    kind = onnx.TensorProto.FLOAT
    given, found = (helper.make_tensor_value_info(name, kind, ["n", 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "open", [given], [found])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    with pytest.raises(ModelError, match="open sizes"):
        batched(model, 2, "cpu")
