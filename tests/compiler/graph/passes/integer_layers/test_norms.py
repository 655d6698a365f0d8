"""LayerNormalization and RMSNorm in integers: where they are recognised, and how near they are."""

import numpy as np
import onnx
import pytest

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.operators.integer.norm import RowNorm, deviation_steps, wide_steps
from dovetail.compiler.graph.operators.movement import Transpose
from dovetail.compiler.graph.passes.expand_integers.expand import ExpandIntegers

from .models import F32, Array, ModelBuilder, integer_graph, reference

CHANNELS = 64
TURN = Transpose((0, 2, 1))
KINDS = ("operator", "decomposed", "rms", "rms_reciprocal")


def _model(kind: str, x: Array, epsilon: float = 1e-5, axis: int = -1) -> onnx.ModelProto:
    """Rows between bytes, normalised; some channels are turned round, one has no scale."""
    rng = np.random.default_rng(3)
    size = x.shape[axis]
    shape = (size,) if axis == -1 else (size, 1)
    scale, bias = rng.uniform(-1.5, 2, shape).astype(F32), rng.normal(0, 0.3, shape).astype(F32)
    scale.reshape(-1)[3] = 0
    b = ModelBuilder()
    v = b.dequantize("x", 0.03, np.int8(5))
    if kind == "operator":
        y = b.node("LayerNormalization", [v, b.constant(scale), b.constant(bias)], epsilon=epsilon)
        return _built(b, y, x)
    if kind == "decomposed":
        v = b.node("Sub", [v, b.node("ReduceMean", [v], axes=[axis])])
    power = b.node("ReduceMean", [b.node("Pow", [v, b.constant(F32(2))])], axes=[axis])
    root = b.node("Sqrt", [b.node("Add", [power, b.constant(F32(epsilon))])])
    if kind == "rms_reciprocal":
        y = b.node("Mul", [v, b.node("Div", [b.constant(F32(1)), root])])
    else:
        y = b.node("Div", [v, root])
    y = b.node("Mul", [b.constant(scale), y])
    if kind == "decomposed":
        y = b.node("Add", [y, b.constant(bias)])
    return _built(b, y, x)


def _built(b: ModelBuilder, y: str, x: Array) -> onnx.ModelProto:
    return b.build({"x": ("int8", x.shape)}, b.quantize(y, 0.03, np.int8(-3)), opset=17)


def _rows(spread: float, channels: int = CHANNELS) -> Array:
    rng = np.random.default_rng(channels)
    values = np.rint(rng.normal(5, spread, (1, 100, channels)))
    found: Array = np.clip(values, -128, 127).astype(np.int8)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_few_bytes_are_one_step_from_onnx_runtimes(kind: str) -> None:
    for spread in (2, 8, 40):
        x = _rows(spread)
        model = _model(kind, x)
        graph = integer_graph(model)
        assert [type(node.operator) for node in graph.nodes] == [RowNorm]
        found = run(graph, {"x": x})[graph.outputs[0]]
        apart = np.abs(found.astype(int) - reference(model, {"x": x}))
        assert apart.max() <= 1
        assert np.count_nonzero(apart) <= 0.003 * x.size


@pytest.mark.parametrize("kind", KINDS[1:3])
def test_the_expanded_graph_has_the_same_bytes(kind: str) -> None:
    x = _rows(30)
    x[0, :3] = [[-128], [127], [5]]
    graph = integer_graph(_model(kind, x))
    expanded = ExpandIntegers().run(graph)
    wanted, found = (run(each, {"x": x})[each.outputs[0]] for each in (graph, expanded))
    np.testing.assert_array_equal(found, wanted)


def test_what_is_no_norm_of_rows_is_not_one() -> None:
    x = _rows(10)
    for model in (_model("rms", x, axis=1), _model("operator", x, epsilon=1e3)):
        with pytest.raises(UnsupportedOperatorError):
            integer_graph(model)


