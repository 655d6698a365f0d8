"""Models of functions of int16, and of functions of bytes with arithmetic of their own."""

from collections.abc import Iterator
from typing import Any

from .case import BYTES, Case, In, Out, case, i32

__all__ = ["functions_of_bytes", "functions_of_int16", "products_of_integers"]

SIXTEEN = {"scale": 0.0003}
REDUCER = {"KeepDims": True}
POOL = {"FilterWidth": 2, "FilterHeight": 3, "StrideW": 1, "StrideH": 1, "Padding": 0}


def _sixteen(*shape: int, **limits: Any) -> In:
    return In(shape, "int16", **limits, **SIXTEEN)


def functions_of_int16() -> Iterator[Case]:
    """Also of values that are no tensor's largest: all 65,536 are in the tables anyhow."""
    x, out = _sixteen(3, 300), Out("int16", 0.0004)
    for kind in ("ABS", "EXP", "RELU", "RELU6"):
        yield case(kind, [x], [out])
    for kind in ("LOG", "RSQRT", "SQRT"):
        yield case(kind, [_sixteen(3, 300, low=1, high=32767)], [out])
    for kind in ("LOGISTIC", "TANH"):
        yield case(kind, [x], [Out("int16", 1 / 32768)])
        far = In((3, 300), "int16", 5_000, 13_000, scale=0.0009)  # where samples end
        yield case(kind, [far], [Out("int16", 1 / 32768)])
    for approximate in (False, True):
        yield case("GELU", [x], [out], "GeluOptions", {"Approximate": approximate})
    yield case("LEAKY_RELU", [x], [out], "LeakyReluOptions", {"Alpha": 0.3})
    for beta in (1.0, 0.4):
        yield case("SOFTMAX", [x], [Out("int16", 1 / 32768)], "SoftmaxOptions", {"Beta": beta})
    for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield case(kind, [_sixteen(1, 5, 6, 4)], [Out("int16", 0.0003)], "Pool2DOptions", POOL)
    operands: list[Any] = [_sixteen(2, 3, 8), _sixteen(2, 8, 5)]
    yield case("BATCH_MATMUL", operands, [Out("int16", 0.002)], "BatchMatMulOptions")
    yield case("DIV", [_large("int16", 0), _divisor("int16", 0)], [Out("int16", 0.0004)])


def _large(dtype: str, zero: int) -> In:
    """Far from 0, whose quotients are shifted by more bits than LiteRT's integers have."""
    info = (dtype, zero + 20, 32767) if dtype == "int16" else (dtype, zero + 20, zero + 120)
    return In((3, 90), *info, scale=0.05, zero=zero)


def _divisor(dtype: str, zero: int) -> In:
    return In((3, 90), dtype, zero + 3, zero + 110, scale=0.04, zero=zero)


def functions_of_bytes() -> Iterator[Case]:
    x = In((3, 50), "int8", 4, 127, scale=0.02, zero=3)
    yield case("LOG", [x], [Out("int8", 0.03, 20)], version=2)
    yield case("RSQRT", [x], [Out("int8", 0.05, -90)], version=2)
    yield case("NEG", [In((3, 50), "int8", scale=0.02)], [Out("int8", 0.02)])
    for dtype, zero in BYTES:
        low = -128 if dtype == "int8" else 0
        x = In((4, 30), dtype, scale=0.05, zero=zero)
        yield case("L2_NORMALIZATION", [x], [Out(dtype, 1 / 128, low + 128)], "L2NormOptions")
        yield case("LOG_SOFTMAX", [x], [Out(dtype, 1 / 16, low + 255)])
        yield case("DIV", [_large(dtype, zero - 3), _divisor(dtype, zero)], [Out(dtype, 0.1, zero)])


def products_of_integers() -> Iterator[Case]:
    for dtype, scale, zero in (("int8", 0.05, 3), ("int16", 0.0003, 0)):
        for axes in ((1,), (1, 2)):
            for factor in (1.0, 1.6):
                x = In((2, 3, 4, 5), dtype, scale=scale, zero=zero)
                out = Out(dtype, scale * factor, zero)
                yield case("REDUCE_PROD", [x, i32(*axes)], [out], "ReducerOptions", REDUCER)
