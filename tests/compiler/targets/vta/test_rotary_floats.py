"""Rotary positions that a model leaves in float, in the launch of a token: fixed point, with
factors that the host gives.
"""

import re
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from networks import calibration_steps, decoder

from dovetail.compiler import compile
from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import DoesNotFitError
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.compiler.front.onnx.quantize.options import QuantizeOptions
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.scaled_sum import ScaledSum, ScalesOfWords
from dovetail.compiler.graph.operators.table import INTEGER
from dovetail.compiler.graph.passes.expand_integers.expand import ExpandIntegers
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions, Overlap
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import compile_accelerated
from dovetail.compiler.targets.vta.capabilities import node_refusals
from dovetail.compiler.targets.vta.passes.parameter_words import parameter_words
from dovetail.compiler.translation.module import validate_module
from dovetail.runtime import run
from dovetail.runtime.module import Module
from dovetail.vta_sim.timing import time_program

from .programs import TINY
from .test_parts import compiled

OUTPUTS = ["logits", "new_keys", "new_values"]


def with_float_rotations() -> onnx.ModelProto:
    """A decoder of int8 but for what is between the products of queries and keys and their bytes
    behind the rotation.
    """
    model = decoder(1, 8, width=16, heads=4, groups=2, vocabulary=12)
    nodes = model.graph.node
    made = {name: node for node in nodes for name in node.output}
    tables = {n.output[0] for n in nodes if n.op_type == "Gather" and n.input[1] == "position"}
    products = [n for n in nodes if n.op_type == "Mul" and tables.intersection(n.input)]
    halves = {name for n in products for name in n.output}
    sums = [n for n in nodes if halves.issuperset(n.input)]
    turned = {name for n in sums for name in n.output}
    parts = [made[name] for n in products for name in n.input if name not in tables]
    pairs = {made[n.input[0]].name for n in parts}
    joins = [n for n in nodes if n.op_type == "Concat" and turned.issuperset(n.input)]
    kept = {n.name for n in (*products, *sums, *joins, *parts)} | pairs
    options = QuantizeOptions(keep=frozenset(kept))
    found = quantize_model(model, calibration_steps(model, 6), options).model
    for node in found.graph.node:
        if node.name in pairs:
            node.input[0] = node.input[0].removesuffix("/dequantized")
    return found


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return with_float_rotations()


@pytest.fixture(scope="module")
def module(model: onnx.ModelProto) -> Module:
    return compile(model, "vta:tiny", options=CompileOptions(overlap=Overlap.TILES))


def test_a_token_is_one_launch_with_the_bytes_of_the_cpu(
    model: onnx.ModelProto, module: Module
) -> None:
    """Keys are at most a step from ONNX Runtime's floats, and hardly any is so far."""
    assert [part.target for part in module.parts] == ["cpu", "vta:tiny", "cpu"]
    peer = onnxruntime.InferenceSession(model.SerializeToString())
    (scale,) = (
        onnx.numpy_helper.to_array(each)
        for each in model.graph.initializer
        if each.name == "past_keys/scale"
    )
    cpu, far = compile(model, "cpu"), list[float]()
    for sample in calibration_steps(model, 6, seed=1):
        own, simulated = (run(each, sample, at) for each, at in ((cpu, "cpu"), (module, "sim")))
        for name in OUTPUTS:
            np.testing.assert_array_equal(simulated.outputs[name], own.outputs[name])
        expected = peer.run(["new_keys"], sample)[0]
        far += (np.abs(own.outputs["new_keys"] - expected) / scale).reshape(-1).tolist()
    assert max(far) < 1.01
    assert np.mean(np.array(far) > 0.5) < 0.05


def test_the_rtl_has_the_bytes_and_cycles_of_the_simulator(
    model: onnx.ModelProto, module: Module
) -> None:
    for sample in calibration_steps(model, 2, seed=2):
        simulated, found = (run(module, sample, device) for device in ("sim", "rtl"))
        assert found.cycles == simulated.cycles
        for name in OUTPUTS:
            np.testing.assert_array_equal(found.outputs[name], simulated.outputs[name])


def test_every_program_is_shown_to_compute_its_layers(
    model: onnx.ModelProto, module: Module
) -> None:
    _, found, _ = validate_module(module, open_model(model))
    assert found.found is not None
    assert found.found.elements == 12 + 8 + 8


