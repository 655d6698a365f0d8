"""QONNX's operators against their formulas in NumPy, and networks of few bits whole."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail import Session, compile
from dovetail.compiler.errors import ModelError, UnsupportedOperatorError
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.passes.integer_layers.recognition import recognise
from dovetail.compiler.graph.passes.simplify import simplify

F32 = np.float32
Array = np.ndarray[Any, Any]
DOMAIN = "qonnx.custom_op.general"
ROUND: Mapping[str, Callable[[Array], Array]] = {
    "ROUND": np.rint,
    "half_even": np.rint,
    "CEIL": np.ceil,
    "FLOOR": np.floor,
    "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)),
    "DOWN": np.trunc,
    "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - 0.5),
}
X = (np.random.default_rng(1).standard_normal((1, 4, 5, 6)) * 3).astype(F32)
X[0, 0, 0] = [-0.75, -0.25, 0.0, 0.25, 0.75, 1.25]


def model(nodes: list[onnx.NodeProto], constants: Mapping[str, Array], x: Array) -> onnx.ModelProto:
    """A model of the input ``x`` and the output ``y``."""
    graph = helper.make_graph(
        nodes,
        "few_bits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 2)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def one(kind: str, given: list[Any], **attributes: Any) -> onnx.ModelProto:
    """``kind`` of ``x`` and float constants."""
    constants = {f"c{place}": np.asarray(value, F32) for place, value in enumerate(given)}
    node = helper.make_node(kind, ["x", *constants], ["y"], "node", domain=DOMAIN, **attributes)
    return model([node], constants, X)


def result(proto: onnx.ModelProto, x: Array = X) -> Array:
    """The results of the model's graph."""
    return meaning(open_model(proto).to_graph(1).graph, x)


def meaning(graph: Graph, x: Array) -> Array:
    """The output of ``graph``."""
    return run(graph, {"x": x})[graph.outputs[0]]


def quantised(
    x: Array, scale: Array, zero: float, bits: int, signed: int, narrow: int, mode: str = "ROUND"
) -> Array:
    """QONNX's formula of Quant."""
    low = -(2 ** (bits - 1)) + narrow if signed else 0
    high = 2 ** (bits - 1) - 1 if signed else 2**bits - 1 - narrow
    steps = x / F32(1) / scale.astype(F32) + F32(zero)
    if signed and bits == 1:
        return np.where(steps >= 0, scale, -scale).astype(F32)
    return ((ROUND[mode](np.clip(steps, low, high)) - F32(zero)) * scale).astype(F32)


@pytest.mark.parametrize("scale", [0.5, np.full((1, 4, 1, 1), [[[[0.5]], [[1]], [[0.25]], [[2]]]])])
@pytest.mark.parametrize(
    ("bits", "zero"), [(1, 0), (2, 0), (3, 2), (4, 0), (8, 4), (12, -6), (20, 0)]
)
@pytest.mark.parametrize(("signed", "narrow"), [(1, 0), (1, 1), (0, 0), (0, 1)])
def test_numbers_of_any_bits(scale: Any, bits: int, zero: float, signed: int, narrow: int) -> None:
    scale = np.asarray(scale, F32)
    proto = one("Quant", [scale, zero, bits], signed=signed, narrow=narrow)
    np.testing.assert_array_equal(result(proto), quantised(X, scale, zero, bits, signed, narrow))


@pytest.mark.parametrize("mode", ROUND)
def test_roundings(mode: str) -> None:
    proto = one("IntQuant", [0.5, 0, 4], signed=1, narrow=0, rounding_mode=mode)
    expected = quantised(X, np.asarray(0.5, F32), 0, 4, 1, 0, mode)
    np.testing.assert_array_equal(result(proto), expected)


def test_signs() -> None:
    x = X.copy()
    x[0, 0, 0] = [-1e-9, -0.0, 0.0, 1e-9, -1e30, 1e30]
    scale = np.full((1, 4, 1, 1), 0.25, F32)
    y = result(one("BipolarQuant", [scale]), x)
    np.testing.assert_array_equal(y, np.where(x >= 0, F32(0.25), F32(-0.25)))


def test_upper_bits() -> None:
    steps = np.rint(X / F32(0.25))
    first = result(one("Trunc", [0.25, 0, 8, 5]))
    np.testing.assert_array_equal(first, np.floor(steps / 8) * F32(0.25))
    second = result(one("Trunc", [0.25, 0, 8, 2, 3], rounding_mode="ROUND", signed=1, narrow=0))
    np.testing.assert_array_equal(second, np.rint(np.clip(steps / 8, -4, 3)) * F32(2))


