"""Functions of one stored tensor of int8, however many operators they are made of: tables.

    Mul(x, Sigmoid(x)), Div(Mul(x, Clip(x + 3)), 6), Mul(x, dq(q(Sigmoid(x))))  ->  Lookup(x)

Each operand is a constant or a function of a stored tensor, and this one perhaps a function of
another: what both are functions of in the end is the one that the table is for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dovetail.runtime import host
from dovetail.runtime.errors import InputError

from ....dtypes import DType
from ...ir import Node
from ...operators.elementwise import Binary, BinaryFunction
from ...operators.integer.values import Add, Multiply
from .layouts import model_shape
from .state import State, UnrecognisedError
from .values import F32, Array, Codes, Combination, Function, Integer, Real, RealConstant

__all__ = ["code_points", "is_common", "recognise_function", "table_of"]

INT8 = np.arange(-128, 128).astype(np.int8)
BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


@dataclass(frozen=True, slots=True)
class _Operand:
    """What an operator reads: a constant, or the results of a function of ``tensor``.

    codes: the same, where it was dequantised just before.
    """

    values: Array
    tensor: Integer | None = None
    codes: Codes | None = None
    combination: Combination | None = None


def code_points(real: Real) -> Array:
    """What each of the 256 int8 values stands for: float32[256]."""
    return host.dequantize(INT8, float(real.scale), real.zero_point)


def is_common(state: State, a: Integer, b: Integer) -> bool:
    """Whether two tensors are functions of one."""
    return _common(state, [a, b]) is not None


def recognise_function(state: State, node: Node) -> Function:
    """What an element-wise operator gives for each of the 256 values of one tensor.

    Raises UnrecognisedError when it is no function of one tensor.
    """
    operands = [_operand(state, name) for name in node.inputs]
    tensor = _common(state, [each.tensor for each in operands if each.tensor])
    if tensor is None:
        raise UnrecognisedError("required functions of one dequantised int8 tensor")
    if state.source.types[node.output].shape != model_shape(state.builder, tensor):
        raise UnrecognisedError("a constant of more dimensions than the tensor; required at most")
    own = [_by_value_of(state, tensor, each) for each in operands]
    (values,) = node.operator.evaluate([each.values for each in own])
    if values.dtype not in (DType.FLOAT32.numpy, np.bool_):
        raise UnrecognisedError(f"gives {values.dtype}; required float32")
    return Function(tensor, np.broadcast_to(values, (256,)), _combination(node, own))


def table_of(function: Function, scale: np.float32, zero_point: int) -> Array:
    """The function's quantised results: int8[256].

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


def _operand(state: State, name: str) -> _Operand:
    constant = state.array(name)
    if constant is not None:
        if constant.size != 1:
            raise UnrecognisedError(
                f"{name!r} is a constant of shape {list(constant.shape)}; required one number"
            )
        codes = None
        stored = state.values.get(name)
        if isinstance(stored, RealConstant) and stored.values.dtype in BYTES:
            unsigned = stored.values.dtype == np.uint8
            number = stored.values.reshape(1).astype(np.int16) - 128 * unsigned
            zero = int(stored.zero_points[0]) - 128 * unsigned
            codes = Codes(np.repeat(number.astype(np.int8), 256), stored.scales[0], zero, unsigned)
        return _Operand(constant.reshape(()), codes=codes)
    value = state.value(name)
    match value:
        case Real(tensor=tensor, scale=scale, zero_point=zero):
            codes = Codes(INT8, scale, zero, tensor.unsigned)
            return _Operand(code_points(value), tensor, codes)
        case Function():
            return _Operand(value.values, value.tensor, None, value.combination)
    raise UnrecognisedError(
        f"its input {name!r} is not quantised; required a convolution, a matrix product, "
        "a sum, or QuantizeLinear and DequantizeLinear in front of it"
    )


def _sources(state: State, tensor: Integer) -> Iterator[tuple[str, Array]]:
    """The tensors that one is a function of, itself first; its int8 values by theirs."""
    name, values = tensor.name, INT8
    yield name, values
    while name in state.tables:
        name, table = state.tables[name]
        values = values[table.astype(np.int16) + 128]
        yield name, values


def _common(state: State, tensors: list[Integer]) -> Integer | None:
    """The nearest tensor that all are functions of, element by element; None when there is none."""
    if len({tensor.permutation for tensor in tensors}) != 1:
        return None
    known = [[name for name, _ in _sources(state, tensor)] for tensor in tensors]
    for name in known[0]:
        if all(name in names for names in known[1:]):
            return replace(tensors[0], name=name)
    return None


def _by_value_of(state: State, tensor: Integer, operand: _Operand) -> _Operand:
    """An operand by the values of what its own tensor is a function of."""
    if operand.tensor is None:
        return operand
    places = dict(_sources(state, operand.tensor))[tensor.name].astype(np.int16) + 128
    codes, combination = operand.codes, operand.combination
    if codes is not None:
        codes = _at(codes, places)
    if combination is not None:
        a, b = _at(combination.a, places), _at(combination.b, places)
        combination = replace(combination, a=a, b=b)
    return _Operand(operand.values[places], tensor, codes, combination)


def _at(codes: Codes, places: Array) -> Codes:
    return replace(codes, values=codes.values[places])


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
    if whole.combination is None or limit.tensor is not None:
        return None
    number = float(limit.values)
    if operator.function is BinaryFunction.MAX:
        low, high = max(whole.combination.low, number), max(whole.combination.high, number)
    elif operator.function is BinaryFunction.MIN:
        low, high = min(whole.combination.low, number), min(whole.combination.high, number)
    else:
        return None
    return replace(whole.combination, low=low, high=high)


def _combined(pair: Combination, scale: np.float32, zero_point: int) -> Array:
    """As ONNX Runtime's QLinearAdd and QLinearMul compute it: int8[256]."""
    a, b = pair.a, pair.b
    low, high = (
        int(np.clip(np.rint(F32(limit) / scale) + zero_point, -128, 127))
        for limit in (pair.low, pair.high)
    )
    if pair.function is BinaryFunction.ADD:
        ratios = float(a.scale / scale), float(b.scale / scale)
        zeros = a.zero_point, b.zero_point, zero_point
        return Add(*ratios, *zeros, low, high, a.unsigned).evaluate([a.values, b.values])[0]
    ratio = float(a.scale * b.scale / scale)
    zeros = a.zero_point, b.zero_point, zero_point
    return Multiply(ratio, *zeros, low, high, a.unsigned).evaluate([a.values, b.values])[0]
