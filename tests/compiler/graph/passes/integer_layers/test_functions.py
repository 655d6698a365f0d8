"""Functions of one tensor that are made of several operators, quantised in between or not."""

import numpy as np
import pytest

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.graph.operators.integer.values import Lookup
from dovetail.compiler.graph.passes.simplify import simplify

from .models import F32, ModelBuilder, check, integer_graph
from .static import Net, check_on_targets, conv, statically_quantized

KINDS = {"int8": np.int8, "uint8": np.uint8}


def _gelu(b: ModelBuilder, x: str) -> str:
    error = b.node("Erf", [b.node("Div", [x, b.constant(F32(2**0.5))])])
    product = b.node("Mul", [x, b.node("Add", [error, b.constant(F32(1))])])
    return b.node("Mul", [product, b.constant(F32(0.5))])


def _hard_swish(b: ModelBuilder, x: str) -> str:
    raised = b.node("Add", [x, b.constant(F32(3))])
    clipped = b.node("Clip", [raised, b.constant(F32(0)), b.constant(F32(6))])
    return b.node("Div", [b.node("Mul", [x, clipped]), b.constant(F32(6))])


NETS: dict[str, Net] = {
    "silu": lambda b, x: b.node("Mul", [x, b.node("Sigmoid", [x])]),
    "silu, operands changed": lambda b, x: b.node("Mul", [b.node("Sigmoid", [x]), x]),
    "hard swish": _hard_swish,
    "gelu": _gelu,
    "a sum with its own clip": lambda b, x: b.node("Add", [x, b.node("Relu", [x])]),
    "a difference": lambda b, x: b.node("Sub", [x, b.node("Tanh", [x])]),
    "a slope": lambda b, x: b.node("PRelu", [x, b.constant(np.full((1, 1, 1), 0.2, F32))]),
    "a minimum": lambda b, x: b.node("Min", [x, b.constant(F32(0.5))]),
}


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("name", NETS)
def test_a_function_of_one_tensor_is_a_table_of_the_layer_before(name: str, unsigned: bool) -> None:
    def net(b: ModelBuilder, x: str) -> str:
        return conv(b, NETS[name](b, conv(b, x, 3, 8, 3)), 8, 5)

    model = statically_quantized(net, (1, 3, 6, 5), unsigned=unsigned)
    kinds = check_on_targets(model)
    assert len(kinds) == 2, kinds


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("kind", ["Mul", "Add", "Sub", "Div"])
@pytest.mark.parametrize("clipped", [False, True])
def test_operands_of_one_tensor_give_the_bytes_of_their_operator(
    kind: str, dtype: str, clipped: bool
) -> None:
    """On all 256 values, with scales where many results lie half way between two."""
    number, low = KINDS[dtype], 0 if dtype == "uint8" else -128
    rng = np.random.default_rng(len(kind))

    def zero() -> np.generic:
        return number(rng.integers(0, 256) + low)

    for scale in (F32(2**-4), F32(0.0371)):
        b = ModelBuilder()
        start = zero()
        x = b.dequantize("x", scale, start)
        other = b.node("Sigmoid", [x])
        place = number(low)
        side = b.dequantize(b.quantize(other, F32(2**-8), place), F32(2**-8), place)
        side = b.node("Add", [side, b.constant(F32(0.5))]) if kind == "Div" else side
        y = b.node(kind, [x, side])
        end, size = zero(), F32(0.25) if scale == 2**-4 else F32(0.0613)
        if clipped:
            end = number(low)
            y = b.node("Relu", [y])
        y = b.quantize(y, size, end)
        model = b.build({"x": (dtype, (1, 256))}, y, dtype)
        check(model, {"x": (np.arange(256) + low).astype(number).reshape(1, 256)})
        nodes = simplify(integer_graph(model)).nodes
        assert sum(isinstance(node.operator, Lookup) for node in nodes) == 1


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("kind", ["Mul", "Add"])
def test_quantised_numbers_are_operands(kind: str, dtype: str) -> None:
    number, low = KINDS[dtype], 0 if dtype == "uint8" else -128
    b = ModelBuilder()
    c = b.dequantize(b.constant(number(low + 200)), F32(2**-5), number(low + 77))
    y = b.node(kind, [c, b.dequantize("x", F32(2**-4), number(low + 100))])
    y = b.quantize(y, F32(0.375), number(low + 131))
    model = b.build({"x": (dtype, (1, 256))}, y, dtype)
    check(model, {"x": (np.arange(256) + low).astype(number).reshape(1, 256)})


