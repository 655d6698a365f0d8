"""Random loop programs that keep all rules: maps, reductions, recurrences, branches, lets.

Every index is in range, every element is written before it is read, every output is written whole.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.expressions import (
    Binary,
    BinaryFunction,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    Scope,
    Select,
    Variable,
    as_index,
)
from dovetail.compiler.loops.ir import (
    Allocate,
    Function,
    If,
    Let,
    Stmt,
    Store,
    Update,
    block,
    loops,
)

__all__ = ["arrays_for", "functions"]

Loops = tuple[tuple[str, int], ...]
"""Variables in scope and their extents."""

DTYPES = (DType.INT8, DType.INT32, DType.INT64, DType.UINT8, DType.FLOAT32, DType.FLOAT64)
ARITHMETIC = (
    BinaryFunction.ADD,
    BinaryFunction.SUB,
    BinaryFunction.MUL,
    BinaryFunction.MIN,
    BinaryFunction.MAX,
)
BITS = (BinaryFunction.AND, BinaryFunction.OR, BinaryFunction.XOR)
COMPARES = (BinaryFunction.LT, BinaryFunction.LE, BinaryFunction.EQ, BinaryFunction.NE)


def arrays_for(function: Function, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Inputs of a function: integers of the whole dtype, floats that are small multiples of 1/4."""
    generator = np.random.default_rng(seed)
    arrays: dict[str, NDArray[Any]] = {}
    for buffer in function.inputs:
        dtype = buffer.dtype.numpy
        if buffer.dtype.is_float:
            arrays[buffer.name] = (generator.integers(-16, 17, buffer.shape) / 4).astype(dtype)
        elif buffer.dtype is DType.BOOL:
            arrays[buffer.name] = generator.integers(0, 2, buffer.shape).astype(dtype)
        else:
            limits = np.iinfo(dtype)
            arrays[buffer.name] = generator.integers(
                limits.min, limits.max, buffer.shape, dtype=dtype, endpoint=True
            )
    return arrays


@st.composite
def functions(
    draw: st.DrawFn,
    dtypes: Sequence[DType] = DTYPES,
    max_stages: int = 3,
    max_size: int = 5,
) -> Function:
    """A function of one to ``max_stages`` stages, each of which writes one buffer."""
    source = _Source(draw, tuple(dtypes), max_size)
    inputs = tuple(source.buffer(f"x{n}") for n in range(draw(st.integers(1, 2))))
    source.readable += inputs
    count = draw(st.integers(1, max_stages))
    stages, locals_ = [], []
    for number in range(count):
        last = number == count - 1
        scope = Scope.GLOBAL if last else Scope.LOCAL
        target = source.buffer("y" if last else f"t{number}", scope)
        stages.append(source.stage(target, f"s{number}"))
        source.readable.append(target)
        if not last:
            locals_.append(target)
    body = block(*stages)
    for buffer in reversed(locals_):
        body = Allocate(buffer, body)
    return Function("random", inputs, (target,), body)


