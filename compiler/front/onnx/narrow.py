"""Element types of fewer bits than the graph's: their numbers are carried as bits in uint8.

Floats of 8 and 4 bits are read through a table of their values; what is written to them is rounded
half to even, by integer arithmetic on the bits of float32.  Integers of 4 and 2 bits wrap.
Source: ONNX, "Float stored in 8 bits", "4 bit integer types"; ml_dtypes for the values of codes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx

from ...dtypes import DType
from ...graph.operators.elementwise import BinaryFunction, Bitcast, UnaryFunction
from ...graph.operators.indexing import Gather
from .build import (
    add,
    binary,
    cast,
    equal,
    less,
    maximum,
    minimum,
    mul,
    scalar,
    sub,
    unary,
    where,
)
from .context import ImportContext, Narrow, Tensor, with_narrow

__all__ = ["INTEGER_RANGES", "NARROW_TYPES", "decode", "encode"]

NARROW_TYPES: Mapping[int, Narrow] = {
    onnx.TensorProto.FLOAT8E4M3FN: Narrow.FLOAT8_E4M3FN,
    onnx.TensorProto.FLOAT8E4M3FNUZ: Narrow.FLOAT8_E4M3FNUZ,
    onnx.TensorProto.FLOAT8E5M2: Narrow.FLOAT8_E5M2,
    onnx.TensorProto.FLOAT8E5M2FNUZ: Narrow.FLOAT8_E5M2FNUZ,
    onnx.TensorProto.FLOAT8E8M0: Narrow.FLOAT8_E8M0FNU,
    onnx.TensorProto.FLOAT4E2M1: Narrow.FLOAT4_E2M1FN,
    onnx.TensorProto.INT4: Narrow.INT4,
    onnx.TensorProto.UINT4: Narrow.UINT4,
    onnx.TensorProto.INT2: Narrow.INT2,
    onnx.TensorProto.UINT2: Narrow.UINT2,
}

INTEGER_BITS = {Narrow.INT4: 4, Narrow.UINT4: 4, Narrow.INT2: 2, Narrow.UINT2: 2}
SIGNED = (Narrow.INT4, Narrow.INT2)
INTEGER_RANGES = {
    Narrow.INT4: (-8.0, 7.0),
    Narrow.UINT4: (0.0, 15.0),
    Narrow.INT2: (-2.0, 1.0),
    Narrow.UINT2: (0.0, 3.0),
}


@dataclass(frozen=True, slots=True)
class _Format:
    """largest: the code of the largest number.  beyond: of what is larger, when not saturated."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: int
    beyond: int
    nan: int
    signed_zero: bool = True


FORMATS = {
    Narrow.FLOAT8_E4M3FN: _Format(4, 3, 7, 0x7E, 0x7F, 0x7F),
    Narrow.FLOAT8_E4M3FNUZ: _Format(4, 3, 8, 0x7F, 0x80, 0x80, False),
    Narrow.FLOAT8_E5M2: _Format(5, 2, 15, 0x7B, 0x7C, 0x7E),
    Narrow.FLOAT8_E5M2FNUZ: _Format(5, 2, 16, 0x7F, 0x80, 0x80, False),
    Narrow.FLOAT4_E2M1FN: _Format(2, 1, 1, 0x7, 0x7, 0x8),
}


def decode(ctx: ImportContext, x: Tensor) -> Tensor:
    """The numbers that the bits stand for: int8, uint8 or float32; other tensors as they are."""
    if x.narrow is None:
        return x
    bits = Tensor(x.name, x.type)
    if x.narrow in INTEGER_BITS:
        if x.narrow not in SIGNED:
            return bits
        sign = 1 << (INTEGER_BITS[x.narrow] - 1)
        wide = cast(ctx, bits, DType.INT32)
        flipped = binary(ctx, BinaryFunction.XOR, wide, sign)
        return cast(ctx, sub(ctx, flipped, sign), DType.INT8)
    codes = np.arange(16 if x.narrow is Narrow.FLOAT4_E2M1FN else 256, dtype=np.uint8)
    table = codes.view(getattr(ml_dtypes, x.narrow.value)).astype(np.float32)
    return ctx.emit(Gather(0), ctx.constant(table), cast(ctx, bits, DType.INT64))


