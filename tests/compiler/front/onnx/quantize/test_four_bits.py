"""Weights of 4 bits: the form that the accelerator stores, near the floats, and in a model."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from dovetail.compiler.front.onnx.quantize import QuantizeOptions, quantize_model
from dovetail.compiler.front.onnx.quantize.four_bits import four_bit_weights
from dovetail.compiler.graph.ir import Array
from dovetail.isa.nibbles import fits_nibbles

from .floats import onnx_runtime

ONE = np.float32(1)


def as_tiles(integers: Array) -> Array:
    """int8[channels, 32] as words of 16 channels and 16 inputs."""
    return integers.reshape(-1, 16, 2, 16).swapaxes(1, 2).reshape(-1, 16, 16)


@pytest.mark.parametrize("axis", [0, 1])
def test_weights_have_the_form_and_are_nearer_than_with_one_step_a_channel(axis: int) -> None:
    rng = np.random.default_rng(axis)
    weights = rng.normal(size=(32, 2, 16)) * rng.uniform(0.1, 1, (32, 2, 1))
    weights = weights.reshape(32, 32).astype(np.float32)
    found = four_bit_weights(weights if axis == 0 else weights.T, None, ONE, axis)
    integers = found.integers if axis == 0 else found.integers.T
    assert found.bias is None
    assert fits_nibbles(as_tiles(integers))
    assert not (np.asarray(found.integers) % np.asarray(found.factors)).any()
    error = np.square(integers * found.scales[:, None] - weights).mean(axis=1)
    step = np.abs(weights).max(axis=1, keepdims=True) / 7
    plain = np.square(np.rint(weights / step) * step - weights).mean(axis=1)
    assert (error <= plain).all()
    assert error.sum() < 0.75 * plain.sum()


def test_larger_groups_have_the_form_in_any_order_of_their_inputs() -> None:
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(32, 32)).astype(np.float32)
    integers = four_bit_weights(weights, None, ONE, 0, 32).integers
    order = np.arange(32).reshape(2, 2, 8).swapaxes(0, 1).reshape(-1)
    assert fits_nibbles(as_tiles(integers[:, order]))
    assert not fits_nibbles(as_tiles(four_bit_weights(weights, None, ONE, 0).integers[:, order]))


def test_rows_of_narrow_products_share_factors_so_that_blocks_of_any_of_them_do() -> None:
    """Two queries for each of two heads: a block has one query of both."""
    rng = np.random.default_rng(5)
    info = helper.make_tensor_value_info
    weights = rng.normal(size=(32, 32)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["p", "v"], ["mix"]),
            helper.make_node("Reshape", ["mix", "shape"], ["flat"]),
            helper.make_node("MatMul", ["flat", "w"], ["y"]),
        ],
        "attention",
        [info("p", 1, (2, 2, 5)), info("v", 1, (2, 5, 8))],
        [info("y", 1, (1, 32))],
        [
            numpy_helper.from_array(weights, "w"),
            numpy_helper.from_array(np.array([1, 32]), "shape"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    sample = {"p": rng.random((2, 2, 5)), "v": rng.normal(size=(2, 5, 8))}
    samples = [{name: array.astype(np.float32) for name, array in sample.items()}]
    order = np.arange(32).reshape(2, 2, 8).swapaxes(0, 1).reshape(-1)
    for rounds in (False, True):
        options = QuantizeOptions(weight_bits=4, adaptive=rounds)
        found = quantize_model(model, samples, options).model
        (integers,) = (
            numpy_helper.to_array(each)
            for each in found.graph.initializer
            if each.name.endswith("/w") and each.dims == [32, 32]
        )
        assert fits_nibbles(as_tiles(integers[:, order]))


def test_a_bias_fits_and_zeros_stay() -> None:
    weights = np.zeros((2, 20, 3, 3), np.float32)
    weights[1, :, 1, 2] = 0.01
    found = four_bit_weights(weights, np.array([0.5, 1e8], np.float32), np.float32(0.1), 0)
    assert found.integers.shape == weights.shape
    assert found.bias is not None
    steps = found.scales.astype(np.float64) * 0.1
    np.testing.assert_allclose(found.bias * steps, [0.5, 1e8], rtol=0.2)
    assert (np.abs(found.bias.astype(np.int64)) <= 1 << 30).all()
    assert not found.integers[0].any()


def test_a_model_has_them_and_rounding_together_helps() -> None:
    rng = np.random.default_rng(3)
    mixed = rng.normal(size=(32, 32)) @ np.diag(0.7 ** np.arange(32))
    samples = [{"x": (rng.normal(size=(8, 32)) @ mixed.T).astype(np.float32)} for _ in range(16)]
    weights = rng.normal(size=(32, 32)).astype(np.float32)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [info("x", 1, (8, 32))],
        [info("y", 1, (8, 32))],
        [numpy_helper.from_array(weights, "w")],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    errors = []
    for rounds in (False, True):
        options = QuantizeOptions(weight_bits=4, adaptive=rounds)
        found = quantize_model(model, samples, options).model
        (integers,) = (
            numpy_helper.to_array(each)
            for each in found.graph.initializer
            if each.name.endswith("/w")
        )
        assert fits_nibbles(as_tiles(integers))
        errors.append(
            sum(
                float(np.square(onnx_runtime(found, each["x"])[0] - each["x"] @ weights).sum())
                for each in samples
            )
        )
    assert errors[1] < 0.9 * errors[0]


def test_only_scales_of_channels_and_two_widths_are_taken() -> None:
    with pytest.raises(ValueError, match="5 bits; required 4 or 8"):
        QuantizeOptions(weight_bits=5)
    with pytest.raises(ValueError, match="leave per_channel set"):
        QuantizeOptions(weight_bits=4, per_channel=False)