class _Source:
    """Draws the parts of a function."""

    def __init__(self, draw: st.DrawFn, dtypes: tuple[DType, ...], max_size: int) -> None:
        self.draw = draw
        self.dtypes = dtypes
        self.sizes = st.integers(1, max_size)
        self.readable: list[Buffer] = []

    def choose(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def buffer(self, name: str, scope: Scope = Scope.GLOBAL) -> Buffer:
        shape = tuple(self.draw(st.lists(self.sizes, min_size=0, max_size=3)))
        return Buffer(name, shape, self.choose(self.dtypes), scope)

    def stage(self, target: Buffer, prefix: str) -> Stmt:
        around = tuple((f"{prefix}.i{axis}", size) for axis, size in enumerate(target.shape))
        kinds = ["map", "branch", "let", "reduction", "accumulator"]
        if target.shape and target.shape[0] > 1:
            kinds.append("recurrence")
        at = tuple(Variable(name) for name, _ in around)
        extra = tuple((f"{prefix}.k{n}", self.draw(self.sizes)) for n in range(2))
        inner = extra[: self.draw(st.integers(1, 2))]
        dtype = target.dtype
        match self.choose(kinds):
            case "map":
                return loops(around, Store(target, at, self.value(dtype, around)))
            case "branch":
                first, second = (Store(target, at, self.value(dtype, around)) for _ in range(2))
                return loops(around, If(self.condition(around), first, second))
            case "let":
                name = Variable(f"{prefix}.v", dtype)
                value = Binary(self.function(dtype), name, self.value(dtype, around))
                given = self.value(dtype, around)
                return loops(around, Let(name, given, Store(target, at, value)))
            case "reduction":
                start = loops(around, Store(target, at, self.value(dtype, around, 0)))
                renamed = tuple((f"{name}.r", size) for name, size in around)
                at = tuple(Variable(name) for name, _ in renamed)
                scope = (*renamed, *inner)
                update = Update(target, at, self.reduction(dtype), self.value(dtype, scope))
                return block(start, loops(self.draw(st.permutations(scope)), update))
            case "accumulator":
                total = Buffer(f"{prefix}.acc", (), dtype, Scope.REGISTER)
                function = self.reduction(dtype)
                update = Update(total, (), function, self.value(dtype, (*around, *inner)))
                store = Store(
                    target, at, Binary(self.function(dtype), total[()], self.value(dtype, around))
                )
                start = Store(total, (), self.value(dtype, around, 0))
                return loops(around, Allocate(total, block(start, loops(inner, update), store)))
            case _:
                return self.recurrence(target, around)

    def recurrence(self, target: Buffer, around: Loops) -> Stmt:
        """Elements of the first dimension, each from the one before it."""
        (time, steps), rest = around[0], around[1:]
        others = tuple(Variable(name) for name, _ in rest)
        start = loops(
            tuple((f"{name}.first", size) for name, size in rest),
            Store(
                target,
                (as_index(0), *(Variable(f"{name}.first") for name, _ in rest)),
                self.value(target.dtype, ()),
            ),
        )
        before = Load(target, (Variable(time), *others))
        shorter = ((time, steps - 1), *rest)
        value = Binary(self.function(target.dtype), before, self.value(target.dtype, shorter))
        step = Store(target, (Variable(time) + 1, *others), value)
        return block(start, loops(shorter, step))

    def function(self, dtype: DType) -> BinaryFunction:
        return self.choose(ARITHMETIC if dtype.is_float else (*ARITHMETIC, *BITS))

    def reduction(self, dtype: DType) -> BinaryFunction:
        options = (BinaryFunction.ADD, BinaryFunction.MIN, BinaryFunction.MAX)
        return self.choose(options if dtype.is_float else (*options, *BITS, BinaryFunction.MUL))

    def value(self, dtype: DType, scope: Loops, depth: int = 2) -> Expr:
        kinds = ["constant", "load", "load"]
        if depth:
            kinds += ["binary", "binary", "select", "padded"]
        match self.choose(kinds):
            case "load":
                buffer = self.choose(self.readable)
                load = Load(buffer, tuple(self.index(size, scope) for size in buffer.shape))
                return self.cast(load, dtype)
            case "binary":
                left, right = (self.value(dtype, scope, depth - 1) for _ in range(2))
                return Binary(self.function(dtype), left, right)
            case "select":
                chosen, other = (self.value(dtype, scope, depth - 1) for _ in range(2))
                return Select(self.condition(scope), chosen, other)
            case "padded":
                return self.padded(dtype, scope)
            case _:
                return self.constant(dtype)

    def constant(self, dtype: DType) -> Constant:
        number = self.draw(st.integers(0 if dtype.value.startswith("u") else -3, 3))
        return Constant(number / 4 if dtype.is_float else number, dtype)

    def cast(self, value: Expr, dtype: DType) -> Expr:
        """A conversion that fits: floats become integers by way of their test against 0.

        Integers of 64 bits become floats of which sums are exact in float64.
        """
        if value.dtype is dtype:
            return value
        if value.dtype.is_float and not dtype.is_float:
            zero = Constant(0.0, value.dtype)
            return Cast(dtype, Binary(BinaryFunction.LT, zero, value))
        if dtype.is_float and not value.dtype.is_float and value.dtype.bytes == 8:
            value = value % 1024
        return Cast(dtype, value)

    def padded(self, dtype: DType, scope: Loops) -> Expr:
        """A load where its index is in range, else a constant."""
        options = [buffer for buffer in self.readable if len(buffer.shape) == 1]
        if not options or not scope:
            return self.constant(dtype)
        buffer = self.choose(options)
        name, _ = self.choose(scope)
        index = Variable(name) * self.draw(st.integers(1, 2)) - self.draw(st.integers(0, 2))
        inside = (as_index(0) <= index) & (index < buffer.shape[0])
        return Select(inside, self.cast(buffer[index], dtype), self.constant(dtype))

    def condition(self, scope: Loops) -> Expr:
        if not scope:
            return Constant(self.draw(st.booleans()), DType.BOOL)
        name, size = self.choose(scope)
        return Binary(
            self.choose(COMPARES), Variable(name), as_index(self.draw(st.integers(0, size)))
        )

    def index(self, size: int, scope: Loops, gather: bool = True) -> Expr:
        """An expression of the variables in scope whose values are 0 to ``size - 1``.

        With ``gather`` it may be an element of a buffer, wrapped.
        """
        integers = [each for each in self.readable if not each.dtype.is_float]
        fitting = [name for name, extent in scope if extent <= size]
        kinds = ["constant"]
        kinds += ["variable", "variable", "variable", "mirrored"] if fitting else []
        kinds += ["wrapped", "clamped", "divided"] if scope else []
        kinds += ["gathered"] if gather and integers else []
        match self.choose(kinds):
            case "variable":
                return Variable(self.choose(fitting))
            case "mirrored":
                return as_index(size - 1) - Variable(self.choose(fitting))
            case "wrapped":
                (first, _), (second, _) = self.choose(scope), self.choose(scope)
                factor = self.draw(st.integers(1, 3))
                return (Variable(first) * factor + Variable(second)) % size
            case "clamped":
                name, _ = self.choose(scope)
                return Binary(BinaryFunction.MIN, Variable(name), as_index(size - 1))
            case "gathered":
                source = self.choose(integers)
                place = tuple(self.index(extent, scope, False) for extent in source.shape)
                return Cast(DType.INT64, Load(source, place)) % size
            case "divided":
                name, extent = self.choose(scope)
                return Variable(name) // -(-extent // size)
            case _:
                return as_index(self.draw(st.integers(0, size - 1)))
