"""Converters of element-wise operators."""

from collections.abc import Mapping

import numpy as np

from ...dtypes import DType
from ...graph.operators.elementwise import BinaryFunction, UnaryFunction
from .activations import ACTIVATIONS
from .context import Converter, ImportContext
from .inputs import Inputs, optional_term, scalar, terms
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


def convert_unary(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """One function of each element."""
    (x,) = terms(ctx, inputs, 1)
    return (x.unary(UNARY[node.kind]).tensor,)


def convert_binary(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """One function of each pair of elements."""
    a, b = terms(ctx, inputs, 2)
    return (a.binary(BINARY[node.kind], b).tensor,)


def convert_variadic(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Max, Min, Sum, Mean: one function of all operands, pair by pair."""
    result, *rest = operands = terms(ctx, inputs, len(inputs))
    for each in rest:
        result = result.binary(VARIADIC[node.kind], each)
    return ((result / len(operands) if node.kind == "Mean" else result).tensor,)


def convert_greater(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Greater and GreaterOrEqual: the operands change sides."""
    a, b = terms(ctx, inputs, 2)
    return ((b < a if node.kind == "Greater" else b <= a).tensor,)


def convert_mod(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The sign of the divisor, or with ``fmod`` that of the dividend."""
    a, b = terms(ctx, inputs, 2)
    function = BinaryFunction.REM if node.integer("fmod", 0) else BinaryFunction.MOD
    return (a.binary(function, b).tensor,)


def convert_pow(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The result has the base's dtype; mixed operands are computed in the wider one."""
    a, b = terms(ctx, inputs, 2)
    if a.dtype == b.dtype:
        return (a.power(b).tensor,)
    wide = DType(str(np.result_type(a.dtype.numpy, b.dtype.numpy)))
    return (a.cast(wide).power(b.cast(wide)).cast(a.dtype).tensor,)


def convert_shift(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """BitShift."""
    a, b = terms(ctx, inputs, 2)
    return ((a << b if node.text("direction", "") == "LEFT" else a >> b).tensor,)


def convert_where(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """A choice element by element."""
    condition, a, b = terms(ctx, inputs, 3)
    return (condition.where(a, b, a.dtype).tensor,)


def convert_isinf(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Infinity of both signs, or of one."""
    (x,) = terms(ctx, inputs, 1)
    result = x.unary(UnaryFunction.ISINF)
    if not node.integer("detect_negative", 1):
        result = result & (x > 0)
    if not node.integer("detect_positive", 1):
        result = result & (x < 0)
    return (result.tensor,)


def convert_clip(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Bounds are attributes before opset 11, inputs since."""
    (x,) = terms(ctx, inputs, 1)
    low, high = optional_term(ctx, inputs, 1), optional_term(ctx, inputs, 2)
    if ctx.opset < 11:
        attributes = node.attributes
        low = scalar(ctx, node.real("min", 0), x.dtype) if "min" in attributes else None
        high = scalar(ctx, node.real("max", 0), x.dtype) if "max" in attributes else None
    if low is not None:
        x = x.maximum(low)
    if high is not None:
        x = x.minimum(high)
    return (x.tensor,)


def convert_reciprocal(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """1 / x."""
    (x,) = terms(ctx, inputs, 1)
    return ((1 / x).tensor,)


def convert_sign(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """-1, 0 or 1; of NaN, NaN."""
    (x,) = terms(ctx, inputs, 1)
    zero, one = x.constant(0, x.dtype), x.constant(1, x.dtype)
    rest = x.unary(UnaryFunction.ISNAN).where(x, zero, x.dtype) if x.dtype.is_float else zero
    above = (zero < x).where(one, rest, x.dtype)
    if not x.dtype.is_signed:
        return (above.tensor,)
    return ((x < zero).where(-1, above, x.dtype).tensor,)


def convert_activation(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Activations of one operand."""
    (x,) = terms(ctx, inputs[:1], 1)
    return (ACTIVATIONS[node.kind](node, x).tensor,)


def convert_prelu(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """x, or slope times x below 0."""
    x, slope = terms(ctx, inputs, 2)
    if ctx.opset < 7 and slope.rank == 1:
        slope = slope.reshape(slope.shape[0], *(1,) * (x.rank - 2))
    return ((x < 0).where(x * slope, x, x.dtype).tensor,)


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
    "Identity": lambda ctx, node, inputs: (inputs[0],),
    "IsInf": convert_isinf,
    "Mod": convert_mod,
    "PRelu": convert_prelu,
    "Pow": convert_pow,
    "Reciprocal": convert_reciprocal,
    "Sign": convert_sign,
    "Where": convert_where,
}