@pytest.mark.parametrize("about", [-128, -100, -1, 0, 60, 127])
def test_rows_far_from_their_zero_point_have_a_sum_of_squares_that_is_an_int32(about: int) -> None:
    far = -128 if about >= 0 else 127
    for channels in (1, 5, 16, 64, 2000):
        x = np.full((1, channels), far, np.int8)
        factor = np.full(channels, 100 / wide_steps(channels), F32)
        operator = RowNorm(0, 0, about)
        (y,) = operator.evaluate([x, np.zeros(channels, np.int32), factor])
        np.testing.assert_array_equal(y, 100 * np.sign(far - about))  # each over the root of 1


@pytest.mark.parametrize(("zero_point", "most"), [(np.int8(-128), 127), (np.uint8(0), 255)])
def test_zero_points_at_a_limit_are_near_onnx_runtimes(zero_point: Array, most: int) -> None:
    b, kind = ModelBuilder(), str(zero_point.dtype)
    v = b.dequantize("x", 0.05, zero_point)
    power = b.node("ReduceMean", [b.node("Pow", [v, b.constant(F32(2))])], axes=[-1])
    root = b.node("Sqrt", [b.node("Add", [power, b.constant(F32(1e-5))])])
    y = b.quantize(b.node("Div", [v, root]), 0.015, zero_point)
    x = np.random.default_rng(0).integers(most - 90, most + 1, (1, 9, 16)).astype(kind)
    model = b.build({"x": (kind, x.shape)}, y, kind, opset=17)
    graph = integer_graph(model)
    assert RowNorm in {type(node.operator) for node in graph.nodes}
    found = run(graph, {"x": x})[graph.outputs[0]]
    assert np.abs(found.astype(int) - reference(model, {"x": x})).max() <= 1


