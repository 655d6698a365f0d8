"""Converters of QONNX: numbers of any bits, as Brevitas, QKeras and FINN write them.

A node stands for quantising and dequantising at once.  Where integers of at most 16 bits hold its
numbers, it becomes these two, with a clip to its bits between them, so that passes find integer
layers as in any quantised model.

Source: the QONNX repository's ``docs/qonnx-custom-ops`` and the formulas of its ``custom_op``.
"""

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.formulas import Term
from ...graph.ir import Array
from ...graph.operators.quantization import DequantizeLinear, QuantizeLinear
from .context import Converter, ImportContext
from .inputs import Inputs, finite_term
from .node import OnnxNode

__all__ = ["QONNX"]

DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
"""Domain of the operators, and the names that it had before."""

NEAREST = ("ROUND", "HALF_EVEN")
MOST_BITS = 32
FLOAT = DType.FLOAT32
SMALL = 2.0**-40
"""Step of the bytes that signs are told by."""


@frozen
class _Range:
    """Least and greatest integer of ``bits`` bits."""

    low: int
    high: int
    bits: int
    signed: bool

    @property
    def dtype(self) -> DType:
        """The integers that hold the range in a run."""
        name = f"int{8 if self.bits <= 8 else 16}"
        return DType(name if self.signed else f"u{name}")


