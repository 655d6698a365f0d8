"""Converters of element-wise operators."""

from collections.abc import Mapping

from ...graph.operators.elementwise import BinaryFunction, UnaryFunction
from ..onnx_state import OnnxNode
from .build import binary, unary
from .context import Converter, ImportContext, Tensor, required

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
"""Those that are one operator of the graph."""


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


ELEMENTWISE: Mapping[str, Converter] = {
    **dict.fromkeys(UNARY, convert_unary),
    **dict.fromkeys(BINARY, convert_binary),
}
