"""Products, recurrences, normalisations and quantised operators as ONNX Runtime computes them."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.errors import ModelError

from .nodes import compare, compiled, model_of

RNG = np.random.default_rng(0)


def normal(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", ((3, 4), (4, 5))),
        ("bij,bjk", ((2, 3, 4), (2, 4, 5))),
        ("...ij,...jk->...ik", ((2, 1, 3, 4), (1, 5, 4, 5))),
        ("ii->i", ((4, 4),)),
        ("ij,kj,k->i", ((3, 4), (5, 4), (5,))),
        ("bhqd,bhkd->bhqk", ((2, 2, 3, 4), (2, 2, 5, 4))),
        ("i,j->ji", ((3,), (4,))),
        ("ij->", ((3, 4),)),
    ],
)
def test_einsum(equation: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    compare("Einsum", [normal(*shape) for shape in shapes], equation=equation)


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4), (4, 5)), ((4,), (4, 5)), ((2, 3, 4), (4,)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (4,))],
)
def test_matrix_products(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    compare("MatMul", [normal(*a), normal(*b)])


@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("constant", [(), (1, 2)])
def test_general_products(transposed: tuple[int, int], constant: tuple[int, ...]) -> None:
    a = normal(4, 3) if transposed[0] else normal(3, 4)
    b = normal(20, 4) if transposed[1] else normal(4, 20)
    attributes = {"transA": transposed[0], "transB": transposed[1], "alpha": 0.5, "beta": 2.0}
    compare("Gemm", [a, b, normal(20)], constant=constant, **attributes)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
@pytest.mark.parametrize("lengths", [None, np.array([3, 1], np.int32)])
def test_recurrences(kind: str, gates: int, direction: str, lengths: NDArray[Any] | None) -> None:
    directions, hidden = (2 if direction == "bidirectional" else 1), 5
    inputs: list[NDArray[Any] | None] = [
        normal(3, 2, 4),
        normal(directions, gates * hidden, 4),
        normal(directions, gates * hidden, hidden),
        normal(directions, 2 * gates * hidden),
        lengths,
        normal(directions, 2, hidden),
    ]
    if kind == "LSTM":
        inputs += [normal(directions, 2, hidden), normal(directions, 3 * hidden)]
    outputs = 3 if kind == "LSTM" else 2
    compare(kind, inputs, outputs=outputs, hidden_size=hidden, direction=direction)


def test_a_gated_unit_resets_after_the_product() -> None:
    inputs = [normal(3, 2, 4), normal(1, 15, 4), normal(1, 15, 5), normal(1, 30)]
    compare("GRU", inputs, outputs=2, hidden_size=5, linear_before_reset=1)


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes"),
    [
        ("LayerNormalization", (((2, 3, 8)), (8,), (8,)), {}),
        ("LayerNormalization", ((2, 3, 8), (3, 8), (3, 8)), {"axis": 1}),
        ("InstanceNormalization", ((2, 3, 4, 5), (3,), (3,)), {}),
        ("GroupNormalization", ((2, 6, 4), (6,), (6,)), {"num_groups": 3}),
        ("LRN", ((2, 7, 3, 3),), {"size": 3}),
        ("LpNormalization", ((2, 7),), {"p": 1, "axis": 0}),
        ("Softmax", ((2, 7, 3),), {"axis": 1}),
        ("LogSoftmax", ((2, 7, 3),), {}),
        ("Hardmax", ((2, 7, 3),), {"axis": 1}),
        ("MeanVarianceNormalization", ((2, 3, 4, 4),), {}),
    ],
)
def test_normalisations(
    kind: str, inputs: tuple[tuple[int, ...], ...], attributes: dict[str, Any]
) -> None:
    compare(kind, [normal(*shape) for shape in inputs], **attributes)


def test_batch_normalisation() -> None:
    variance = RNG.uniform(0.5, 2, 3).astype(np.float32)
    inputs = [normal(2, 3, 4, 5), normal(3), normal(3), normal(3), variance]
    compare("BatchNormalization", inputs)


def integers(low: int, high: int, *shape: int, dtype: type = np.uint8) -> NDArray[Any]:
    return RNG.integers(low, high, shape).astype(dtype)


def test_integer_products() -> None:
    a, b = integers(0, 256, 4, 9), integers(-128, 128, 9, 5, dtype=np.int8)
    compare("MatMulInteger", [a, b, np.array(7, np.uint8), np.array(-3, np.int8)], opset=10)
    b = integers(-128, 128, 9, 32, dtype=np.int8)
    for columns in (b, integers(-128, 128, 12, 32, dtype=np.int8)):
        a = integers(0, 256, 4, len(columns))
        zeros = [np.array(7, np.uint8), np.array(0, np.int8)]
        compare("MatMulInteger", [a, columns, *zeros], opset=10, constant=(1, 3))
    x, w = integers(0, 256, 1, 3, 6, 5), integers(0, 256, 4, 3, 3, 3)
    zeros = [np.array(128, np.uint8), np.array(3, np.uint8)]
    compare("ConvInteger", [x, w, *zeros], opset=10, pads=[1, 1, 1, 1])


@pytest.mark.parametrize("channels", [4, 12])
@pytest.mark.parametrize("outputs", [6, 16])
def test_quantised_convolutions_are_equal_to_the_last_bit(channels: int, outputs: int) -> None:
    scales = RNG.uniform(0.001, 0.01, outputs).astype(np.float32)
    inputs = [
        integers(0, 256, 1, channels, 7, 7),
        np.array(0.02, np.float32),
        np.array(120, np.uint8),
        integers(-127, 128, outputs, channels, 3, 3, dtype=np.int8),
        scales,
        np.zeros(outputs, np.int8),
        np.array(0.05, np.float32),
        np.array(100, np.uint8),
        integers(-1000, 1000, outputs, dtype=np.int32),
    ]
    compare("QLinearConv", inputs, opset=13, constant=range(1, 9), pads=[1, 1, 1, 1])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_quantisation(dtype: type) -> None:
    scale = RNG.uniform(0.01, 0.1, 3).astype(np.float32)
    zero = RNG.integers(0, 50, 3).astype(dtype)
    compare("QuantizeLinear", [normal(2, 3, 5) * 9, scale, zero], axis=1)
    x = RNG.integers(0, 100, (2, 3, 5)).astype(dtype)
    compare("DequantizeLinear", [x, scale, zero], axis=1)


def test_dynamic_quantisation() -> None:
    compare("DynamicQuantizeLinear", [normal(4, 5)], outputs=3)


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes", "message"),
    [
        ("MatMul", ((2, 3), (4, 5)), {}, "required one inner size"),
        ("Einsum", ((2, 3),), {"equation": "ij,jk->ik"}, "for 1 operands"),
        ("Einsum", ((2, 3),), {"equation": "ijk->i"}, "'ijk' for 2 dimensions"),
        ("Conv", ((1, 3, 5), (2, 2, 3)), {}, "required 2 channels"),
        ("Conv", ((1, 3, 2), (2, 3, 3)), {}, "a window of 3 on 2"),
        ("Conv", ((1, 3, 2), (2, 3, 1)), {"auto_pad": "X"}, "required SAME_UPPER"),
        ("MaxPool", ((1, 3, 5),), {"kernel_shape": [2, 2]}, "on 3 dimensions"),
        ("GroupNormalization", ((1, 3, 5), (3,), (3,)), {"num_groups": 2}, "2 groups of 3"),
    ],
)
def test_malformed_nodes_are_refused_by_name(
    kind: str, shapes: tuple[tuple[int, ...], ...], attributes: dict[str, Any], message: str
) -> None:
    inputs = [normal(*shape) for shape in shapes]
    with pytest.raises(ModelError, match=message) as caught:
        compiled(model_of(kind, inputs, **attributes), inputs)
    assert "node" in str(caught.value)
