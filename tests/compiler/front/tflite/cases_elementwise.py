"""Models of functions element by element."""

from collections.abc import Iterator

from .case import BYTES, IMAGE, Case, Const, F, In, Out, case, floats, i32, rng

__all__ = ["binary", "binary_bytes", "quantization", "unary", "unary_bytes"]


UNARY = (
    *("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOGISTIC", "NEG", "RELU"),
    *("RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "SIGN", "SIN", "SQUARE", "TANH"),
    "ZEROS_LIKE",
)
CASTS = (
    *(("float32", "int32"), ("int32", "float32"), ("float32", "bool"), ("uint8", "int64")),
    *(("int64", "int32"), ("bool", "float32"), ("float32", "int8")),
)


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
        x = In((3, 90), dtype, scale=0.05, zero=zero)
        low = -128 if dtype == "int8" else 0
        for kind in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"):
            yield case(kind, [x], [Out(dtype, 0.04, zero + 2)])
        yield case("LOGISTIC", [x], [Out(dtype, 1 / 256, low)])
        yield case("TANH", [x], [Out(dtype, 1 / 128, low + 128)])
        yield case("HARD_SWISH", [x], [Out(dtype, 0.03, zero)])
        yield case("LEAKY_RELU", [x], [Out(dtype, 0.04, zero)], "LeakyReluOptions", {"Alpha": 0.3})
        alpha = Const(rng().integers(low, low + 255, (1, 90)).astype(dtype), (0.01,), (zero,))
        yield case("PRELU", [x, alpha], [Out(dtype, 0.06, zero)])
        for approximate in (False, True):
            yield case(
                "GELU", [x], [Out(dtype, 0.04, zero)], "GeluOptions", {"Approximate": approximate}
            )
    x = In((3, 90), "int8", scale=0.02, zero=3)
    yield case("ELU", [x], [Out("int8", 0.03, -20)])
    yield case("ABS", [x], [Out("int8", 0.015, -128)], version=2)
    yield case("EXP", [x], [Out("int8", 0.06, -128)], version=2)
    yield case("SQRT", [In((3, 90), "int8", 3, 127, 0.02, 3)], [Out("int8", 0.01, -128)])


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


def quantization() -> Iterator[Case]:
    for dtype, zero in BYTES:
        yield case("QUANTIZE", [In((3, 90))], [Out(dtype, 0.02, zero)], "QuantizeOptions")
        yield case(
            "DEQUANTIZE", [In((3, 90), dtype, scale=0.02, zero=zero)], [F], "DequantizeOptions"
        )
        for other, shift in BYTES:
            x = In((3, 90), dtype, scale=0.03, zero=zero)
            yield case("QUANTIZE", [x], [Out(other, 0.02, shift)], "QuantizeOptions")
    yield case("QUANTIZE", [In((3, 90))], [Out("int16", 0.0002)], "QuantizeOptions")
    yield case(
        "QUANTIZE", [In((3, 90), "int16", scale=0.0003)], [Out("int8", 0.02, 3)], "QuantizeOptions"
    )
    yield case("DEQUANTIZE", [In((3, 90), "int16", scale=0.0003)], [F], "DequantizeOptions")
    yield case("DEQUANTIZE", [In((3, 90), "float16")], [F], "DequantizeOptions")
