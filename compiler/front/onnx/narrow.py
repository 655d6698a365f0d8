"""Element types of fewer bits than the graph's: their numbers are carried as bits in uint8.

Floats of 8 and 4 bits are read through a table of their values; what is written to them is rounded
half to even, by integer arithmetic on the bits of float32.  Integers of 4 and 2 bits wrap.
Source: ONNX, "Float stored in 8 bits", "4 bit integer types"; ml_dtypes for the values of codes.
"""

from collections.abc import Mapping

import ml_dtypes
import numpy as np
import onnx

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...graph.formulas import Term
from ...graph.operators.elementwise import BinaryFunction, Bitcast, UnaryFunction
from .context import Narrow, Tensor, with_narrow

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


@frozen
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


def decode(x: Term) -> Term:
    """The numbers that the bits stand for: int8, uint8 or float32; other tensors as they are."""
    narrow = x.tensor.narrow
    if narrow is None:
        return x
    bits = Term(x.context, Tensor(x.tensor.name, x.tensor.type))
    if narrow in INTEGER_BITS:
        if narrow not in SIGNED:
            return bits
        sign = 1 << (INTEGER_BITS[narrow] - 1)
        return (bits.cast(DType.INT32).binary(BinaryFunction.XOR, sign) - sign).cast(DType.INT8)
    codes = np.arange(16 if narrow is Narrow.FLOAT4_E2M1FN else 256, dtype=np.uint8)
    table = codes.view(getattr(ml_dtypes, narrow.value)).astype(np.float32)
    return x.constant(table, DType.FLOAT32).take(bits.cast(DType.INT64), 0)


def encode(x: Term, narrow: Narrow, saturate: bool = True, mode: str = "up") -> Term:
    """The bits of ``x`` as ``narrow``; numbers beyond its range give its largest, or not a number.

    mode: how powers of two are rounded: up, down or nearest.
    """
    if narrow in INTEGER_BITS:
        bits = x.cast(DType.INT32) & (1 << INTEGER_BITS[narrow]) - 1
    elif narrow is Narrow.FLOAT8_E8M0FNU:
        bits = _encode_power(x.cast(DType.FLOAT32), saturate, mode)
    else:
        bits = _encode_float(x.cast(DType.FLOAT32), FORMATS[narrow], saturate)
    return Term(x.context, with_narrow(bits.cast(DType.UINT8).tensor, narrow))


def _encode_float(x: Term, form: _Format, saturate: bool) -> Term:
    size = x.abs()
    bits = _bits(size)
    dropped = 23 - form.mantissa_bits
    odd = (bits >> dropped) & 1
    rounded = bits + odd + ((1 << (dropped - 1)) - 1)
    normal = (rounded >> dropped) - ((127 - form.bias) << form.mantissa_bits)
    steps = size.minimum(1.0) * 2.0 ** (form.bias - 1 + form.mantissa_bits)
    small = steps.rint().cast(DType.INT32)
    code = (size < 2.0 ** (1 - form.bias)).where(small, normal, DType.INT32)
    over = code > form.largest
    code = over.where(form.largest if saturate else form.beyond, code, DType.INT32)
    sign = ((_bits(x) >> 31) & 1) * (1 << (form.exponent_bits + form.mantissa_bits))
    signed = code | sign
    if not form.signed_zero:
        signed = code.equal(0).where(code, signed, DType.INT32)
    return x.unary(UnaryFunction.ISNAN).where(form.nan, signed, DType.INT32)


def _encode_power(x: Term, saturate: bool, mode: str) -> Term:
    """A power of two by its biased exponent; 255 is not a number."""
    bits = _bits(x.abs())
    code = bits >> 23
    rest = bits & (1 << 23) - 1
    limit = {"up": 0, "down": (1 << 23) - 1, "nearest": (1 << 22) - 1}[mode]
    code = code + (rest > limit).cast(DType.INT32)
    highest = code.lift(254 if saturate else 255)
    code = code.maximum(0).minimum(highest)
    return x.unary(UnaryFunction.ISNAN).where(255, code, DType.INT32)


def _bits(x: Term) -> Term:
    return Term(x.context, x.context.emit(Bitcast(DType.INT32), x.tensor))
