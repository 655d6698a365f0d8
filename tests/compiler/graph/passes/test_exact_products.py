"""Products of quantised bytes become exact sums, and everything else stays as it is."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import Convolution, contract
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction
from dovetail.compiler.graph.operators.movement import Reshape
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.operators.quantization import DequantizeLinear, QuantizeLinear
from dovetail.compiler.graph.passes.exact_products import ExactProducts
from dovetail.compiler.graph.types import TensorType

Array = NDArray[Any]
ADD, MUL, SUB = BinaryFunction.ADD, BinaryFunction.MUL, BinaryFunction.SUB


@dataclass(frozen=True)
class Scaled:
    """How a tensor is quantised; scale: a constant, or the name of a tensor."""

    scale: Array | str
    zero: Array
    axis: int = 0


ROWS = Scaled(np.array([0.01, 0.03, 0.007], np.float32), np.array([3, -7, 0], np.int8))
COLUMNS = Scaled(
    np.array([0.02, 0.05, 0.011, 0.3], np.float32), np.array([1, 0, -5, 9], np.int8), 1
)
FILTERS = replace(COLUMNS, axis=0)
X, W = (
    Scaled(np.array([0.01], np.float32), np.array([3], np.int8)),
    Scaled(np.array(0.02, np.float32), np.array(0, np.int8)),
)
BIAS = Scaled(X.scale * W.scale, np.array([0], np.int32))
STEPS = np.array([900, -7000, 0, 12345], np.int32)
Y = Scaled(np.array(0.5, np.float32), np.array(-3, np.int8))
MATRIX = contract(
    (TensorType((3, 40), "float32"), TensorType((40, 4), "float32")),
    *(((0, 1), (1, 2)), (0, 2), DType.FLOAT32),
)
LINE = Convolution((1,), (1,), ((1, 1),), (1,), 1, DType.FLOAT32)


def product(
    x: Scaled = X,
    w: Scaled = W,
    bias: Scaled | None = None,
    y: Scaled = Y,
    operator: TensorOperator = MATRIX,
    shapes: tuple[tuple[int, ...], ...] = ((3, 40), (40, 4)),
    dtype: str = "int8",
    add: BinaryFunction = ADD,
    flat: bool = False,
    real: str = "",
) -> Graph:
    """``q(operator(dq(x), dq(w)) + dq(bias))``; flat: x is a list, reshaped after its dq; real: the
    operand that is not quantised."""
    build = GraphBuilder()
    for name in ("sx", "sw"):
        build.input(name, TensorType((), "float32"))
    build.node(Binary(MUL), ("sx", "sw"), "both", "both")

    def scaled(operator: TensorOperator, tensor: str, kind: Scaled) -> str:
        scale = kind.scale if isinstance(kind.scale, str) else build.constant("scale", kind.scale)
        names = tensor, scale, build.constant("zero", kind.zero)
        return build.node(operator, names, f"{tensor}_", tensor)

    reals = []
    for name, kind, shape, each in zip("xw", (x, w), shapes, (dtype, "int8"), strict=True):
        whole = (int(np.prod(shape)),) if flat and name == "x" else shape
        build.input(name, TensorType(whole, "float32" if name == real else each))
        now = name if name == real else scaled(DequantizeLinear(kind.axis), name, kind)
        reals.append(build.node(Reshape(shape), (now,), name, name) if whole != shape else now)
    total = build.node(operator, tuple(reals), "product", "product")
    if bias is not None:
        steps = scaled(
            DequantizeLinear(0), build.constant("bias", STEPS.astype(bias.zero.dtype)), bias
        )
        total = build.node(Binary(add), (total, steps), "sum", "sum")
    return build.build((scaled(QuantizeLinear(1), total, y),))


def values(graph: Graph) -> dict[str, Array]:
    draw = np.random.default_rng(1)
    found: dict[str, Array] = {"sx": np.array(0.01, np.float32), "sw": np.array(0.02, np.float32)}
    for name in "xw":
        kind = graph.types[name]
        found[name] = draw.integers(-128, 128, kind.shape).astype(kind.dtype.numpy)
    return found


def quantised(total: Array, scale: Array) -> Array:
    """Each operation in float32."""
    steps = np.rint(total.astype(np.float32) * (scale / np.array(0.5, np.float32))) + np.array(
        -3, np.float32
    )
    return np.clip(steps, -128, 127).astype(np.int8)


@pytest.mark.parametrize(
    ("x", "w", "bias", "flat"),
    [
        (X, W, None, False),
        (ROWS, COLUMNS, None, False),
        (ROWS, replace(COLUMNS, zero=np.array(4, np.int8)), None, False),
        (Scaled(X.scale, np.array([131], np.uint8)), W, None, False),
        (X, COLUMNS, None, True),
        (X, W, BIAS, False),
        (X, COLUMNS, Scaled(X.scale * COLUMNS.scale, np.array([0] * 4, np.int32)), True),
        (replace(X, scale="sx"), replace(W, scale="sw"), replace(BIAS, scale="both"), False),
    ],
    ids=[
        "one scale",
        "lists",
        "scales",
        "unsigned",
        "list and shape",
        "bias",
        "all",
        "computed scales",
    ],
)
def test_sums_are_exact(x: Scaled, w: Scaled, bias: Scaled | None, flat: bool) -> None:
    before = product(x, w, bias, flat=flat, dtype=str(x.zero.dtype))
    after = ExactProducts().run(before)
    given = values(before)
    named = {name: given[name] for name in ("sx", "sw")}
    scales = [named.get(str(each.scale), each.scale) for each in (x, w)]
    rows = given["x"].reshape(3, 40).astype(np.int32) - x.zero.astype(np.int32).reshape(-1, 1)
    total = rows @ (given["w"].astype(np.int32) - w.zero) + (0 if bias is None else STEPS)
    expected = quantised(total, scales[0].reshape(-1, 1) * scales[1])
    np.testing.assert_array_equal(run(after, given)[after.outputs[0]], expected)
    assert len(np.unique(expected)) > 5
    (exact,) = (each for each in after.nodes if isinstance(each.operator, type(MATRIX)))
    assert exact.origin == "product"
    assert exact.operator.dtype == DType.INT32  # type: ignore[attr-defined]


def test_filters_may_have_scales_of_their_own() -> None:
    before = product(X, FILTERS, operator=LINE, shapes=((1, 2, 9), (4, 2, 3)))
    after = ExactProducts().run(before)
    assert any(getattr(each.operator, "dtype", None) == DType.INT32 for each in after.nodes)
    given = values(before)
    given = {**given, "w": (given["w"] // 32).astype(np.int8)}
    found, close = (run(each, given)[each.outputs[0]] for each in (after, before))
    assert len(np.unique(close)) > 5
    np.testing.assert_allclose(found, close.astype(int), atol=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"x": Scaled(np.ones(40, np.float32), np.zeros(40, np.int8), 1)},
        {"x": Scaled(np.ones(120, np.float32), np.zeros(120, np.int8)), "flat": True},
        {"w": replace(FILTERS, axis=1), "operator": LINE, "shapes": ((1, 4, 9), (2, 4, 3))},
        {"x": replace(ROWS, axis=1), "operator": LINE, "shapes": ((1, 3, 9), (4, 3, 3))},
        {"x": Scaled(X.scale, np.array([3], np.int16)), "dtype": "int16"},
        {"y": Scaled(Y.scale, np.array(0, np.int16))},
        {"y": COLUMNS},
        {"y": Scaled(COLUMNS.scale, np.array(0, np.int8))},
        {"real": "x"},
        {"real": "w"},
        {"bias": replace(BIAS, scale=np.array([0.0003], np.float32))},
        {"bias": replace(BIAS, zero=np.array([1], np.int32))},
        {"bias": Scaled(BIAS.scale, np.array([0], np.int8))},
        {"bias": BIAS, "add": SUB},
        {"x": replace(X, scale="sx"), "w": replace(W, scale="sw"), "bias": BIAS},
        {"x": replace(X, scale="sx"), "bias": replace(BIAS, scale="both")},
    ],
    ids=" ".join,
)
def test_other_products_stay_as_they_are(changes: dict[str, object]) -> None:
    graph = product(**changes)  # type: ignore[arg-type]
    assert ExactProducts().run(graph) is graph


def test_a_product_that_others_read_stays() -> None:
    graph = product()
    shown = replace(graph, outputs=(*graph.outputs, graph.nodes[-2].output))
    assert ExactProducts().run(shown) is shown