def scaled(channels: int, repeats: int, lanes: int = 4, pixels: int = 1) -> Graph:
    """Sums of two terms of a convolution's ``2 * channels / repeats`` results."""
    rng, builder = np.random.default_rng(channels), GraphBuilder()
    x = builder.input("x", TensorType((1, 1, pixels, 2 * lanes), DType.INT8))
    words = builder.input(
        "words", TensorType((1, 1, 16 * channels * pixels // lanes, lanes), DType.INT8)
    )
    outputs = 2 * channels // repeats
    weights = rng.integers(-127, 128, (outputs, 1, 1, 2 * lanes)).astype(np.int8)
    inputs = (
        x,
        builder.constant("weights", weights),
        builder.constant("bias", np.zeros(outputs, np.int32)),
    )
    total = builder.node(Conv2d((1, 1), (0, 0, 0, 0), 1, -9, 3), inputs, "total", "conv")
    scales = builder.node(ScalesOfWords(lanes, pixels), (words,), "scales", "sum")
    result = builder.node(ScaledSum(-5, 2, repeats), (total, scales), "y", "sum")
    return builder.build((result,))


def words_of(factors: np.ndarray, lanes: int) -> np.ndarray:
    """As the host makes them, by NumPy."""
    words = factors.astype("<f4").reshape(-1, lanes).view(np.int8)
    whole = np.concatenate([np.zeros_like(words), words], axis=1)
    return whole.reshape(1, 1, -1, lanes)


@pytest.mark.parametrize(
    ("channels", "repeats", "lanes", "config", "pixels"),
    [
        *((4, 1, 4, "tiny", 1), (12, 1, 4, "tiny", 1), (12, 3, 4, "tiny", 1)),
        *((4, 1, 4, "tiny", 3), (32, 2, 16, "zynq7020", 1), (64, 1, 16, "zynq7020", 17)),
    ],
)
def test_sums_have_the_operators_bytes(
    channels: int, repeats: int, lanes: int, config: str, pixels: int
) -> None:
    """Some terms, and some sums, are beyond what there is room for."""
    rng, graph = np.random.default_rng(7), scaled(channels, repeats, lanes, pixels)
    part = compiled(graph, config)
    for spread in (0.1, 3, 200):
        inputs = {
            "x": rng.integers(-128, 128, (1, 1, pixels, 2 * lanes)).astype(np.int8),
            "words": words_of(rng.normal(0, spread, 2 * channels * pixels), lanes),
        }
        found = run(Module.of_part(part), inputs, "sim")
        assert found.cycles == part.expected_cycles
        np.testing.assert_array_equal(found.outputs["y"], interpret(graph, inputs)["y"])


def test_sums_and_terms_share_a_bank_of_acc() -> None:
    config = replace(TINY, name="shallow", acc_depth=8)
    with pytest.raises(DoesNotFitError, match=r"4 words required .*, 2 available"):
        compile_accelerated(
            scaled(4, 1), config, CompileOptions(), Trace(CompileOptions()), time_program
        )


def test_general_operators_have_the_same_bytes() -> None:
    rng, graph = np.random.default_rng(8), scaled(12, 3)
    expanded = ExpandIntegers().run(graph)
    assert not any(isinstance(node.operator, INTEGER) for node in expanded.nodes)
    for spread in (1, 100):
        x = rng.integers(-128, 128, (1, 1, 1, 8)).astype(np.int8)
        inputs = {"x": x, "words": words_of(rng.normal(0, spread, 24), 4)}
        found = interpret(expanded, inputs)["y"]
        np.testing.assert_array_equal(found, interpret(graph, inputs)["y"])


def test_words_hold_factors_behind_biases_of_0() -> None:
    builder = GraphBuilder()
    factors = builder.input("factors", TensorType((12,), DType.FLOAT32))
    words = parameter_words(builder, factors, 4, "y")
    graph = builder.build((words, builder.node(ScalesOfWords(4), (words,), "scales", "y")))
    given = np.random.default_rng(9).normal(size=12).astype(np.float32)
    found = interpret(graph, {"factors": given})
    np.testing.assert_array_equal(found[words], words_of(given, 4))
    np.testing.assert_array_equal(found["scales"].reshape(-1), given)


@pytest.mark.parametrize(
    ("words", "lanes", "reason"),
    [
        (0, 4, "no row_parameters, which scaled sums need"),
        (12, 4, "par scratchpad: 6 words required .*, 5 available"),
        (32, 8, "words of parameters that no layer reads as its own"),
    ],
)
def test_what_the_accelerator_cannot_sum(words: int, lanes: int, reason: str) -> None:
    assert not node_refusals(scaled(12, 3), 4, True, 32)
    found = node_refusals(scaled(12, 3), lanes, True, words).values()
    assert any(re.search(reason, each.reason) for each in found)


def test_a_configuration_without_row_parameters_leaves_them_to_the_cpu(
    model: onnx.ModelProto,
) -> None:
    config = replace(TINY, name="plain", row_parameters=False)
    (sample,) = calibration_steps(model, 1, seed=5)
    module = compile(model, config, options=CompileOptions(overlap=Overlap.TILES))
    own, found = run(compile(model, "cpu"), sample, "cpu"), run(module, sample, "sim")
    for name in OUTPUTS:
        np.testing.assert_array_equal(found.outputs[name], own.outputs[name])
