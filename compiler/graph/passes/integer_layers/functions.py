"""Functions of one stored tensor of int8, however many operators they are made of: tables.

    Mul(x, Sigmoid(x)), Div(Mul(x, Clip(x + 3)), 6), Mul(x, dq(q(Sigmoid(x))))  ->  Lookup(x)
    Mul(x, c), PRelu(x, c), (x - mean) * factor + offset, of constants of channels  ->  Lookup(x)

Values are [256], or [C, 256] where channels have functions of their own.  Each operand is a
constant or a function of a stored tensor, which may itself be a function of another.  The table is
for the one tensor that all operands are functions of in the end.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dovetail.isa.frozen import frozen
from dovetail.runtime import host
from dovetail.runtime.errors import InputError

from ....dtypes import DType
from ...ir import Node
from ...operators.elementwise import Binary, BinaryFunction
from ...operators.integer.values import Add, Multiply
from .layouts import model_shape
from .state import State, UnrecognisedError
from .values import (
    F32,
    Array,
    Codes,
    Combination,
    Function,
    Integer,
    Real,
    RealConstant,
    int8_limits,
)

__all__ = ["code_points", "is_common", "recognise_function", "table_of"]

INT8 = np.arange(-128, 128).astype(np.int8)
BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


@frozen
class _Operand:
    """An operator's operand: a constant, [] or [C, 1], or the results of a function of ``tensor``.

    axis: the model's dimension of channels.  codes: the same, where it was dequantised just before.
    """

    values: Array
    tensor: Integer | None = None
    axis: int | None = None
    codes: Codes | None = None
    combination: Combination | None = None


def code_points(real: Real) -> Array:
    """Real numbers of the 256 int8 values: float32[256]."""
    return host.dequantize(INT8, float(real.scale), real.zero_point)


def is_common(state: State, a: Integer, b: Integer) -> bool:
    """True if two tensors are functions of one."""
    return _common(state, [a, b]) is not None


def recognise_function(state: State, node: Node) -> Function:
    """Results of an element-wise operator for each of the 256 values of one tensor.

    Raises UnrecognisedError when it is not a function of one tensor.
    """
    rank = state.source.types[node.output].rank
    operands = [_operand(state, name, rank) for name in node.inputs]
    tensor = _common(state, [each.tensor for each in operands if each.tensor])
    if tensor is None:
        raise UnrecognisedError("required functions of one dequantised int8 tensor")
    if state.source.types[node.output].shape != model_shape(state.builder, tensor):
        raise UnrecognisedError(
            "a constant of more dimensions than the tensor; required at most as many"
        )
    own = [_by_value_of(state, tensor, each) for each in operands]
    axes = {each.axis for each in own} - {None}
    if len(axes) > 1:
        raise UnrecognisedError(f"constants along axes {axes}; required one axis of channels")
    if not axes <= {1 if rank == 4 else rank - 1, tensor.permutation[-1]}:
        raise UnrecognisedError(f"a constant along axis {axes}; required that of the channels")
    (values,) = node.operator.evaluate([each.values for each in own])
    if values.dtype not in (DType.FLOAT32.numpy, np.bool_):
        raise UnrecognisedError(f"gives {values.dtype}; required float32")
    values = np.broadcast_to(values, (*values.shape[:-1], 256))
    return Function(tensor, values, next(iter(axes), None), _combination(node, own))


def table_of(function: Function, scale: np.float32, zero_point: int) -> Array:
    """The function's quantised results: int8[256], or int8[C, 256].

    Raises UnrecognisedError when one is not a number.
    """
    if function.values.dtype != F32:
        raise UnrecognisedError("cannot quantise bool; required float32")
    if function.combination is not None:
        return _combined(function.combination, scale, zero_point)
    try:
        return host.quantize(function.values, float(scale), zero_point)
    except InputError as error:
        raise UnrecognisedError(f"as a function of int8, {error}") from None


def _operand(state: State, name: str, rank: int) -> _Operand:
    constant = state.array(name)
    if constant is not None and constant.size > 1 and (constant == constant.flat[0]).all():
        # One number for all, as of a causal mask that hides nothing.
        return _Operand(constant.flat[0])
    if constant is not None:
        axis, shape = _channels(name, constant, rank)
        codes, stored = None, state.values.get(name)
        if isinstance(stored, RealConstant) and stored.values.dtype in BYTES:
            unsigned = stored.values.dtype == np.uint8
            numbers = (stored.values.astype(np.int16) - 128 * unsigned).astype(np.int8)
            numbers = np.broadcast_to(numbers.reshape(shape or (1,)), (*shape[:1], 256))
            zero = int(stored.zero_points[0]) - 128 * unsigned
            if stored.scales.size == 1:
                codes = Codes(numbers, stored.scales[0], zero, unsigned)
        return _Operand(constant.reshape(shape), None, axis, codes)
    value = state.value(name)
    match value:
        case Real(tensor=tensor, scale=scale, zero_point=zero):
            codes = Codes(INT8, scale, zero, tensor.unsigned)
            return _Operand(code_points(value), tensor, None, codes)
        case Function():
            return _Operand(value.values, value.tensor, value.axis, None, value.combination)
    raise UnrecognisedError(
        f"its input {name!r} is not quantised; required a convolution, a matrix product, "
        "a sum, or QuantizeLinear and DequantizeLinear in front of it"
    )


def _channels(name: str, constant: Array, rank: int) -> tuple[int | None, tuple[int, ...]]:
    """The dimension, of ``rank``, of the channels that a constant has numbers for; None for one
    number.  Its shape as an operand.
    """
    wide = [axis for axis, size in enumerate(constant.shape) if size != 1]
    if constant.ndim > rank or len(wide) > 1:
        raise UnrecognisedError(
            f"{name!r} is a constant of shape {list(constant.shape)}; required one number, or one "
            "for each channel"
        )
    return (rank - constant.ndim + wide[0], (constant.size, 1)) if wide else (None, ())


def _sources(state: State, tensor: Integer) -> Iterator[tuple[str, Array, int | None]]:
    """The tensors that one is a function of, itself first; its int8 values by theirs, and the
    dimension of channels.
    """
    name, values, axis = tensor.name, INT8, None
    yield name, values, axis
    while name in state.tables:
        name, table, own = state.tables[name]
        if axis is not None and own not in (None, axis):
            return
        values, axis = _composed(values, table), own if axis is None else axis
        yield name, values, axis


def _composed(outer: Array, inner: Array) -> Array:
    """The values of a function of a function, each [256] or [C, 256]; inner: int8."""
    places = inner.astype(np.int16) + 128
    if outer.ndim == 1:
        return outer[places]
    return np.take_along_axis(outer, np.broadcast_to(places, outer.shape).astype(np.int64), 1)


def _common(state: State, tensors: list[Integer]) -> Integer | None:
    """The nearest tensor that all are functions of, element by element; None when there is none."""
    if len({tensor.permutation for tensor in tensors}) != 1:
        return None
    known = [[name for name, *_ in _sources(state, tensor)] for tensor in tensors]
    for name in known[0]:
        if all(name in names for names in known[1:]):
            return replace(tensors[0], name=name)
    return None


def _by_value_of(state: State, tensor: Integer, operand: _Operand) -> _Operand:
    """An operand by the values of what its own tensor is a function of."""
    if operand.tensor is None:
        return operand
    known = {name: (values, axis) for name, values, axis in _sources(state, operand.tensor)}
    inner, axis = known[tensor.name]
    if None not in (axis, operand.axis) and axis != operand.axis:
        raise UnrecognisedError(f"functions of channels along axes {axis} and {operand.axis}")
    codes, combination = operand.codes, operand.combination
    if codes is not None:
        codes = _at(codes, inner)
    if combination is not None:
        a, b = _at(combination.a, inner), _at(combination.b, inner)
        combination = replace(combination, a=a, b=b)
    axis = operand.axis if axis is None else axis
    return _Operand(_composed(operand.values, inner), tensor, axis, codes, combination)


def _at(codes: Codes, inner: Array) -> Codes:
    return replace(codes, values=_composed(codes.values, inner))


def _combination(node: Node, operands: list[_Operand]) -> Combination | None:
    """The sum or product of dequantised operands that ``node`` is, or the clip of one."""
    operator = node.operator
    if not isinstance(operator, Binary):
        return None
    a, b = operands
    if operator.function in (BinaryFunction.ADD, BinaryFunction.MUL):
        if a.codes is None or b.codes is None or a.codes.unsigned != b.codes.unsigned:
            return None
        return Combination(operator.function, a.codes, b.codes)
    whole, limit = (a, b) if a.combination else (b, a)
    if whole.combination is None or limit.tensor is not None or limit.values.size > 1:
        return None
    number = float(limit.values.reshape(()))
    if operator.function is BinaryFunction.MAX:
        low, high = max(whole.combination.low, number), max(whole.combination.high, number)
    elif operator.function is BinaryFunction.MIN:
        low, high = min(whole.combination.low, number), min(whole.combination.high, number)
    else:
        return None
    return replace(whole.combination, low=low, high=high)


def _combined(pair: Combination, scale: np.float32, zero_point: int) -> Array:
    """As ONNX Runtime's QLinearAdd and QLinearMul compute it: int8[256], or int8[C, 256]."""
    a, b = pair.a, pair.b
    low, high = int8_limits(pair.low, pair.high, scale, zero_point)
    zeros = a.zero_point, b.zero_point, zero_point
    operator: Add | Multiply
    if pair.function is BinaryFunction.ADD:
        ratios = float(a.scale / scale), float(b.scale / scale)
        operator = Add(*ratios, *zeros, low, high, a.unsigned)
    else:
        ratio = float(a.scale * b.scale / scale)
        operator = Multiply(ratio, *zeros, low, high, a.unsigned)
    return operator.evaluate([a.values, b.values])[0]