CHANNELS = 8


def _each(b: ModelBuilder, *shape: int) -> str:
    """A float constant of channels."""
    rng = np.random.default_rng(b.count)
    return b.constant(rng.normal(size=shape or (1, CHANNELS, 1, 1)).astype(F32))


def _normalised(b: ModelBuilder, x: str) -> str:
    rng = np.random.default_rng(3)
    parts = [rng.uniform(0.5, 1.5, CHANNELS), *rng.normal(size=(2, CHANNELS)), rng.uniform(1, 2, 8)]
    constants = [b.constant(part.astype(F32)) for part in parts]
    return b.node("BatchNormalization", [b.node("MaxPool", [x], kernel_shape=(2, 2)), *constants])


OF_CHANNELS: dict[str, tuple[Net, list[str]]] = {
    "a factor": (lambda b, x: b.node("Mul", [x, _each(b)]), ["Conv2d+Requantize"]),
    "an addend": (lambda b, x: b.node("Add", [_each(b, 8, 1, 1), x]), ["Conv2d+Requantize"]),
    "both": (
        lambda b, x: b.node("Div", [b.node("Sub", [x, _each(b)]), _each(b)]),
        ["Conv2d+Requantize"],
    ),
    "a normalisation": (_normalised, ["MaxPool2d", "Conv2d+Requantize"]),
    "with a clip": (
        lambda b, x: b.node("Relu", [_normalised(b, x)]),
        ["MaxPool2d", "Conv2d+Requantize"],
    ),
    "slopes": (
        lambda b, x: b.node("PRelu", [x, _each(b, 8, 1, 1)]),
        ["Conv2d+Requantize+Lookup"],
    ),
}


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("name", OF_CHANNELS)
def test_constants_of_channels_are_layers_of_the_vector_unit(name: str, unsigned: bool) -> None:
    function, expected = OF_CHANNELS[name]

    def net(b: ModelBuilder, x: str) -> str:
        return conv(b, function(b, conv(b, x, 3, CHANNELS, 3)), CHANNELS, 5)

    model = statically_quantized(net, (1, 3, 6, 5), unsigned=unsigned)
    assert check_on_targets(model)[1:-1] == expected


def test_constants_along_rows_are_no_function_of_channels() -> None:
    b = ModelBuilder()
    x = b.dequantize("x", F32(0.05), np.int8(3))
    y = b.quantize(b.node("Mul", [x, _each(b, 4, 1)]), F32(0.05), np.int8(3))
    model = b.build({"x": ("int8", (1, 2, 4, 4))}, y)
    with pytest.raises(UnsupportedOperatorError, match=r"along axis .2.; required that of the ch"):
        integer_graph(model)


def test_functions_of_two_tensors_are_no_table() -> None:
    def net(b: ModelBuilder, x: str) -> str:
        left, right = conv(b, x, 3, 4), conv(b, x, 3, 4, 3)
        return b.node("Sub", [left, right])

    model = statically_quantized(net, (1, 3, 6, 5))
    check_on_targets(model, ("cpu",))


def test_a_tensor_and_its_transpose_are_two() -> None:
    """Equal shapes, and one is a function of the other, but not element by element."""
    b = ModelBuilder()
    x = b.dequantize("x", F32(2**-4), np.int8(3))
    turned = b.node("Transpose", [x], perm=[0, 1, 3, 2])
    y = b.quantize(b.node("Add", [x, turned]), F32(2**-3), np.int8(3))
    image = np.random.default_rng(1).integers(-128, 128, (1, 2, 4, 4)).astype(np.int8)
    check(b.build({"x": ("int8", (1, 2, 4, 4))}, y), {"x": image})