def convert_quant(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``(round(clip(x / scale + zero_point)) - zero_point) * scale``.

    Half steps go to the even integer before the zero point is added, as QuantizeLinear does it; the
    formula adds it first, which differs where it is odd.
    """
    x, scale, zero = _operands(context, node, inputs, 3)
    mode = node.text("rounding_mode", "ROUND").upper()
    held = _range(node, _number(context, node, inputs, 3))
    if held.bits == 1 and held.signed:
        return (_signs(context, x / scale + zero, scale).tensor,)
    offset = _offset(context, zero, held)
    axis = _axis(scale, x)
    if mode in NEAREST and offset is not None and axis is not None:
        listed = scale.reshape(-1) if scale.tensor.type.elements > 1 else scale.reshape()
        if held.bits <= 16:
            return (_stored(x, listed, offset, held, axis).tensor,)
        if context.known(x.tensor):
            return (_constant(context, x, scale, listed, held, axis).tensor,)
    steps = (x / scale + zero).clip(float(held.low), float(held.high))
    return (((_rounded(node, steps, mode) - zero) * scale).tensor,)


def convert_bipolar(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``scale`` where ``x >= 0``, else ``-scale``."""
    x, scale = _operands(context, node, inputs, 2)
    return (_signs(context, x, scale).tensor,)


def convert_trunc(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """An integer's upper bits: rounded, divided by a power of two, rounded by ``rounding_mode``.

    Version 1 has five inputs and drops the bits that the widths differ by; version 2 has six, and
    the scales' ratio says how many.
    """
    x, scale, zero = _operands(context, node, inputs, 3)
    mode = node.text("rounding_mode", "FLOOR").upper()
    steps = (x / scale + zero).rint()
    if len(node.inputs) < 6:
        wide, narrow = (_range(node, _number(context, node, inputs, place)) for place in (3, 4))
        steps = steps / 2.0 ** (wide.bits - narrow.bits)
        return (((_rounded(node, steps, mode) - zero) * scale).tensor,)
    result = _positive(context, node, inputs, 4)
    held = _range(node, _number(context, node, inputs, 5))
    power = 2.0 ** np.rint(np.log2(_value(context, node, result) / _value(context, node, scale)))
    factor = x.constant(power, FLOAT)
    steps = (steps / factor).clip(float(held.low), float(held.high))
    return (((_rounded(node, steps, mode) - zero / factor) * result).tensor,)


def _operands(
    context: ImportContext, node: OnnxNode, inputs: Inputs, count: int
) -> tuple[Term, ...]:
    """A tensor, its scale, and perhaps its zero point, in float32."""
    x, *zero = (
        finite_term(context, node, inputs, place).cast(FLOAT)
        for place in range(count)
        if place != 1
    )
    return x, _positive(context, node, inputs, 1), *zero


def _positive(context: ImportContext, node: OnnxNode, inputs: Inputs, place: int) -> Term:
    """A scale.  Raises ModelError for a constant that is not above 0."""
    scale = finite_term(context, node, inputs, place).cast(FLOAT)
    if context.known(scale.tensor) and (wrong := _least(context.value(scale.tensor))) <= 0:
        raise ModelError(
            f"{node}: scale {wrong:.3g} in {node.inputs[place]!r}; required numbers above 0"
        )
    return scale


def _least(values: Array) -> float:
    return float(values.min(initial=np.inf))


def _signs(context: ImportContext, x: Term, scale: Term) -> Term:
    """Signs as integers of -1 and 1, dequantised.

    A run compares with 0 by bytes of steps so small that each number but 0 has its sign in them.
    """
    axis = _axis(scale, x)
    if axis is None:
        return (x >= 0.0).where(1.0, -1.0, FLOAT) * scale
    bits = _Range(-1, 0, 8, True)
    if context.known(x.tensor):
        signs = (x >= 0.0).where(1.0, -1.0, FLOAT)
    else:
        signs = _stored(x, x.constant(SMALL, FLOAT), 0, bits, 0) * (2 / SMALL) + 1.0
    listed = scale.reshape(-1) if scale.tensor.type.elements > 1 else scale.reshape()
    ones = _codes(signs, x.constant(1.0, FLOAT), 0, _Range(-1, 1, 8, True), 0)
    return _dequantized(ones, listed, 0, axis)


def _stored(x: Term, scale: Term, zero: int, held: _Range, axis: int) -> Term:
    """``x`` as integers of the range, dequantised."""
    return _dequantized(_codes(x, scale, zero, held, axis), scale, zero, axis)


def _codes(x: Term, scale: Term, zero: int, held: _Range, axis: int) -> Term:
    """``x`` as integers of the range."""
    zeros = x.constant(np.full(scale.shape, zero), held.dtype)
    emitted = x.context.emit(QuantizeLinear(axis), x.tensor, scale.tensor, zeros.tensor)
    codes, (least, most) = Term(x.context, emitted), _limits(held.dtype)
    if held.low > least:
        codes = codes.maximum(codes.constant(held.low, held.dtype))
    return codes.minimum(codes.constant(held.high, held.dtype)) if held.high < most else codes


def _dequantized(codes: Term, scale: Term, zero: int, axis: int) -> Term:
    zeros = codes.constant(np.full(scale.shape, zero), codes.dtype)
    operands = codes.tensor, scale.tensor, zeros.tensor
    return Term(codes.context, codes.context.emit(DequantizeLinear(axis), *operands))


def _constant(
    context: ImportContext, x: Term, scale: Term, listed: Term, held: _Range, axis: int
) -> Term:
    """A constant of more than 16 bits, as biases are, in int32 about 0."""
    steps = context.value(x.tensor).astype(np.float64) / context.value(scale.tensor)
    codes = np.rint(np.clip(steps, held.low, held.high)).clip(*_limits(DType.INT32))
    return _dequantized(Term(context, context.constant(codes.astype(np.int32))), listed, 0, axis)


def _limits(dtype: DType) -> tuple[int, int]:
    limits = np.iinfo(str(dtype))
    return int(limits.min), int(limits.max)


def _axis(scale: Term, x: Term) -> int | None:
    """The dimension that a list of scales belongs to, 0 for one scale; None of a list of several
    dimensions.
    """
    many = [place - scale.rank for place, size in enumerate(scale.shape) if size > 1]
    if not many:
        return 0
    return x.rank + many[0] if len(many) == 1 and scale.rank <= x.rank else None


def _offset(context: ImportContext, zero: Term, held: _Range) -> int | None:
    """The zero point, if it is one constant integer that the range's type holds; of constants of
    more than 16 bits, 0.
    """
    if not context.known(zero.tensor):
        return None
    found = np.unique(context.value(zero.tensor))
    low, high = _limits(held.dtype) if held.bits <= 16 else (0, 0)
    whole = found.size == 1 and found[0] == np.rint(found[0]) and low <= found[0] <= high
    return int(found[0]) if whole else None


def _rounded(node: OnnxNode, x: Term, mode: str) -> Term:
    """Raises UnsupportedOperatorError for a mode that QONNX does not have."""
    sign = (x < 0.0).where(-1.0, 1.0, FLOAT)
    match mode:
        case "ROUND" | "HALF_EVEN":
            return x.rint()
        case "CEIL":
            return x.ceil()
        case "FLOOR":
            return x.floor()
        case "UP":
            return sign * x.abs().ceil()
        case "DOWN":
            return sign * x.abs().floor()
        case "HALF_UP":
            return sign * (x.abs() + 0.5).floor()
        case "HALF_DOWN":
            return sign * (x.abs() - 0.5).ceil()
    raise UnsupportedOperatorError(
        f"{node}: rounding_mode {mode!r}; required ROUND, HALF_EVEN, CEIL, FLOOR, UP, DOWN, "
        "HALF_UP or HALF_DOWN"
    )


def _range(node: OnnxNode, bits: int) -> _Range:
    if not 1 <= bits <= MOST_BITS:
        raise ModelError(f"{node}: {bits} bits; required 1 to {MOST_BITS}")
    signed, narrow = bool(node.integer("signed", 1)), bool(node.integer("narrow", 0))
    if signed:
        return _Range(-(1 << bits - 1) + narrow, (1 << bits - 1) - 1, bits, signed)
    return _Range(0, (1 << bits) - 1 - narrow, bits, signed)


def _value(context: ImportContext, node: OnnxNode, given: Term) -> Array:
    if not context.known(given.tensor):
        raise UnsupportedOperatorError(f"{node}: a scale that a run computes; required a constant")
    return context.value(given.tensor)


def _number(context: ImportContext, node: OnnxNode, inputs: Inputs, place: int) -> int:
    """A width in bits, a constant.

    Raises UnsupportedOperatorError for one that a run computes, several different ones or a
    fraction.
    """
    given = finite_term(context, node, inputs, place)
    name = node.inputs[place]
    if not context.known(given.tensor):
        raise UnsupportedOperatorError(
            f"{node}: its number of bits {name!r} is computed; required a constant"
        )
    found = np.unique(context.value(given.tensor))
    if found.size != 1 or found[0] != np.rint(found[0]):
        raise UnsupportedOperatorError(
            f"{node}: bits {found[:4].tolist()} in {name!r}; required one whole number"
        )
    return int(found[0])


OPERATORS: dict[str, Converter] = {
    "BipolarQuant": convert_bipolar,
    "IntQuant": convert_quant,
    "Quant": convert_quant,
    "Trunc": convert_trunc,
}

QONNX: dict[str, Converter] = {
    f"{domain}.{kind}": converter for domain in DOMAINS for kind, converter in OPERATORS.items()
}
