"""Random models of one operator each."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from .build import Op, Tensor, write

__all__ = ["FAMILIES", "Case", "cases"]

Array = NDArray[Any]
RNG = np.random.default_rng(22)
"""Begins anew with every family."""


@dataclass(frozen=True)
class Case:
    """A model and inputs.  dtype: the element type under which the table lists it."""

    kind: str
    dtype: str
    content: bytes
    inputs: tuple[Array, ...]


@dataclass(frozen=True)
class In:
    """An operand that is given.  low, high: limits of its values; scale: how it is quantised."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -3.0
    high: float = 3.0
    scale: float = 0.0
    zero: int = 0

    def draw(self) -> Array:
        """Random values."""
        if self.dtype == "bool":
            return RNG.integers(0, 2, self.shape).astype(bool)
        if self.dtype.startswith("float"):
            return RNG.uniform(self.low, self.high, self.shape).astype(self.dtype)
        info = np.iinfo(self.dtype)
        full = (self.low, self.high) == (-3.0, 3.0)
        low, high = (info.min, info.max) if full and info.bits < 32 else (self.low, self.high)
        if full and info.bits >= 32:
            low, high = -50, 50
        return RNG.integers(int(low), int(high), self.shape, endpoint=True).astype(self.dtype)


@dataclass(frozen=True)
class Const:
    """An operand that the file has.  axis: of ``scales``."""

    data: Array
    scales: tuple[float, ...] = ()
    zeros: tuple[int, ...] = ()
    axis: int = 0


@dataclass(frozen=True)
class State:
    """An operand that LiteRT keeps from one run to the next."""

    shape: tuple[int, ...]


@dataclass(frozen=True)
class Out:
    """A result; its shape is LiteRT's business where it is left out."""

    dtype: str = "float32"
    scale: float = 0.0
    zero: int = 0
    shape: tuple[int, ...] = ()


EMPTY: Mapping[str, Any] = {}


def case(
    kind: str,
    operands: list[In | Const | State | None],
    outputs: list[Out],
    table: str = "",
    options: Mapping[str, Any] = EMPTY,
    label: str = "",
    version: int = 1,
    custom: bytes = b"",
) -> Case:
    """A model of one operator."""
    tensors: list[Tensor] = []
    inputs: list[int] = []
    given: list[Array] = []
    numbers: list[int] = []
    for each in operands:
        if each is None:
            numbers.append(-1)
            continue
        numbers.append(len(tensors))
        name = f"x{len(tensors)}"
        match each:
            case In():
                inputs.append(len(tensors))
                given.append(each.draw())
                quantised = ((each.scale,), (each.zero,)) if each.scale else ((), ())
                tensors.append(Tensor(name, each.shape, each.dtype, None, *quantised))
            case State():
                tensors.append(Tensor(name, each.shape, variable=True))
            case Const():
                tensors.append(
                    Tensor(
                        name, each.data.shape, str(each.data.dtype), each.data, each.scales,
                        each.zeros, each.axis,
                    )
                )  # fmt: skip
    results = []
    for place, out in enumerate(outputs):
        results.append(len(tensors))
        quantised = ((out.scale,), (out.zero,)) if out.scale else ((), ())
        tensors.append(Tensor(f"y{place}", out.shape, out.dtype, None, *quantised))
    op = Op(kind, tuple(numbers), tuple(results), table, options, version, custom)
    content = write(tensors, [op], inputs, results)
    first = next((e for e in operands if isinstance(e, In)), None)
    return Case(kind, label or (first.dtype if first else "float32"), content, tuple(given))


def i32(*values: int) -> Const:
    """A constant list of integers."""
    return Const(np.asarray(values, np.int32))


def floats(*shape: int) -> Const:
    """Random constant floats."""
    return Const(RNG.standard_normal(shape).astype(np.float32))