def test_the_largest_sum_of_squares_is_an_int32() -> None:
    for channels in (4, 64, 768, 2048):
        steps = deviation_steps(channels)
        x = np.repeat(np.array([[-128, 127]], np.int8), channels // 2, axis=0).reshape(1, -1)
        ones = np.full(channels, 2e-4, F32)
        operator = RowNorm(0, 0)
        y = operator.evaluate([x, np.zeros(channels, np.int32), ones])[0].astype(int)
        assert np.abs(y).min() == np.abs(y).max() > 0, steps
    assert deviation_steps(1 << 20) == 0


def _coarse(x: Array, moved: bool, unsigned: bool, centred: bool = True) -> onnx.ModelProto:
    """As ONNX Runtime's quantiser leaves single operators, with channels first if ``moved``; of
    RMSNorm if not ``centred``.
    """
    zero = np.uint8(0) if unsigned else np.int8(-128)
    b, axes = ModelBuilder(), [1 if moved else 2]
    v = b.dequantize("x", 0.03, np.int8(5))
    if centred:
        v = b.node("Sub", [v, b.node("ReduceMean", [v], axes=axes)])
    last = b.node("Transpose", [v], perm=[0, 2, 1]) if moved else v
    squares = b.node("ReduceMean", [b.node("Pow", [last, b.constant(F32(2))])], axes=[2])
    scale = F32(0.03**2 * x.var() / 128)
    squares = b.dequantize(b.quantize(squares, scale, zero), scale, zero)
    total = b.node("Add", [squares, b.dequantize(b.constant(np.int8(1)), 1e-5, np.int8(0))])
    total = b.dequantize(b.quantize(total, 1.01 * scale, zero), 1.01 * scale, zero)
    y = b.node("Div", [last, b.node("Sqrt", [total])])
    return _built(b, y, x)


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize(
    ("unsigned", "centred"), [(False, True), (True, True), (False, False), (True, False)]
)
def test_rows_that_a_model_quantises_inside_are_normalised(
    moved: bool, unsigned: bool, centred: bool
) -> None:
    for spread in (8, 40):
        rows = _rows(spread)
        x = np.ascontiguousarray(rows.transpose(0, 2, 1)) if moved else rows
        model = _coarse(x, moved, unsigned, centred)
        graph = integer_graph(model)
        assert [type(node.operator) for node in graph.nodes if node.operator != TURN] == [RowNorm]
        found, expanded = (
            run(each, {"x": x})[graph.outputs[0]] for each in (graph, ExpandIntegers().run(graph))
        )
        np.testing.assert_array_equal(expanded, found)
        apart = np.abs(found.astype(int) - reference(model, {"x": x}))
        assert apart.max() <= 1
        assert np.count_nonzero(apart) <= 0.003 * x.size


def test_other_ways_to_the_divisor_are_no_normalisation() -> None:
    """Where the divisor is turned otherwise than what it divides, or is of another mean."""
    x = _rows(20, 100)
    for name, change in (("Transpose", [0, 1, 2]), ("ReduceMean", [2])):
        model = _coarse(x, True, False)
        node = next(each for each in model.graph.node if each.op_type == name)
        node.attribute[0].ints[:] = change
        with pytest.raises(UnsupportedOperatorError):
            integer_graph(model)


@pytest.mark.parametrize(
    ("place", "change"),
    [
        *((f"Sqrt {n}", kind) for n, kind in ((0, "Exp"), (0, "Abs"))),
        *((f"ReduceMean {n}", kind) for n in (0, 1) for kind in ("ReduceMax", "ReduceL2")),
        *(("Pow 0", "Mul"), ("Add 0", "Sub"), ("Sub 0", "Add"), ("Div 0", "Mul")),
        *((f"{name} 0", "turned") for name in ("Pow", "Sub", "Div")),
    ],
)
def test_other_operators_are_no_normalisation(place: str, change: str) -> None:
    """One node in it is of another kind, or has its operands in another order."""
    kind, number = place.split()
    model = _coarse(_rows(20, 100), False, False)
    node = [each for each in model.graph.node if each.op_type == kind][int(number)]
    if change == "turned":
        node.input[:] = node.input[::-1]
    else:
        node.op_type = change
    with pytest.raises(UnsupportedOperatorError):
        integer_graph(model)


def _divided_by_length(x: Array, least: float | None, axis: int = -1) -> onnx.ModelProto:
    """Rows over their lengths, of at least ``least``, repeated as torch does, if there is one; with
    0 by LpNormalization.
    """
    b = ModelBuilder()
    v = b.dequantize("x", 0.03, np.int8(5))
    if least == 0:
        return _built(b, b.node("LpNormalization", [v], axis=axis), x)
    length = b.node("ReduceL2", [v], axes=[axis])
    if least is not None:
        length = b.node("Clip", [length, b.constant(F32(least))])
        length = b.node("Expand", [length, b.constant(np.array(x.shape))])
    return _built(b, b.node("Div", [v, length]), x)


@pytest.mark.parametrize(
    ("least", "axis"), [(None, -1), (1e-12, -1), (0.03, 1), (1e-12, 2), (0, 1)]
)
def test_rows_over_their_lengths_are_normalised(least: float | None, axis: int) -> None:
    x = _rows(30)
    x[0, :2] = [[5], [6]]
    x[0, 1, 1:] = 5
    model = _divided_by_length(x, least, axis)
    if least is None:
        x[0, 0] = 7  # ONNX Runtime's 0 / 0 is not a number.
    graph = integer_graph(model)
    turned = [Transpose] * (axis == 1)
    assert [type(node.operator) for node in graph.nodes] == [*turned, RowNorm, *turned]
    apart = run(graph, {"x": x})[graph.outputs[0]].astype(int) - reference(model, {"x": x})
    assert np.abs(apart).max() <= 1
    assert np.count_nonzero(apart) <= 0.003 * x.size


def test_a_length_above_that_of_a_row_of_one_step_counts() -> None:
    with pytest.raises(UnsupportedOperatorError):
        integer_graph(_divided_by_length(_rows(30), 0.031))