def encode(
    ctx: ImportContext, x: Tensor, narrow: Narrow, saturate: bool = True, mode: str = "up"
) -> Tensor:
    """The bits of ``x`` as ``narrow``; numbers beyond its range give its largest, or not a number.

    mode: how powers of two are rounded: up, down or nearest.
    """
    if narrow in INTEGER_BITS:
        mask = (1 << INTEGER_BITS[narrow]) - 1
        bits = binary(ctx, BinaryFunction.AND, cast(ctx, x, DType.INT32), mask)
    elif narrow is Narrow.FLOAT8_E8M0FNU:
        bits = _encode_power(ctx, cast(ctx, x, DType.FLOAT32), saturate, mode)
    else:
        bits = _encode_float(ctx, cast(ctx, x, DType.FLOAT32), FORMATS[narrow], saturate)
    return with_narrow(cast(ctx, bits, DType.UINT8), narrow)


def _encode_float(ctx: ImportContext, x: Tensor, form: _Format, saturate: bool) -> Tensor:
    size = unary(ctx, UnaryFunction.ABS, x)
    bits = ctx.emit(Bitcast(DType.INT32), size)
    dropped = 23 - form.mantissa_bits
    odd = binary(ctx, BinaryFunction.AND, _shifted(ctx, bits, dropped), 1)
    rounded = add(ctx, add(ctx, bits, odd), (1 << (dropped - 1)) - 1)
    rebias = (127 - form.bias) << form.mantissa_bits
    normal = sub(ctx, _shifted(ctx, rounded, dropped), rebias)
    steps = mul(ctx, minimum(ctx, size, 1.0), 2.0 ** (form.bias - 1 + form.mantissa_bits))
    small = cast(ctx, unary(ctx, UnaryFunction.RINT, steps), DType.INT32)
    code = where(ctx, less(ctx, size, 2.0 ** (1 - form.bias)), small, normal)
    over = less(ctx, scalar(ctx, form.largest, code), code)
    beyond = scalar(ctx, form.largest if saturate else form.beyond, code)
    code = where(ctx, over, beyond, code)
    sign = binary(ctx, BinaryFunction.AND, _shifted(ctx, ctx.emit(Bitcast(DType.INT32), x), 31), 1)
    sign = mul(ctx, sign, 1 << (form.exponent_bits + form.mantissa_bits))
    signed = binary(ctx, BinaryFunction.OR, code, sign)
    if not form.signed_zero:
        signed = where(ctx, equal(ctx, code, 0), code, signed)
    return where(ctx, unary(ctx, UnaryFunction.ISNAN, x), scalar(ctx, form.nan, code), signed)


def _encode_power(ctx: ImportContext, x: Tensor, saturate: bool, mode: str) -> Tensor:
    """A power of two by its biased exponent; 255 is not a number."""
    bits = ctx.emit(Bitcast(DType.INT32), unary(ctx, UnaryFunction.ABS, x))
    code = _shifted(ctx, bits, 23)
    rest = binary(ctx, BinaryFunction.AND, bits, (1 << 23) - 1)
    limit = {"up": 0, "down": (1 << 23) - 1, "nearest": (1 << 22) - 1}[mode]
    code = add(ctx, code, cast(ctx, less(ctx, scalar(ctx, limit, rest), rest), DType.INT32))
    highest = scalar(ctx, 254 if saturate else 255, code)
    code = minimum(ctx, maximum(ctx, code, 0), highest)
    wrong = unary(ctx, UnaryFunction.ISNAN, x)
    return where(ctx, wrong, scalar(ctx, 255, code), code)


def _shifted(ctx: ImportContext, x: Tensor, places: int) -> Tensor:
    return binary(ctx, BinaryFunction.SHR, x, places)