F = Out()
UNARY = (
    *("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOGISTIC", "NEG", "RELU"),
    *("RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "SIGN", "SIN", "SQUARE", "TANH"),
    "ZEROS_LIKE",
)
CASTS = (
    *(("float32", "int32"), ("int32", "float32"), ("float32", "bool"), ("uint8", "int64")),
    *(("int64", "int32"), ("bool", "float32")),
)
IMAGE = In((1, 7, 6, 4))
BYTES = (("int8", 3), ("uint8", 120))


def cases(family: str) -> Iterator[Case]:
    """The cases of a family, always the same."""
    global RNG
    RNG = np.random.default_rng(22)
    yield from FAMILIES[family]()


def unary() -> Iterator[Case]:
    for kind in UNARY:
        yield case(kind, [In((3, 5), low=-7, high=7)], [F])
    for kind in ("LOG", "RSQRT", "SQRT"):
        yield case(kind, [In((3, 5), low=0.1, high=5)], [F])
    for approximate in (False, True):
        yield case("GELU", [In((3, 5))], [F], "GeluOptions", {"Approximate": approximate})
    yield case("LEAKY_RELU", [In((3, 5))], [F], "LeakyReluOptions", {"Alpha": 0.3})
    yield case("PRELU", [IMAGE, floats(1, 1, 4)], [F])
    yield case("LOGICAL_NOT", [In((3, 5), "bool")], [Out("bool")])
    for dtype in ("int32", "int64"):
        yield case("NEG", [In((3, 5), dtype)], [Out(dtype)])
    yield case("ABS", [In((3, 5), "int32")], [Out("int32")])
    for a, b in CASTS:
        yield case("CAST", [In((3, 5), a)], [Out(b)])
    yield case("BITCAST", [In((3, 5))], [Out("int32")])
    yield case("FILL", [i32(2, 3), In((), "float32")], [F])
    yield case(
        "FAKE_QUANT", [In((3, 5))], [F], "FakeQuantOptions", {"Min": -2.0, "Max": 2.5, "NumBits": 8}
    )


def unary_bytes() -> Iterator[Case]:
    for dtype, zero in BYTES:
        x = In((3, 50), dtype, scale=0.05, zero=zero)
        low = -128 if dtype == "int8" else 0
        for kind in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"):
            yield case(kind, [x], [Out(dtype, 0.04, zero + 2)])
        yield case("LOGISTIC", [x], [Out(dtype, 1 / 256, low)])
        yield case("TANH", [x], [Out(dtype, 1 / 128, low + 128)])
        yield case("HARD_SWISH", [x], [Out(dtype, 0.03, zero)])
        yield case("LEAKY_RELU", [x], [Out(dtype, 0.04, zero)], "LeakyReluOptions", {"Alpha": 0.3})
        alpha = Const(RNG.integers(low, low + 255, (1, 50)).astype(dtype), (0.01,), (zero,))
        yield case("PRELU", [x, alpha], [Out(dtype, 0.06, zero)])
        for approximate in (False, True):
            yield case(
                "GELU", [x], [Out(dtype, 0.04, zero)], "GeluOptions", {"Approximate": approximate}
            )
    x = In((3, 50), "int8", scale=0.02, zero=3)
    yield case("ELU", [x], [Out("int8", 0.03, -20)])
    yield case("ABS", [x], [Out("int8", 0.015, -128)], version=2)
    yield case("EXP", [x], [Out("int8", 0.06, -128)], version=2)
    yield case("SQRT", [In((3, 50), "int8", 3, 127, 0.02, 3)], [Out("int8", 0.01, -128)])


def binary() -> Iterator[Case]:
    a, b = In((2, 3, 4)), In((3, 1))
    for kind, table in (
        ("ADD", "AddOptions"),
        ("SUB", "SubOptions"),
        ("MUL", "MulOptions"),
        ("DIV", "DivOptions"),
    ):
        for activation in (0, 1, 3):
            yield case(kind, [a, b], [F], table, {"FusedActivationFunction": activation})
        yield case(kind, [In((2, 3), "int32"), In((2, 3), "int32", 1, 9)], [Out("int32")], table)
    for kind in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD", "ATAN2"):
        yield case(kind, [a, In((2, 3, 4)) if kind == "ATAN2" else b], [F])
    for kind in ("FLOOR_DIV", "FLOOR_MOD", "MAXIMUM"):
        yield case(kind, [In((2, 3), "int32"), In((2, 3), "int32", 1, 9)], [Out("int32")])
    yield case("POW", [In((2, 3), low=0.1), In((2, 3))], [F])
    for kind in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"):
        yield case(kind, [a, b], [Out("bool")])
        yield case(kind, [In((20,), "int32", 0, 3), In((20,), "int32", 0, 3)], [Out("bool")])
        for dtype, zero in BYTES:
            x, y = (In((200,), dtype, scale=s, zero=zero) for s in (0.05, 0.07))
            yield case(kind, [x, y], [Out("bool")])
    for kind in ("LOGICAL_AND", "LOGICAL_OR"):
        yield case(kind, [In((20,), "bool"), In((20,), "bool")], [Out("bool")])
    yield case("BITWISE_XOR", [In((20,), "int32"), In((20,), "int32")], [Out("int32")])
    yield case("RIGHT_SHIFT", [In((20,), "int32"), In((20,), "int32", 0, 5)], [Out("int32")])
    yield case("ADD_N", [In((2, 3)), In((2, 3)), In((2, 3))], [F])
    yield case("SELECT", [In((4,), "bool"), In((4, 3)), In((4, 3))], [F])
    yield case("SELECT_V2", [In((3,), "bool"), In((4, 3)), In((1, 3))], [F])


def binary_bytes() -> Iterator[Case]:
    for dtype, zero in BYTES:
        for shape in ((2, 3, 40), (40,), (1, 1, 1)):
            for activation in (0, 1):
                a, b = (
                    In((2, 3, 40), dtype, scale=0.05, zero=zero),
                    In(shape, dtype, scale=0.031, zero=zero - 3),
                )
                options = {"FusedActivationFunction": activation}
                yield case("ADD", [a, b], [Out(dtype, 0.06, zero)], "AddOptions", options)
                yield case("SUB", [b, a], [Out(dtype, 0.06, zero)], "SubOptions", options)
                yield case("MUL", [a, b], [Out(dtype, 0.07, zero)], "MulOptions", options)
    a, b = In((2, 90), "int8", scale=0.05, zero=3), In((2, 90), "int8", scale=0.031, zero=3)
    yield case("SQUARED_DIFFERENCE", [a, b], [Out("int8", 0.3, -128)])
    for kind in ("MAXIMUM", "MINIMUM"):
        yield case(kind, [a, In((2, 90), "int8", scale=0.05, zero=3)], [Out("int8", 0.05, 3)])
    x, y = In((2, 90), "int16", scale=0.0011), In((2, 90), "int16", scale=0.0017)
    yield case("ADD", [x, y], [Out("int16", 0.002)], "AddOptions", {"PotScaleInt16": False})
    yield case("SUB", [x, y], [Out("int16", 0.002)], "SubOptions", {"PotScaleInt16": False})
    yield case("MUL", [x, y], [Out("int16", 0.002)], "MulOptions")


def products() -> Iterator[Case]:
    for padding in (0, 1):
        for stride, dilation in ((1, 1), (2, 1), (1, 2)):
            options = {
                "Padding": padding,
                "StrideH": stride,
                "StrideW": 1 if dilation > 1 else stride,
                "DilationHFactor": dilation,
                "DilationWFactor": 1,
                "FusedActivationFunction": 1,
            }
            for batch in (1, 2):
                x = In((batch, 7, 6, 4))
                yield case(
                    "CONV_2D", [x, floats(5, 3, 2, 4), floats(5)], [F], "Conv2DOptions", options
                )
                depth = {**options, "DepthMultiplier": 2}
                yield case(
                    "DEPTHWISE_CONV_2D",
                    [x, floats(1, 3, 2, 8), floats(8)],
                    [F],
                    "DepthwiseConv2DOptions",
                    depth,
                )
                for dtype, zero in BYTES:
                    x = In((batch, 7, 6, 4), dtype, scale=0.05, zero=zero)
                    y = Out(dtype, 0.3, zero)
                    yield case(
                        "CONV_2D",
                        [x, *weights(dtype, (5, 3, 2, 4), 0, 0.05)],
                        [y],
                        "Conv2DOptions",
                        options,
                    )
                    yield case(
                        "DEPTHWISE_CONV_2D",
                        [x, *weights(dtype, (1, 3, 2, 8), 3, 0.05)],
                        [y],
                        "DepthwiseConv2DOptions",
                        depth,
                    )
    for keep in (False, True):
        options = {"KeepNumDims": keep, "FusedActivationFunction": 1}
        yield case(
            "FULLY_CONNECTED",
            [In((2, 3, 9)), floats(5, 9), floats(5)],
            [F],
            "FullyConnectedOptions",
            options,
        )
        for dtype, zero in BYTES:
            x = In((2, 3, 9), dtype, scale=0.05, zero=zero)
            yield case(
                "FULLY_CONNECTED",
                [x, *weights(dtype, (5, 9), -1, 0.05)],
                [Out(dtype, 0.3, zero)],
                "FullyConnectedOptions",
                options,
            )
    for padding in (0, 1):
        options = {"Padding": padding, "StrideH": 2, "StrideW": 3}
        out = (1, 9, 16, 5) if padding else (1, 8, 15, 5)
        yield case(
            "TRANSPOSE_CONV",
            [i32(*out), floats(5, 3, 4, 4), In((1, 4, 5, 4)), floats(5)],
            [F],
            "TransposeConvOptions",
            options,
            version=3,
        )
        for dtype, zero in BYTES:
            w, b = weights(dtype, (5, 3, 4, 4), 0, 0.05)
            x = In((1, 4, 5, 4), dtype, scale=0.05, zero=zero)
            yield case(
                "TRANSPOSE_CONV",
                [i32(*out), w, x, b],
                [Out(dtype, 0.3, zero)],
                "TransposeConvOptions",
                options,
                version=3,
            )
    for adj_x, adj_y in ((False, False), (True, False), (False, True)):
        a, b = (3, 2, 4, 5), (2, 5, 3)
        shapes = ((*a[:2], 5, 4) if adj_x else a), ((2, 3, 5) if adj_y else b)
        options = {"AdjX": adj_x, "AdjY": adj_y}
        yield case(
            "BATCH_MATMUL", [In(shapes[0]), In(shapes[1])], [F], "BatchMatMulOptions", options
        )
        x, y = (
            In(shape, "int8", scale=0.05, zero=z) for shape, z in zip(shapes, (3, -4), strict=True)
        )
        yield case("BATCH_MATMUL", [x, y], [Out("int8", 0.7, 5)], "BatchMatMulOptions", options)
    options = {
        "Padding": 0,
        "StrideD": 1,
        "StrideH": 2,
        "StrideW": 1,
        "DilationDFactor": 1,
        "DilationHFactor": 1,
        "DilationWFactor": 1,
    }
    yield case(
        "CONV_3D",
        [In((1, 4, 5, 6, 2)), floats(2, 3, 2, 2, 3), floats(3)],
        [F],
        "Conv3DOptions",
        options,
    )
    yield case(
        "CONV_3D_TRANSPOSE",
        [i32(1, 4, 10, 6, 3), floats(2, 3, 2, 3, 2), In((1, 4, 5, 6, 2)), floats(3)],
        [F],
        "Conv3DOptions",
        options,
    )


def mixed_products() -> Iterator[Case]:
    """Weights of bytes beside floats and beside 16 bits."""
    options = {
        "StrideH": 2,
        "StrideW": 2,
        "DilationHFactor": 1,
        "DilationWFactor": 1,
        "FusedActivationFunction": 1,
    }
    depth = {**options, "DepthMultiplier": 2}
    w, _ = weights("int8", (5, 3, 2, 4), 0, 1)
    deep, _ = weights("int8", (1, 3, 2, 8), 3, 1)
    rows, _ = weights("int8", (5, 9), -1, 1)
    by_row, _ = weights("int8", (5, 9), 0, 1)
    same = Const(w.data, (0.03,), (0,))
    x, y = In((2, 7, 6, 4)), In((3, 9))
    for kind in (w, same):
        yield case("CONV_2D", [x, kind, floats(5)], [F], "Conv2DOptions", options, "hybrid")
    yield case(
        "DEPTHWISE_CONV_2D", [x, deep, floats(8)], [F], "DepthwiseConv2DOptions", depth, "hybrid"
    )
    for asymmetric in (False, True):
        for matrix in (rows, by_row):
            own = {"AsymmetricQuantizeInputs": asymmetric}
            yield case(
                "FULLY_CONNECTED",
                [y, matrix, floats(5)],
                [F],
                "FullyConnectedOptions",
                own,
                "hybrid",
            )
    x, y = In((2, 7, 6, 4), "int16", scale=0.0002), In((3, 9), "int16", scale=0.0002)
    out = Out("int16", 0.004)
    for wide, number in ((np.int32, 2), (np.int64, 4)):
        biases = [
            Const(RNG.integers(-9000, 9000, size).astype(wide), (1e-5,), (0,)) for size in (5, 8)
        ]
        typed = {**options, "QuantizedBiasType": number}
        yield case("CONV_2D", [x, w, biases[0]], [out], "Conv2DOptions", typed)
        own = {"QuantizedBiasType": number}
        yield case("FULLY_CONNECTED", [y, rows, biases[0]], [out], "FullyConnectedOptions", own)
        yield case("FULLY_CONNECTED", [y, by_row, biases[0]], [out], "FullyConnectedOptions", own)
    yield case("DEPTHWISE_CONV_2D", [x, deep, biases[1]], [out], "DepthwiseConv2DOptions", depth)


def recurrent() -> Iterator[Case]:
    x, cells, outputs = 3, 5, 5
    for variant in ("plain", "peephole", "coupled", "projected", "normalised"):
        outputs = 4 if variant == "projected" else cells
        entry = [floats(cells, x) for _ in range(4)]
        back = [floats(cells, outputs) for _ in range(4)]
        peephole = [floats(cells) if variant == "peephole" else None for _ in range(3)]
        bias: list[In | Const | State | None] = [floats(cells) for _ in range(4)]
        projection = [floats(outputs, cells), floats(outputs)]
        scales = [floats(cells) for _ in range(4)] if variant == "normalised" else []
        operands: list[In | Const | State | None] = [
            *(*entry, *back, *peephole, *bias),
            *(projection if variant == "projected" else [None, None]),
            *(State((2, outputs)), State((2, cells)), *scales),
        ]
        if variant == "coupled":
            operands[0] = operands[4] = operands[11] = None
        options = {"FusedActivationFunction": 4, "CellClip": 2.0}
        yield case(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            [In((2, 6, x)), *operands],
            [F],
            "UnidirectionalSequenceLSTMOptions",
            options,
        )
        if variant != "normalised":
            yield case("LSTM", [In((2, x)), *operands], [F], "LSTMOptions", options)
    w: list[In | Const | State | None] = [floats(5, 3), floats(5, 5), floats(5), State((2, 5))]
    options = {"FusedActivationFunction": 4}
    yield case("RNN", [In((2, 3)), *w], [F], "RNNOptions", options)
    for major in (False, True):
        shape = (6, 2, 3) if major else (2, 6, 3)
        own = {**options, "TimeMajor": major}
        yield case("UNIDIRECTIONAL_SEQUENCE_RNN", [In(shape), *w], [F], "SequenceRNNOptions", own)
    yield case(
        "SVDF",
        [In((2, 3)), floats(8, 3), floats(8, 6), floats(4), State((2, 48))],
        [F],
        "SVDFOptions",
        {"Rank": 2, "FusedActivationFunction": 1},
    )


def detection() -> Iterator[Case]:
    corners = RNG.uniform(0, 1, (12, 2, 2)).astype(np.float32)
    boxes = Const(np.sort(corners, 1).reshape(12, 4))
    scores = In((12,), low=0.0, high=1.0)
    limits = [
        Const(np.asarray(7, np.int32)),
        *(Const(np.asarray(v, np.float32)) for v in (0.4, 0.2)),
    ]
    yield case("NON_MAX_SUPPRESSION_V4", [boxes, scores, *limits], [Out("int32"), Out("int32")])
    sigma = Const(np.asarray(0, np.float32))
    outs = [Out("int32"), F, Out("int32")]
    yield case("NON_MAX_SUPPRESSION_V5", [boxes, scores, *limits, sigma], outs)
    options = {"max_detections": 4, "max_classes_per_detection": 1, "num_classes": 3}
    reals = {
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
        "nms_score_threshold": 0.3,
        "nms_iou_threshold": 0.4,
    }
    anchors = Const(RNG.uniform(0.2, 0.8, (12, 4)).astype(np.float32))
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in options.items():
            builder.Key(name)
            builder.Int(value)
        for name, real in reals.items():
            builder.Key(name)
            builder.Float(real)
    given: list[In | Const | State | None] = [In((1, 12, 4)), In((1, 12, 4), low=0, high=1)]
    content = bytes(builder.Finish())
    kind = "TFLite_Detection_PostProcess"
    yield case(kind, [*given, anchors], [F, F, F, F], custom=content)


def weights(dtype: str, shape: tuple[int, ...], axis: int, scale: float) -> tuple[Const, Const]:
    """Weights and bias; int8 with a scale for each output."""
    outputs = shape[axis] if axis >= 0 else shape[0]
    bias = RNG.integers(-900, 900, outputs).astype(np.int32)
    if dtype == "uint8":
        w = Const(RNG.integers(0, 256, shape).astype(np.uint8), (0.07,), (117,))
        return w, Const(bias, (scale * 0.07,), (0,))
    data = RNG.integers(-127, 128, shape).astype(np.int8)
    if axis < 0:
        return Const(data, (0.07,), (0,)), Const(bias, (scale * 0.07,), (0,))
    scales = tuple(RNG.uniform(0.005, 0.1, outputs).astype(np.float32).tolist())
    return Const(data, scales, (0,) * outputs, axis), Const(
        bias, tuple(s * scale for s in scales), (0,) * outputs
    )


def pools() -> Iterator[Case]:
    for padding in (0, 1):
        options = {
            "Padding": padding,
            "StrideH": 2,
            "StrideW": 1,
            "FilterHeight": 3,
            "FilterWidth": 2,
            "FusedActivationFunction": 1,
        }
        for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
            yield case(kind, [In((2, 7, 6, 4))], [F], "Pool2DOptions", options)
        for dtype, zero in BYTES:
            x, y = In((2, 7, 6, 4), dtype, scale=0.05, zero=zero), Out(dtype, 0.05, zero)
            for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
                yield case(kind, [x], [y], "Pool2DOptions", options)


def reductions() -> Iterator[Case]:
    x = In((2, 3, 4, 5))
    for keep in (False, True):
        options = {"KeepDims": keep}
        for axes in ((1,), (1, 2), (0, -1)):
            for kind in ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
                yield case(kind, [x, i32(*axes)], [F], "ReducerOptions", options)
            for kind in ("REDUCE_ANY", "REDUCE_ALL"):
                yield case(
                    kind,
                    [In((2, 2, 2, 2), "bool"), i32(*axes)],
                    [Out("bool")],
                    "ReducerOptions",
                    options,
                )
            for dtype, zero in BYTES:
                for shape in ((1, 3, 4, 5), (2, 3, 4, 5)):
                    y = In(shape, dtype, scale=0.05, zero=zero)
                    for kind, scale in (
                        ("MEAN", 0.03),
                        *((("SUM", 0.2),) if dtype == "uint8" else ()),
                    ):
                        yield case(
                            kind,
                            [y, i32(*axes)],
                            [Out(dtype, scale, zero + 1)],
                            "ReducerOptions",
                            options,
                        )
                    for kind in ("REDUCE_MAX", "REDUCE_MIN"):
                        yield case(
                            kind,
                            [y, i32(*axes)],
                            [Out(dtype, 0.05, zero)],
                            "ReducerOptions",
                            options,
                        )
    for kind, table in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        for dtype in ("float32", "int8", "uint8", "int32"):
            yield case(kind, [In((3, 40), dtype), i32(1)], [Out("int64")], table, {"OutputType": 4})
    for exclusive in (False, True):
        yield case(
            "CUMSUM",
            [In((3, 5)), i32(1)],
            [F],
            "CumsumOptions",
            {"Exclusive": exclusive, "Reverse": not exclusive},
        )
    yield case("L2_NORMALIZATION", [x], [F], "L2NormOptions")
    yield case(
        "LOCAL_RESPONSE_NORMALIZATION",
        [x],
        [F],
        "LocalResponseNormalizationOptions",
        {"Radius": 2, "Bias": 1.5, "Alpha": 0.3, "Beta": 0.7},
    )
    yield case("LOG_SOFTMAX", [In((3, 7))], [F])
    yield case("SOFTMAX", [In((2, 3, 7))], [F], "SoftmaxOptions", {"Beta": 1.3})
    for dtype, _ in BYTES:
        low = -128 if dtype == "int8" else 0
        for scale in (0.02, 0.3):
            yield case(
                "SOFTMAX",
                [In((6, 50), dtype, scale=scale, zero=3)],
                [Out(dtype, 1 / 256, low)],
                "SoftmaxOptions",
                {"Beta": 1.0},
            )


def movement() -> Iterator[Case]:
    for dtype in ("float32", "int8", "int32"):
        x = In((2, 3, 4), dtype, scale=0.05 if dtype == "int8" else 0, zero=3)
        y = Out(dtype, x.scale, 3 if dtype == "int8" else 0)
        yield case("RESHAPE", [x, i32(4, -1)], [y], "ReshapeOptions", {"NewShape": (4, -1)})
        yield case("TRANSPOSE", [x, i32(2, 0, 1)], [y], "TransposeOptions")
        yield case("EXPAND_DIMS", [x, i32(-2)], [y], "ExpandDimsOptions")
        yield case(
            "SQUEEZE",
            [In((1, 3, 1), dtype, scale=x.scale, zero=3)],
            [y],
            "SqueezeOptions",
            {"SqueezeDims": (0,)},
        )
        other = In((2, 1, 4), dtype, scale=x.scale, zero=3)
        yield case("CONCATENATION", [x, other], [y], "ConcatenationOptions", {"Axis": 1})
        yield case("PACK", [x, x], [y], "PackOptions", {"Axis": 1, "ValuesCount": 2})
        yield case("UNPACK", [x], [y, y, y], "UnpackOptions", {"Axis": 1, "Num": 3})
        yield case("SPLIT", [i32(2), x], [y, y], "SplitOptions", {"NumSplits": 2})
        yield case("SPLIT_V", [x, i32(1, -1), i32(2)], [y, y], "SplitVOptions", {"NumSplits": 2})
        yield case("SLICE", [x, i32(0, 1, 1), i32(2, -1, 2)], [y], "SliceOptions")
        yield case(
            "STRIDED_SLICE",
            [x, i32(0, -1, 0), i32(2, 0, 3), i32(1, -1, 2)],
            [y],
            "StridedSliceOptions",
            {"BeginMask": 1, "EndMask": 4},
        )
        yield case(
            "STRIDED_SLICE",
            [x, i32(1, 0), i32(2, 2), i32(1, 1)],
            [y],
            "StridedSliceOptions",
            {"ShrinkAxisMask": 1},
        )
        yield case(
            "STRIDED_SLICE",
            [x, i32(0, 0, 1), i32(0, 0, 3), i32(1, 1, 1)],
            [y],
            "StridedSliceOptions",
            {"EllipsisMask": 1, "NewAxisMask": 2},
        )
        pads = Const(np.asarray([[0, 1], [2, 0], [1, 1]], np.int32))
        yield case("PAD", [x, pads], [y], "PadOptions")
        if dtype != "int32":
            value = Const(
                np.asarray(5, dtype), (x.scale,) if x.scale else (), (3,) if x.scale else ()
            )
            yield case("PADV2", [x, pads, value], [y], "PadV2Options")
        small = Const(np.asarray([[0, 1], [1, 0], [1, 2]], np.int32))
        for mode in (0, 1):
            yield case("MIRROR_PAD", [x, small], [y], "MirrorPadOptions", {"Mode": mode})
        yield case("TILE", [x, i32(2, 1, 3)], [y], "TileOptions")
        yield case(
            "BROADCAST_TO",
            [In((3, 1), dtype, scale=x.scale, zero=3), i32(2, 3, 4)],
            [y],
            "BroadcastToOptions",
            version=2,
        )
        yield case("REVERSE_V2", [x, i32(1)], [y], "ReverseV2Options")
        image = In((2, 4, 6, 4), dtype, scale=x.scale, zero=3)
        yield case("SPACE_TO_DEPTH", [image], [y], "SpaceToDepthOptions", {"BlockSize": 2})
        yield case("DEPTH_TO_SPACE", [image], [y], "DepthToSpaceOptions", {"BlockSize": 2})
        two = Const(np.asarray([[0, 2], [1, 1]], np.int32))
        if dtype != "int32":
            yield case("SPACE_TO_BATCH_ND", [image, i32(2, 2), two], [y], "SpaceToBatchNDOptions")
        batch = In((4, 3, 3, 2), dtype, scale=x.scale, zero=3)
        crops = Const(np.asarray([[0, 1], [1, 0]], np.int32))
        yield case("BATCH_TO_SPACE_ND", [batch, i32(2, 2), crops], [y], "BatchToSpaceNDOptions")
        yield case("GATHER", [x, In((2, 2), "int32", 0, 2)], [y], "GatherOptions", {"Axis": 1})
        yield case(
            "GATHER",
            [x, In((2, 2), "int32", 0, 3)],
            [y],
            "GatherOptions",
            {"Axis": 2, "BatchDims": 1},
        )
        yield case("GATHER_ND", [x, In((5, 2), "int32", 0, 1)], [y], "GatherNdOptions")
    u = In((2, 3, 4), "uint8", scale=0.04, zero=100)
    yield case(
        "CONCATENATION",
        [u, In((2, 1, 4), "uint8", scale=0.05, zero=120)],
        [Out("uint8", 0.05, 110)],
        "ConcatenationOptions",
        {"Axis": 1},
    )
    image = In((1, 4, 6, 4), "int8", scale=0.05, zero=3)
    border = Const(np.asarray([[0, 0], [2, 0], [1, 1], [0, 0]], np.int32))
    yield case("PAD", [image, border], [Out("int8", 0.05, 3)], "PadOptions")


def indexing() -> Iterator[Case]:
    yield case(
        "SCATTER_ND",
        [Const(np.asarray([[1], [3], [1]], np.int32)), In((3, 2)), i32(5, 2)],
        [F],
        "ScatterNdOptions",
    )
    yield case(
        "ONE_HOT",
        [
            In((4,), "int32", -1, 5),
            Const(np.asarray(5, np.int32)),
            Const(np.asarray(2.5, np.float32)),
            Const(np.asarray(-1, np.float32)),
        ],
        [F],
        "OneHotOptions",
        {"Axis": -1},
        label="int32",
    )
    yield case(
        "TOPK_V2", [In((3, 9)), Const(np.asarray(4, np.int32))], [F, Out("int32")], "TopKV2Options"
    )
    yield case(
        "TOPK_V2",
        [In((3, 90), "int8"), Const(np.asarray(4, np.int32))],
        [Out("int8"), Out("int32")],
        "TopKV2Options",
    )
    yield case("SHAPE", [In((3, 9))], [Out("int32")], "ShapeOptions", {"OutType": 2})
    yield case("RANK", [In((3, 9))], [Out("int32")], "RankOptions")
    yield case("EMBEDDING_LOOKUP", [In((4,), "int32", 0, 5), floats(6, 3)], [F], label="float32")
    yield case(
        "DYNAMIC_UPDATE_SLICE",
        [In((4, 5)), In((2, 3)), In((2,), "int32", -1, 4)],
        [F],
        "DynamicUpdateSliceOptions",
    )
    yield case(
        "REVERSE_SEQUENCE",
        [In((3, 5, 2)), In((3,), "int32", 1, 5)],
        [F],
        "ReverseSequenceOptions",
        {"SeqDim": 1, "BatchDim": 0},
    )
    yield case("MATRIX_DIAG", [In((2, 3))], [F], "MatrixDiagOptions")
    yield case("MATRIX_SET_DIAG", [In((2, 3, 4)), In((2, 3))], [F], "MatrixSetDiagOptions")
    yield case(
        "SPARSE_TO_DENSE",
        [
            Const(np.asarray([[0, 1], [2, 0]], np.int32)),
            i32(3, 4),
            In((2,)),
            Const(np.asarray(-1, np.float32)),
        ],
        [F],
        "SparseToDenseOptions",
    )
    yield case(
        "BUCKETIZE",
        [In((3, 5))],
        [Out("int32")],
        "BucketizeOptions",
        {"Boundaries": (-1.5, 0.0, 1.25)},
    )
    yield case(
        "RANGE",
        [
            Const(np.asarray(1, np.int32)),
            Const(np.asarray(9, np.int32)),
            Const(np.asarray(3, np.int32)),
        ],
        [Out("int32")],
        "RangeOptions",
    )
    yield case("BROADCAST_ARGS", [i32(3, 1), i32(2, 1, 4)], [Out("int32")])
    for aligned, half in ((False, False), (True, False), (False, True)):
        options = {"AlignCorners": aligned, "HalfPixelCenters": half}
        for dtype in ("float32", "int8", "uint8"):
            x = In((2, 4, 5, 3), dtype, scale=0.05 if dtype != "float32" else 0, zero=3)
            y = Out(dtype, x.scale, 3 if x.scale else 0)
            for size in ((9, 7), (3, 8)):
                yield case(
                    "RESIZE_BILINEAR", [x, i32(*size)], [y], "ResizeBilinearOptions", options
                )
                yield case(
                    "RESIZE_NEAREST_NEIGHBOR",
                    [x, i32(*size)],
                    [y],
                    "ResizeNearestNeighborOptions",
                    options,
                )


def quantization() -> Iterator[Case]:
    for dtype, zero in BYTES:
        yield case("QUANTIZE", [In((3, 50))], [Out(dtype, 0.02, zero)], "QuantizeOptions")
        yield case(
            "DEQUANTIZE", [In((3, 50), dtype, scale=0.02, zero=zero)], [F], "DequantizeOptions"
        )
        for other, shift in BYTES:
            x = In((3, 50), dtype, scale=0.03, zero=zero)
            yield case("QUANTIZE", [x], [Out(other, 0.02, shift)], "QuantizeOptions")
    yield case("QUANTIZE", [In((3, 50))], [Out("int16", 0.0002)], "QuantizeOptions")
    yield case(
        "QUANTIZE", [In((3, 50), "int16", scale=0.0003)], [Out("int8", 0.02, 3)], "QuantizeOptions"
    )
    yield case("DEQUANTIZE", [In((3, 50), "int16", scale=0.0003)], [F], "DequantizeOptions")


FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    each.__name__: each
    for each in (
        *(
            unary,
            unary_bytes,
            binary,
            binary_bytes,
            products,
            mixed_products,
            pools,
            reductions,
            movement,
        ),
        *(indexing, quantization, recurrent, detection),
    )
}
