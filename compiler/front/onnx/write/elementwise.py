"""Operators that work element by element."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....dtypes import DType
from ....graph.operators.elementwise import Binary, Unary
from ....graph.operators.functions import COMPARISONS, BinaryFunction, UnaryFunction
from .writing import Writing

__all__ = ["WIDE", "widened", "write_binary", "write_multiply_add", "write_unary", "write_where"]

WIDE = {
    DType.BOOL: DType.INT32,
    DType.INT8: DType.INT32,
    DType.INT16: DType.INT32,
    DType.UINT8: DType.INT32,
    DType.UINT16: DType.INT32,
    DType.UINT32: DType.INT64,
    DType.UINT64: DType.INT64,
    DType.BFLOAT16: DType.FLOAT32,
    DType.FLOAT16: DType.FLOAT32,
}
"""The type in which others are computed: runtimes have code for few types of each operator."""

UNARY = {UnaryFunction.RINT: "Round", UnaryFunction.ISNAN: "IsNaN", UnaryFunction.ISINF: "IsInf"}
"""ONNX's names where they are not the function's own with a capital."""
BINARY = {
    BinaryFunction.ADD: "Add",
    BinaryFunction.SUB: "Sub",
    BinaryFunction.MUL: "Mul",
    BinaryFunction.DIV: "Div",
    BinaryFunction.POW: "Pow",
    BinaryFunction.MIN: "Min",
    BinaryFunction.MAX: "Max",
    BinaryFunction.LT: "Less",
    BinaryFunction.LE: "LessOrEqual",
    BinaryFunction.EQ: "Equal",
    BinaryFunction.NE: "Equal",
}
LOGICAL = {BinaryFunction.AND: "And", BinaryFunction.OR: "Or", BinaryFunction.XOR: "Xor"}
MOST_SHIFTED = 62
UNSIGNED = {
    DType.INT8: DType.UINT8,
    DType.INT16: DType.UINT16,
    DType.INT32: DType.UINT32,
    DType.INT64: DType.UINT64,
}


def widened(w: Writing, kind: str, inputs: Sequence[str], dtype: DType, **attributes: Any) -> str:
    """The result of ``kind``, computed in a type that runtimes have code for; of ``dtype``."""
    given = w.type(inputs[0]).dtype
    if given not in WIDE:
        return w.emit(kind, *inputs, **attributes)
    wide = [w.cast(name, WIDE[given]) for name in inputs]
    found = w.emit(kind, *wide, **attributes)
    return found if dtype == DType.BOOL else w.cast(found, dtype)


def write_unary(w: Writing, operator: Unary) -> str:
    """A function of one operand."""
    (x,) = w.node.inputs
    dtype = w.type(x).dtype
    if operator.function is UnaryFunction.NOT:
        return w.emit("Not" if dtype == DType.BOOL else "BitwiseNot", x)
    if operator.function is UnaryFunction.TRUNC:
        wide = w.cast(x, WIDE[dtype]) if dtype in WIDE else x
        whole = w.emit("Mul", w.emit("Sign", wide), w.emit("Floor", w.emit("Abs", wide)))
        return w.cast(whole, dtype) if dtype in WIDE else whole
    kind = UNARY.get(operator.function, operator.function.value.capitalize())
    return widened(w, kind, [x], w.type(w.node.output).dtype)


def write_binary(w: Writing, operator: Binary) -> str:
    """A function of two operands; integers wrap in ONNX too."""
    a, b = w.node.inputs
    dtype = w.type(a).dtype
    if operator.function in LOGICAL:
        kind = LOGICAL[operator.function]
        return w.emit(kind if dtype == DType.BOOL else f"Bitwise{kind}", a, b)
    if operator.function in (BinaryFunction.SHL, BinaryFunction.SHR):
        return _shift(w, operator.function, a, b)
    if operator.function in (BinaryFunction.MOD, BinaryFunction.REM):
        return _remainder(w, operator.function, a, b)
    if operator.function is BinaryFunction.FLOORDIV:
        return _floor_division(w, a, b)
    kind = BINARY[operator.function]
    if kind == "Equal" and dtype == DType.BOOL:
        found = w.emit(kind, a, b)
    else:
        bools = operator.function in COMPARISONS
        found = widened(w, kind, [a, b], DType.BOOL if bools else dtype)
    return w.emit("Not", found) if operator.function is BinaryFunction.NE else found


def _remainder(w: Writing, function: BinaryFunction, a: str, b: str) -> str:
    """ONNX has Python's sign for integers, C's for both."""
    dtype = w.type(a).dtype
    if function is BinaryFunction.REM:
        return widened(w, "Mod", [a, b], dtype, fmod=1)
    if not dtype.is_float:
        return widened(w, "Mod", [a, b], dtype)
    a, b = (w.cast(each, WIDE[dtype]) if dtype in WIDE else each for each in (a, b))
    rest = w.emit("Mod", a, b, fmod=1)
    zero = np.zeros((), WIDE.get(dtype, dtype).numpy)
    other = w.emit("Less", w.emit("Mul", rest, b), zero)
    found = w.emit("Where", other, w.emit("Add", rest, b), rest)
    return w.cast(found, dtype) if dtype in WIDE else found


def _floor_division(w: Writing, a: str, b: str) -> str:
    dtype = w.type(a).dtype
    a, b = (w.cast(each, WIDE[dtype]) if dtype in WIDE else each for each in (a, b))
    found = w.emit("Floor", w.emit("Div", a, b)) if dtype.is_float else _divided(w, a, b)
    return w.cast(found, dtype) if dtype in WIDE else found


def _divided(w: Writing, a: str, b: str) -> str:
    """The quotient of integers, rounded down."""
    return w.emit("Div", w.emit("Sub", a, w.emit("Mod", a, b)), b)


def _shift(w: Writing, function: BinaryFunction, a: str, b: str) -> str:
    """A shift of bits.  ONNX has it for unsigned ones only."""
    dtype = w.type(a).dtype
    left = function is BinaryFunction.SHL
    if not left and dtype in UNSIGNED:
        amount = w.value(b)
        if amount is None or amount.min(initial=0) < 0 or amount.max(initial=0) > MOST_SHIFTED:
            raise w.unsupported(f"shift to the right of {dtype} by what is computed")
        divisor = w.constant(np.asarray(1 << amount.astype(np.int64)))
        wide = w.cast(a, DType.INT64) if dtype != DType.INT64 else a
        found = _divided(w, wide, divisor)
        return w.cast(found, dtype) if dtype != DType.INT64 else found
    own = UNSIGNED.get(dtype, dtype)
    a, b = (each if own == dtype else w.cast(each, own) for each in (a, b))
    found = w.emit("BitShift", a, b, direction="LEFT" if left else "RIGHT")
    return found if own == dtype else w.cast(found, dtype)


def write_where(w: Writing, operator: object) -> str:
    """One of two, as a condition says."""
    condition, a, b = w.node.inputs
    dtype = w.type(a).dtype
    if dtype not in WIDE or dtype == DType.UINT8:
        return w.emit("Where", condition, a, b)
    wide = (w.cast(each, WIDE[dtype]) for each in (a, b))
    return w.cast(w.emit("Where", condition, *wide), dtype)


def write_multiply_add(w: Writing, operator: object) -> str:
    """A product and a sum, which ONNX rounds one after the other."""
    a, b, c = w.node.inputs
    return w.emit("Add", w.emit("Mul", a, b), c)
