"""Every operator's type rule against its meaning: what the rule takes has a meaning, of the types
that it gives; for types that fit, and for many that are a little off."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.graph.operators.assembly import Assemble
from dovetail.compiler.graph.operators.attention import Attention
from dovetail.compiler.graph.operators.contractions import Determinant, contract
from dovetail.compiler.graph.operators.elementwise import Binary, Unary, Where
from dovetail.compiler.graph.operators.functions import BinaryFunction, UnaryFunction
from dovetail.compiler.graph.operators.indexing import Gather
from dovetail.compiler.graph.operators.integer.conversions import Dequantize, Quantize
from dovetail.compiler.graph.operators.integer.fixed_point import (
    AddFixed,
    AverageFixed,
    MultiplyFixed,
    RequantizeFixed,
    RequantizeReal,
)
from dovetail.compiler.graph.operators.integer.norm import MOST_EPSILON, RowNorm
from dovetail.compiler.graph.operators.integer.products import (
    Conv2d,
    ConvTranspose2d,
    Dense,
    RowProducts,
)
from dovetail.compiler.graph.operators.integer.residual import RequantizeAdd
from dovetail.compiler.graph.operators.integer.scaled_sum import ScaledSum
from dovetail.compiler.graph.operators.integer.softmax import RowSoftmax
from dovetail.compiler.graph.operators.integer.tensor_norm import TensorNorm
from dovetail.compiler.graph.operators.integer.values import Multiply, Softmax, WeightedAdd
from dovetail.compiler.graph.operators.integer.windows import (
    AveragePool2d,
    MaxPool2d,
    Pad,
    Upsample2d,
)
from dovetail.compiler.graph.operators.movement import Concatenate, PadMode, PadTensor, Transpose
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.operators.reductions import (
    ArgReduce,
    Cumulative,
    Reduce,
    ReduceFunction,
)
from dovetail.compiler.graph.operators.rows import SoftmaxRows
from dovetail.compiler.graph.operators.sorting import Positions
from dovetail.compiler.graph.operators.windows import WindowArgMax
from dovetail.compiler.graph.passes.integer_layers.recognition import recognise
from dovetail.compiler.graph.types import TensorType
from tests.compiler.define.operators import CASES
from tests.random_models.draw import draw

from .integer_cases import INTEGER_CASES

Arrays = Sequence[NDArray[np.generic]]
DTYPES = (
    DType.INT8,
    DType.UINT8,
    DType.INT32,
    DType.INT64,
    DType.FLOAT32,
    DType.FLOAT16,
    DType.BOOL,
)


def integer_cases() -> list[tuple[TensorOperator, Arrays]]:
    """Nodes of random quantised models: one of each operator and way of its attributes."""
    found: dict[tuple[type, int], tuple[TensorOperator, Arrays]] = {}
    rng = np.random.default_rng(0)
    for seed in (number for number in range(60) if number % 5 < 4):  # the others are float
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            imported = SourceModel.of(draw(seed).model).to_graph()
        graph = recognise(imported.graph, imported.kinds).graph
        for node in graph.nodes:
            key = type(node.operator), len(node.inputs)
            if key not in found and ".integer." in type(node.operator).__module__:
                arrays = [
                    graph.constants.get(name, filled(graph.types[name], rng))
                    for name in node.inputs
                ]
                found[key] = node.operator, arrays
    return list(found.values())


def filled(kind: TensorType, rng: np.random.Generator) -> NDArray[np.generic]:
    """Small numbers of a type."""
    return rng.integers(0, 2, kind.shape).astype(kind.dtype.numpy)


def variants(types: tuple[TensorType, ...]) -> Iterator[tuple[TensorType, ...]]:
    """Types a little off, one thing at a time."""
    yield types[:-1]
    yield (*types, types[-1] if types else TensorType((1,), DType.FLOAT32))
    for place, kind in enumerate(types):
        shape = kind.shape
        changed = [replace(kind, dtype=dtype) for dtype in DTYPES if dtype != kind.dtype]
        changed += [replace(kind, shape=(1, *shape)), replace(kind, shape=shape[1:])]
        changed += [replace(kind, shape=shape[:-1])]
        for axis, size in enumerate(shape):
            sizes = {1, size - 1, size + 1, 2 * size} - {size, 0}
            changed += [
                replace(kind, shape=(*shape[:axis], other, *shape[axis + 1 :])) for other in sizes
            ]
        for other in changed:
            yield (*types[:place], other, *types[place + 1 :])


def types_of(arrays: Arrays) -> tuple[TensorType, ...]:
    return tuple(TensorType(np.shape(each), str(np.asarray(each).dtype)) for each in arrays)


def problem(operator: TensorOperator, arrays: Arrays) -> str:
    """How the meaning differs from the rule, which takes these."""
    types = types_of(arrays)
    wanted = operator.result(types)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = operator.evaluate(list(arrays))
    except Exception as error:
        return f"{operator} of {types}: {type(error).__name__}: {error}"
    own = types_of(found)
    return "" if own == wanted else f"{operator} of {types}: {own}, not {wanted}"


def other_attributes(operator: TensorOperator) -> Iterator[TensorOperator]:
    """The operator with a number a little off, or far; none where it refuses that at once."""
    for name in operator.__dataclass_fields__:
        value = getattr(operator, name)
        changed: list[object] = []
        if type(value) is int:
            changed = [value - 1, value + 1, -1, 99]
        elif type(value) is tuple and value and all(type(each) is int for each in value):
            changed = [(*value[:-1], value[-1] + step) for step in (-1, 1, 99)]
            changed += [(value[0] + step, *value[1:]) for step in (-99, 99)]
        for other in changed:
            with suppress(GraphError):
                yield replace(operator, **{name: other})  # type: ignore[type-var]


def test_a_rule_takes_what_has_a_meaning_and_gives_its_types() -> None:
    found, refused, rng = [], 0, np.random.default_rng(1)
    for operator, arrays in (*CASES, *INTEGER_CASES, *integer_cases()):
        found.append(problem(operator, arrays))
        assert not found[-1], found[-1]
        tried = [(operator, types) for types in variants(types_of(arrays))]
        tried += [(other, types_of(arrays)) for other in other_attributes(operator)]
        for other, types in tried:
            with np.errstate(over="ignore"):  # large integers are infinite as float16
                resized = [
                    np.resize(np.asarray(array), kind.shape).astype(kind.dtype.numpy)
                    for array, kind in zip(arrays, types, strict=False)
                ]
            resized += [filled(kind, rng) for kind in types[len(arrays) :]]
            try:
                found.append(problem(other, resized))
            except GraphError:
                refused += 1
            except Exception as error:
                found.append(f"{other} of {types}: the rule raises {error!r}")
    wrong = [each for each in found if each]
    assert not wrong, f"{len(wrong)} of {len(found)}: " + "\n".join(wrong)
    assert refused > 800


INT, FLOAT, HALF, BOOL = (
    TensorType((2, 4), kind) for kind in (DType.INT32, DType.FLOAT32, DType.FLOAT16, DType.BOOL)
)
PIXELS = TensorType((1, 3, 4, 2), DType.INT8)
ATTENTION = Attention((0, 3), (1, 3), (1, 2), (0, 1), (0, 2))


def bytes_of(*shape: int) -> TensorType:
    return TensorType(shape, DType.INT8)


@pytest.mark.parametrize(
    ("operator", "types", "required"),
    [
        (Where(), (INT, FLOAT, FLOAT), "a condition of bool"),
        (SoftmaxRows(), (HALF,), "found float16"),
        (SoftmaxRows(), (INT,), "found int32"),
        (Determinant(), (INT,), "found int32"),
        (Positions(4), (FLOAT,), "found float32"),
        (ArgReduce(ReduceFunction.MIN, 2), (FLOAT,), "dimension 2"),
        (Cumulative(ReduceFunction.SUM, -1), (FLOAT,), "dimension -1"),
        (Concatenate(0), (FLOAT, INT), "one type except for dimension 0"),
        (Concatenate(0), (), "found no inputs, required at least 1"),
        (Unary(UnaryFunction.NOT), (FLOAT,), "bool or integers for not"),
        (Unary(UnaryFunction.NEG), (BOOL,), "numbers for neg"),
        (Unary(UnaryFunction.EXP), (INT,), "floats for exp"),
        (Binary(BinaryFunction.XOR), (FLOAT, FLOAT), "bool or integers"),
        (Binary(BinaryFunction.SHL), (FLOAT, FLOAT), "required integers"),
        (Binary(BinaryFunction.SHR), (BOOL, BOOL), "required integers"),
        (Reduce(ReduceFunction.SUM, (0,), True), (BOOL,), "required numbers"),
        (Gather(0), (TensorType((0, 2), DType.INT8), INT), "elements to index"),
        (
            PadTensor((1,), (0,), PadMode.EDGE),
            (TensorType((0,), DType.INT8), TensorType((), DType.INT8)),
            "elements to repeat",
        ),
        (AveragePool2d((2, 2), (1, 1), 0, 0, 0.5, size=(3, 3)), (PIXELS,), "room for all windows"),
        (AveragePool2d((2, 2), (1, 1), 0, 0, 0.5, size=(2, 4)), (PIXELS,), "room for all windows"),
        (RowProducts(0, 0), (bytes_of(1, 33026), bytes_of(1, 33026)), "K of at most 33025"),
        (RowSoftmax(0.5, 0.5, 0), (bytes_of(2, 65795),), "rows of up to 65794"),
        (RowNorm(3, 4), (bytes_of(2, 1 << 24), INT, INT), "a sum of squares is an int32"),
        (ATTENTION, (FLOAT, FLOAT, TensorType((2, 0), DType.FLOAT32)), "sizes of at least 1"),
        (
            replace(ATTENTION, query=(1, 3)),
            (FLOAT, FLOAT, TensorType((2, 4), DType.FLOAT32)),
            "one that neither k nor v has",
        ),
    ],
)
def test_a_rule_refuses_what_would_mean_something_else(
    operator: TensorOperator, types: tuple[TensorType, ...], required: str
) -> None:
    with pytest.raises(GraphError, match=f"{type(operator).__name__}: .*{required}"):
        operator.result(types)


def test_rows_are_as_long_as_their_sums_allow() -> None:
    """Sums of ``255 * 255``, and of exponentials of 15 bits, are below 2**31."""
    long = bytes_of(1, 33025)
    assert RowProducts(0, 0).result((long, long)) == (TensorType((1, 1), DType.INT32),)
    assert RowSoftmax(0.5, 0.5, 0).result((bytes_of(2, 65794),)) == (bytes_of(2, 65794),)
    assert 33025 * 255 * 255 < 1 << 31 <= 33026 * 255 * 255


def window(axes: tuple[int, ...], **changes: tuple[object, ...]) -> WindowArgMax:
    ones = dict.fromkeys(("kernel", "strides", "dilations"), (1, 1))
    return WindowArgMax(axes, **{**ones, "pads": ((0, 0), (0, 0)), **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Transpose((0, 2)), "required a permutation of 0, 1, ..."),
        (lambda: Transpose((1, 1)), "required a permutation of 0, 1, ..."),
        (lambda: Reduce(ReduceFunction.SUM, (1, 1), True), "required different axes"),
        (lambda: ArgReduce(ReduceFunction.SUM, 0), "required min or max"),
        (lambda: window((1, 1), kernel=(2, 2)), "each axis once"),
        (lambda: window((1, 2), kernel=(2, 0)), "kernel, .* of at least 1"),
        (lambda: window((1, 2), strides=(1, 0)), "strides .* of at least 1"),
        (lambda: window((1, 2), dilations=(0, 1)), "dilations of at least 1"),
        (lambda: window((1, 2), strides=(1,)), "attributes of one length"),
        (lambda: window((1, 2), pads=((0, 0),)), "attributes of one length"),
        (lambda: contract((INT,), ((0,),), (0,), DType.INT32), "its operand has 1 labels"),
        (lambda: contract((INT,), ((0, 0),), (0,), DType.INT32), "sizes 2 and 4 of one label"),
        (lambda: contract((INT,), ((0, 1),), (2,), DType.INT32), r"labels \[2\] are of no operand"),
    ],
)
def test_attributes_that_mean_nothing_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        make()


CONSTRUCTED: dict[type, TensorOperator] = {
    **{type(operator): operator for operator, _ in INTEGER_CASES},
    RowNorm: RowNorm(3, 4, 5, 0.5),
    TensorNorm: TensorNorm(3, 4, 0.5),
    AveragePool2d: AveragePool2d((2, 2), (1, 1), 0, 0, 0.5),
    Quantize: Quantize(0.5, 0),
    Dequantize: Dequantize(0.5, 0),
    Conv2d: Conv2d((1, 1), (0, 0, 0, 0), 1, 0),
    ConvTranspose2d: ConvTranspose2d((1, 1), (0, 0, 0, 0), (0, 0), 1, 0),
    Dense: Dense(0),
    RowProducts: RowProducts(0, 0),
    RowSoftmax: RowSoftmax(0.5, 0.5, 0),
    MaxPool2d: MaxPool2d((1, 1), (1, 1), (0, 0, 0, 0)),
    Upsample2d: Upsample2d((1, 1)),
}
INT8 = ((-128, 127), (-129, 128), "-128")
MULTIPLIER = (1 << 31) - 1


@pytest.mark.parametrize(
    ("kind", "fields", "allowed", "refused", "message"),
    [
        (RequantizeFixed, "zero_point", *INT8),
        (RequantizeReal, "zero_point", *INT8),
        (RequantizeReal, "low", (-128, 90), (-129, 91), "low <= high"),
        (RequantizeFixed, "high", (-100, 127), (-101, 128), "low <= high"),
        (AddFixed, "a_zero_point b_zero_point zero_point", *INT8),
        (AddFixed, "a_shift b_shift shift", (-31, 0), (-32, 1), "shifts"),
        (AddFixed, "left_shift", (0, 21), (-1, 22), "a left shift"),
        (
            AddFixed,
            "a_multiplier b_multiplier multiplier",
            (-MULTIPLIER, MULTIPLIER),
            (-1 << 31, 1 << 31),
            "multipliers",
        ),
        (MultiplyFixed, "a_zero_point b_zero_point zero_point", *INT8),
        (MultiplyFixed, "multiplier", (0, MULTIPLIER), (-1, 1 << 31), "a multiplier"),
        (MultiplyFixed, "shift", (-31, 31), (-32, 32), "a shift"),
        (AverageFixed, "kernel", ((2, 3), (9, 9)), ((1, 3), (2, 2), (0, 1)), "smaller|1x1"),
        (AverageFixed, "pads", ((0, 0, 0, 0), (1, 2, 1, 2)), ((0, 0, 2, 0), (0, 3, 0, 0)), "pads"),
        (AverageFixed, "strides", ((1, 1),), ((0, 1), (1, 0)), "strides"),
        (RequantizeAdd, "factor", (1, 1 << 12), (0, (1 << 12) + 1), "a factor in"),
        (RequantizeAdd, "step", (1e-9, 1e9), (0.0, np.inf, np.nan), "a step above 0"),
        (RequantizeAdd, "r_zero_point zero_point", *INT8),
        (RequantizeAdd, "low", (100,), (101, -129), "low <= high|zero points"),
        (ScaledSum, "zero_point", *INT8),
        (ScaledSum, "terms", (1, 16), (0, 17), "1 to 16"),
        (ScaledSum, "repeats", (1,), (0,), "repeats"),
        (WeightedAdd, "a_factor b_factor", (1 - (1 << 23), (1 << 23) - 1), (1 << 23,), "factors"),
        (WeightedAdd, "offset", ((1 << 31) - 1025, 1025 - (1 << 31)), ((1 << 31) - 1024,), "sums"),
        (WeightedAdd, "scale", (1e-9, 1.0), (0.0, 1.001), "a scale above 0"),
        (WeightedAdd, "zero_point", *INT8),
        (Multiply, "ratio", (1e-9, 1e9), (0.0, np.inf, np.nan, -1.0), "a finite ratio"),
        (Multiply, "a_zero_point b_zero_point zero_point", *INT8),
        (Softmax, "x_scale scale", (1e-9, 1e9), (0.0, np.inf, np.nan), "finite scales"),
        (Pad, "value", *INT8),
        (Pad, "pads", ((0, 0, 0, 0),), ((0, 0, -1, 0),), "pads"),
        (RowNorm, "epsilon", (0, MOST_EPSILON), (-1, MOST_EPSILON + 1), "an epsilon"),
        (RowNorm, "shift", (0, 31), (-1, 32), "a shift"),
        (RowNorm, "share", (0.0,), (-0.1,), "a share"),
        (RowNorm, "zero_point about", *INT8),
        (TensorNorm, "epsilon", (0, MOST_EPSILON), (-1, MOST_EPSILON + 1), "an epsilon"),
        (TensorNorm, "zero_point", *INT8),
        (TensorNorm, "scale", (1e-37,), (0.0, 1e-39, np.inf, np.nan), "a positive scale"),
        (AveragePool2d, "start", ((0, 0),), ((-1, 0), (0, -1)), "a first window"),
        (AveragePool2d, "size", ((1, 1), None), ((0, 1), (1, 0)), "a size"),
        (AveragePool2d, "kernel", ((1, 1),), ((0, 1), (1, 0)), "a kernel"),
        (AveragePool2d, "strides", ((1, 1),), ((0, 1), (1, 0)), "strides"),
        (AveragePool2d, "x_zero_point", (-255, 255), (-256, 256), "an input zero point"),
        (AveragePool2d, "zero_point", *INT8),
        (AveragePool2d, "scale", (1e-9,), (0.0, np.inf, np.nan), "a finite scale"),
        (Assemble, "size steps", ((3, 8),), ((0, 8), (3, 0)), "at least 1"),
        (Quantize, "zero_point", *INT8),
        (Quantize, "scale", (1e-9,), (0.0, np.inf, np.nan), "a finite scale"),
        (Dequantize, "zero_point", *INT8),
        (Dequantize, "scale", (1e-9,), (0.0, np.inf, np.nan), "a finite scale"),
        (Conv2d, "weight_zero_point zero_point", *INT8),
        (Conv2d, "strides dilations", ((1, 1),), ((0, 1), (1, 0)), "of at least 1"),
        (Conv2d, "pads", ((0, 0, 0, 0),), ((0, 0, 0, -1),), "pads"),
        (Conv2d, "groups", (1,), (0,), "group"),
        (ConvTranspose2d, "weight_zero_point zero_point", *INT8),
        (ConvTranspose2d, "strides", ((1, 1),), ((0, 1), (1, 0)), "strides"),
        (ConvTranspose2d, "pads", ((0, 0, 0, 0),), ((0, 0, 0, -1),), "pads"),
        (ConvTranspose2d, "added", ((0, 0),), ((0, -1), (-1, 0)), "added rows"),
        (ConvTranspose2d, "groups", (1,), (0,), "group"),
        (Dense, "weight_zero_point zero_point", *INT8),
        (RowProducts, "x_zero_point y_zero_point", *INT8),
        (RowSoftmax, "x_scale scale", (1e-9,), (0.0, np.inf, np.nan), "finite scales"),
        (RowSoftmax, "zero_point", *INT8),
        (MaxPool2d, "strides kernel", ((1, 1),), ((0, 1), (1, 0)), "of at least 1"),
        (MaxPool2d, "pads", ((0, 0, 0, 0),), ((0, 0, 0, -1),), "pads"),
        (Upsample2d, "factors", ((1, 1),), ((0, 1), (1, 0)), "factors"),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else "",
)
def test_attributes_are_taken_up_to_their_limits(
    kind: type, fields: str, allowed: Sequence[object], refused: Sequence[object], message: str
) -> None:
    operator: Any = CONSTRUCTED[kind]
    for name in fields.split():
        for value in allowed:
            replace(operator, **{name: value})
        for value in refused:
            with pytest.raises(GraphError, match=message):
                replace(operator, **{name: value})