@pytest.mark.parametrize(
    ("given", "mode", "said"),
    [
        ([0.5, 0, 2.5], "ROUND", "bits .2.5. in 'c2'; required one whole number"),
        ([0.5, 0, 0], "ROUND", "0 bits; required 1 to 32"),
        ([0, 0, 4], "ROUND", "scale 0 in 'c0'; required numbers above 0"),
        ([-0.5, 0, 4], "ROUND", "scale -0.5 in 'c0'; required numbers above 0"),
        ([0.5, 0, 40], "ROUND", "40 bits; required 1 to 32"),
        ([0.5, 0, 4], "SOMETIMES", "rounding_mode 'SOMETIMES'; required ROUND, "),
    ],
)
def test_what_cannot_be_is_refused(given: list[float], mode: str, said: str) -> None:
    proto = one("Quant", given, signed=1, narrow=0, rounding_mode=mode)
    with pytest.raises((ModelError, UnsupportedOperatorError), match=f"node 'node' .*{said}"):
        open_model(proto).to_graph(1)


def network(bits: int, seed: int, bipolar: bool = False) -> tuple[onnx.ModelProto, Array]:
    """Two convolutions with float biases, normalised, some by negative factors; one channel has
    nearly none.
    """
    rng = np.random.default_rng(seed)
    nodes, constants = list[onnx.NodeProto](), dict[str, Array]()

    def add(kind: str, x: str, given: list[Any], domain: str = "", **attributes: Any) -> str:
        names = [f"{kind}{len(nodes)}c{place}" for place in range(len(given))]
        constants.update({n: np.asarray(g, F32) for n, g in zip(names, given, strict=True)})
        made = f"t{len(nodes)}"
        nodes.append(helper.make_node(kind, [x, *names], [made], made, domain=domain, **attributes))
        return made

    def quant(x: str, scale: Any, width: int, signed: int) -> str:
        if bipolar and width == bits:
            return add("BipolarQuant", x, [scale], DOMAIN)
        given = [scale, 0, width]
        return add("Quant", x, given, DOMAIN, signed=signed, narrow=signed, rounding_mode="ROUND")

    x, shape = quant("x", 1 / 16, 8, 1), (1, 3, 6, 6)
    for outputs, inputs in ((32, 3), (24, 32)):
        constants[f"w{outputs}"] = rng.standard_normal((outputs, inputs, 3, 3)).astype(F32)
        scales = rng.uniform(0.2, 0.7, (outputs, 1, 1, 1)) * 2.0 ** (3 - bits)
        w = quant(f"w{outputs}", scales, bits, 1)
        y = add("Conv", x, [], pads=[1, 1, 1, 1])
        nodes[-1].input.append(w)
        constants[f"b{outputs}"] = rng.standard_normal(outputs).astype(F32)
        nodes[-1].input.append(f"b{outputs}")
        gamma = rng.standard_normal(outputs) * 0.3
        gamma[-1] = 1e-41
        normal = [
            gamma,
            rng.standard_normal(outputs),
            rng.standard_normal(outputs),
            np.ones(outputs),
        ]
        y = add("BatchNormalization", y, normal)
        x = quant(y if bipolar else add("Relu", y, []), 0.3, bits, 0)
    nodes.append(helper.make_node("Identity", [x], ["y"], "last"))
    return model(nodes, constants, np.empty(shape)), rng.standard_normal(shape).astype(F32)


@pytest.mark.parametrize(("bits", "bipolar"), [(2, False), (3, False), (4, False), (1, True)])
def test_layers_of_few_bits_have_the_results_of_their_floats(bits: int, bipolar: bool) -> None:
    proto, x = network(bits, 7 * bits, bipolar)
    graph = open_model(proto).to_graph(1).graph
    layers = simplify(recognise(graph).require())
    assert sum(isinstance(node.operator, Requantize) for node in layers.nodes) == 2
    for sample in (x, -x, 2 * x, 3 * x):
        np.testing.assert_array_equal(meaning(layers, sample), meaning(graph, sample))


def test_layers_of_few_bits_on_the_accelerator() -> None:
    proto, x = network(2, 3)
    expected = result(proto, x)

    module = compile(proto, target="vta:tiny")
    with Session(module) as session:
        (found,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(found, expected)
