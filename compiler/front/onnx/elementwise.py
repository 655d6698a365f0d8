"""Converters of element-wise operators."""

from collections.abc import Mapping

import numpy as np

from ...dtypes import DType
from ...graph.operators.elementwise import BinaryFunction, UnaryFunction
from .activations import ACTIVATIONS
from .build import (
    binary,
    cast,
    div,
    less,
    maximum,
    minimum,
    mul,
    reshape,
    scalar,
    unary,
    where,
)
from .context import Converter, ImportContext, Tensor, Value, optional, required
from .node import OnnxNode

__all__ = ["ELEMENTWISE"]

UNARY = {
    "Abs": UnaryFunction.ABS,
    "Acos": UnaryFunction.ACOS,
    "Acosh": UnaryFunction.ACOSH,
    "Asin": UnaryFunction.ASIN,
    "Asinh": UnaryFunction.ASINH,
    "Atan": UnaryFunction.ATAN,
    "Atanh": UnaryFunction.ATANH,
    "BitwiseNot": UnaryFunction.NOT,
    "Ceil": UnaryFunction.CEIL,
    "Cos": UnaryFunction.COS,
    "Cosh": UnaryFunction.COSH,
    "Erf": UnaryFunction.ERF,
    "Exp": UnaryFunction.EXP,
    "Floor": UnaryFunction.FLOOR,
    "IsNaN": UnaryFunction.ISNAN,
    "Log": UnaryFunction.LOG,
    "Neg": UnaryFunction.NEG,
    "Not": UnaryFunction.NOT,
    "Round": UnaryFunction.RINT,
    "Sin": UnaryFunction.SIN,
    "Sinh": UnaryFunction.SINH,
    "Sqrt": UnaryFunction.SQRT,
    "Tan": UnaryFunction.TAN,
    "Tanh": UnaryFunction.TANH,
}

BINARY = {
    "Add": BinaryFunction.ADD,
    "And": BinaryFunction.AND,
    "BitwiseAnd": BinaryFunction.AND,
    "BitwiseOr": BinaryFunction.OR,
    "BitwiseXor": BinaryFunction.XOR,
    "Div": BinaryFunction.DIV,
    "Equal": BinaryFunction.EQ,
    "Less": BinaryFunction.LT,
    "LessOrEqual": BinaryFunction.LE,
    "Mul": BinaryFunction.MUL,
    "Or": BinaryFunction.OR,
    "Sub": BinaryFunction.SUB,
    "Xor": BinaryFunction.XOR,
}
"""Operators that are one operator of the graph."""


def convert_unary(
    ctx: ImportContext, node: OnnxNode, inputs: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...]:
    """One function of each element."""
    (x,) = required(inputs, 1)
    return (unary(ctx, UNARY[node.kind], x),)


def convert_binary(
    ctx: ImportContext, node: OnnxNode, inputs: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...]:
    """One function of each pair of elements."""
    a, b = required(inputs, 2)
    return (binary(ctx, BINARY[node.kind], a, b),)


Inputs = tuple[Tensor | None, ...]


def convert_variadic(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Max, Min, Sum, Mean: one function of all operands, pair by pair."""
    operands = required(inputs, len(inputs))
    result = operands[0]
    for each in operands[1:]:
        result = binary(ctx, VARIADIC[node.kind], result, each)
    return (div(ctx, result, len(operands)) if node.kind == "Mean" else result,)


def convert_greater(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Greater and GreaterOrEqual: the operands change sides."""
    a, b = required(inputs, 2)
    function = BinaryFunction.LT if node.kind == "Greater" else BinaryFunction.LE
    return (binary(ctx, function, b, a),)


def convert_mod(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The sign of the divisor, or with ``fmod`` that of the dividend."""
    a, b = required(inputs, 2)
    function = BinaryFunction.REM if node.integer("fmod", 0) else BinaryFunction.MOD
    return (binary(ctx, function, a, b),)


def convert_pow(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The result has the base's dtype; mixed operands are computed in the wider one."""
    a, b = required(inputs, 2)
    if a.type.dtype == b.type.dtype:
        return (binary(ctx, BinaryFunction.POW, a, b),)
    wide = DType(str(np.result_type(a.type.dtype.numpy, b.type.dtype.numpy)))
    result = binary(ctx, BinaryFunction.POW, cast(ctx, a, wide), cast(ctx, b, wide))
    return (cast(ctx, result, a.type.dtype),)


def convert_shift(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """BitShift."""
    a, b = required(inputs, 2)
    left = node.text("direction", "") == "LEFT"
    return (binary(ctx, BinaryFunction.SHL if left else BinaryFunction.SHR, a, b),)


def convert_where(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """A choice element by element."""
    condition, a, b = required(inputs, 3)
    return (where(ctx, condition, a, b),)


def convert_isinf(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Infinity of both signs, or of one."""
    (x,) = required(inputs, 1)
    result = unary(ctx, UnaryFunction.ISINF, x)
    if not node.integer("detect_negative", 1):
        result = binary(ctx, BinaryFunction.AND, result, less(ctx, scalar(ctx, 0, x), x))
    if not node.integer("detect_positive", 1):
        result = binary(ctx, BinaryFunction.AND, result, less(ctx, x, 0))
    return (result,)


def convert_clip(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Bounds are attributes before opset 11, inputs since."""
    (x,) = required(inputs, 1)
    low, high = optional(inputs, 1), optional(inputs, 2)
    if ctx.opset < 11:
        attributes = node.attributes
        low = scalar(ctx, node.real("min", 0), x) if "min" in attributes else None
        high = scalar(ctx, node.real("max", 0), x) if "max" in attributes else None
    if low is not None:
        x = maximum(ctx, x, low)
    if high is not None:
        x = minimum(ctx, x, high)
    return (x,)


def convert_identity(
    ctx: ImportContext, node: OnnxNode, inputs: tuple[Value | None, ...]
) -> tuple[Value | None, ...]:
    """Its input, of any kind."""
    return (inputs[0],)


def convert_reciprocal(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """1 / x."""
    (x,) = required(inputs, 1)
    return (div(ctx, scalar(ctx, 1, x), x),)


def convert_sign(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """-1, 0 or 1; of NaN, NaN."""
    (x,) = required(inputs, 1)
    zero, one = scalar(ctx, 0, x), scalar(ctx, 1, x)
    rest = (
        where(ctx, unary(ctx, UnaryFunction.ISNAN, x), x, zero) if x.type.dtype.is_float else zero
    )
    above = where(ctx, less(ctx, zero, x), one, rest)
    if not x.type.dtype.is_signed:
        return (above,)
    return (where(ctx, less(ctx, x, zero), scalar(ctx, -1, x), above),)


def convert_activation(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Activations of one operand."""
    (x,) = required(inputs[:1], 1)
    return (ACTIVATIONS[node.kind](ctx, node, x),)


def convert_prelu(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """x, or slope times x below 0."""
    x, slope = required(inputs, 2)
    if ctx.opset < 7 and slope.type.rank == 1:
        slope = reshape(ctx, slope, (slope.type.shape[0], *(1,) * (x.type.rank - 2)))
    return (where(ctx, less(ctx, x, 0), mul(ctx, x, slope), x),)


VARIADIC = {
    "Max": BinaryFunction.MAX,
    "Mean": BinaryFunction.ADD,
    "Min": BinaryFunction.MIN,
    "Sum": BinaryFunction.ADD,
}

ELEMENTWISE: Mapping[str, Converter] = {
    **dict.fromkeys(UNARY, convert_unary),
    **dict.fromkeys(BINARY, convert_binary),
    **dict.fromkeys(VARIADIC, convert_variadic),
    **dict.fromkeys(ACTIVATIONS, convert_activation),
    "BitShift": convert_shift,
    "Clip": convert_clip,
    "Greater": convert_greater,
    "GreaterOrEqual": convert_greater,
    "Identity": convert_identity,
    "IsInf": convert_isinf,
    "Mod": convert_mod,
    "PRelu": convert_prelu,
    "Pow": convert_pow,
    "Reciprocal": convert_reciprocal,
    "Sign": convert_sign,
    "Where": convert_where,
}
