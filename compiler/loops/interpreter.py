"""The meaning of loop programs, one element at a time: the oracle of every backend.

It is exact: integers wrap, floats are rounded to their dtype after every operation, functions such
as ``exp`` are computed in float64 and rounded once.  What a program must not do is refused: an
index outside a buffer, a read of an element that nothing has written, an integer division by zero,
a shift by less than 0 or by all bits.  Floats out of an integer's range convert as in NumPy.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ..errors import CompilerError
from ..graph.operators.elementwise import multiply_add
from .arithmetic import binary, bitcast, cast, constant, unary
from .expressions import (
    Binary,
    Bitcast,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    MultiplyAdd,
    Select,
    Unary,
    Variable,
)
from .intrinsic import BARRIER, PREFETCH, WAIT, WAIT_BEFORE, Intrinsic
from .ir import (
    Allocate,
    Block,
    For,
    Function,
    If,
    Invoke,
    Let,
    LoopKind,
    Region,
    Stmt,
    Store,
    Update,
    While,
)
from .traverse import fold

__all__ = ["InterpreterError", "interpret"]

Environment = dict[str, Any]
Memory = dict[str, list[Any]]
Evaluate = Callable[[Environment, Memory], Any]
Execute = Callable[[Environment, Memory], None]

IN_ORDER = frozenset({LoopKind.SERIAL, LoopKind.UNROLLED})


class InterpreterError(CompilerError):
    """A loop program did what no program may do."""


def interpret(
    function: Function,
    inputs: Mapping[str, NDArray[Any]],
    *,
    seed: int | None = None,
    intrinsics: Mapping[str, Intrinsic] | None = None,
    initial: Mapping[str, NDArray[Any]] | None = None,
) -> dict[str, NDArray[Any]]:
    """The outputs, by name.

    With a ``seed``, loops of any kind but serial and unrolled run in an order shuffled by it: a
    program that depends on their order gives other results.  ``initial`` gives outputs that hold
    something when the function starts.  Raises InterpreterError for inputs of a wrong shape or
    dtype, and where the program does what it must not, or does not write an output whole.
    """
    memory: Memory = {}
    given = {**inputs, **(initial or {})}
    for buffer in (*function.inputs, *function.outputs):
        if buffer.name in given:
            memory[buffer.name] = _elements(function, buffer, given[buffer.name])
        elif buffer in function.inputs:
            raise InterpreterError(f"{function.name}: input {buffer.name} is missing")
        else:
            memory[buffer.name] = [None] * buffer.elements
    shuffle = None if seed is None else random.Random(seed)
    with np.errstate(all="ignore"):
        _Compiler(function.name, shuffle, intrinsics or {}).statement(function.body)({}, memory)
    return {buffer.name: _array(function, buffer, memory) for buffer in function.outputs}


def _elements(function: Function, buffer: Buffer, array: NDArray[Any]) -> list[Any]:
    if array.shape != buffer.shape or array.dtype != buffer.dtype.numpy:
        raise InterpreterError(
            f"{function.name}: {buffer.name} is {array.dtype}{list(array.shape)}; required "
            f"{buffer.dtype}{list(buffer.shape)}"
        )
    flat = array.reshape(-1)
    return list(flat) if buffer.dtype.is_float else flat.tolist()


def _array(function: Function, buffer: Buffer, memory: Memory) -> NDArray[Any]:
    elements = memory[buffer.name]
    missing = [place for place, value in enumerate(elements) if value is None]
    if missing:
        where = np.unravel_index(missing[0], buffer.shape) if buffer.shape else ()
        raise InterpreterError(
            f"{function.name}: {len(missing)} of {len(elements)} elements of output {buffer.name} "
            f"were never written, the first at {[int(index) for index in where]}"
        )
    return np.array(elements, dtype=buffer.dtype.numpy).reshape(buffer.shape)


class _Compiler:
    """Turns statements and expressions into Python closures over an environment and a memory."""

    def __init__(
        self, name: str, shuffle: random.Random | None, intrinsics: Mapping[str, Intrinsic]
    ) -> None:
        self.name = name
        self.shuffle = shuffle
        self.intrinsics = intrinsics
        self.memo: dict[int, tuple[Expr, Evaluate]] = {}

    def expr(self, expr: Expr) -> Evaluate:
        return fold(expr, self._combine, self.memo)

    def _combine(self, expr: Expr, below: tuple[Evaluate, ...]) -> Evaluate:
        match expr:
            case Constant(value=value, dtype=dtype):
                held = constant(value, dtype)
                return lambda env, memory: held
            case Variable(name=name):
                return lambda env, memory: env[name]
            case Load(buffer=buffer):
                return self._load(buffer, below)
            case Unary(function=test, operand=operand):
                apply_unary, only = unary(test, operand.dtype), below[0]
                return lambda env, memory: apply_unary(only(env, memory))
            case Binary(function=function, left=first):
                return self._binary(binary(function, first.dtype), below, str(function))
            case Select():
                condition, chosen, other = below
                return lambda env, memory: (
                    chosen(env, memory) if condition(env, memory) else other(env, memory)
                )
            case MultiplyAdd():
                return lambda env, memory: float(
                    multiply_add(*(np.array(each(env, memory), np.float32) for each in below))
                )
            case Cast(dtype=dtype, operand=operand):
                convert, inner = cast(operand.dtype, dtype), below[0]
                return lambda env, memory: convert(inner(env, memory))
            case Bitcast(dtype=dtype, operand=operand):
                reinterpret, inner = bitcast(operand.dtype, dtype), below[0]
                return lambda env, memory: reinterpret(inner(env, memory))
            case _:
                assert_never(expr)

    def _binary(
        self, apply: Callable[[Any, Any], Any], below: tuple[Evaluate, ...], what: str
    ) -> Evaluate:
        left, right = below

        def evaluate(env: Environment, memory: Memory) -> Any:
            a, b = left(env, memory), right(env, memory)
            try:
                return apply(a, b)
            except ArithmeticError as error:
                raise InterpreterError(f"{self.name}: {what} of {a} and {b}: {error}") from None

        return evaluate

    def _place(self, buffer: Buffer, indices: tuple[Evaluate, ...]) -> Evaluate:
        """The position of an element among all."""
        checked = tuple(zip(indices, buffer.shape, strict=True))

        def place(env: Environment, memory: Memory) -> int:
            position = 0
            for axis, (index, size) in enumerate(checked):
                at = index(env, memory)
                if not 0 <= at < size:
                    raise InterpreterError(
                        f"{self.name}: index {at} of {buffer.name}, dimension {axis}, where "
                        f"{_values(env)}; required 0 to {size - 1}"
                    )
                position = position * size + at
            return position

        return place

    def _load(self, buffer: Buffer, indices: tuple[Evaluate, ...]) -> Evaluate:
        place, name = self._place(buffer, indices), buffer.name

        def load(env: Environment, memory: Memory) -> Any:
            at = place(env, memory)
            value = memory[name][at]
            if value is None:
                where = [int(index) for index in np.unravel_index(at, buffer.shape or (1,))]
                raise InterpreterError(
                    f"{self.name}: {name}{where} is read where {_values(env)}, but was never "
                    "written"
                )
            return value

        return load

    def statement(self, stmt: Stmt) -> Execute:
        match stmt:
            case Block(statements=statements):
                steps = tuple(self.statement(each) for each in statements)

                def run_all(env: Environment, memory: Memory) -> None:
                    for step in steps:
                        step(env, memory)

                return run_all
            case For():
                return self._for(stmt)
            case While(condition=condition, body=body):
                test, step = self.expr(condition), self.statement(body)

                def repeat(env: Environment, memory: Memory) -> None:
                    while test(env, memory):
                        step(env, memory)

                return repeat
            case If(condition=condition, then=then, otherwise=otherwise):
                test, first = self.expr(condition), self.statement(then)
                second = self.statement(Block(()) if otherwise is None else otherwise)
                return lambda env, memory: (first if test(env, memory) else second)(env, memory)
            case Allocate(buffer=buffer, body=body):
                step, name, elements = self.statement(body), buffer.name, buffer.elements
                return lambda env, memory: step(env, {**memory, name: [None] * elements})
            case Let(variable=variable, value=value, body=body):
                given, step, name = self.expr(value), self.statement(body), variable.name
                return lambda env, memory: step({**env, name: given(env, memory)}, memory)
            case Store(buffer=buffer, indices=indices, value=value):
                place = self._place(buffer, tuple(self.expr(index) for index in indices))
                given, name = self.expr(value), buffer.name

                def store(env: Environment, memory: Memory) -> None:
                    new = given(env, memory)
                    memory[name][place(env, memory)] = new

                return store
            case Update(buffer=buffer, indices=indices, function=function, value=value):
                load = self.expr(Load(buffer, indices))
                given = self._binary(
                    binary(function, buffer.dtype), (load, self.expr(value)), str(function)
                )
                place = self._place(buffer, tuple(self.expr(index) for index in indices))
                name = buffer.name

                def update(env: Environment, memory: Memory) -> None:
                    new = given(env, memory)
                    memory[name][place(env, memory)] = new

                return update
            case Invoke():
                return self._invoke(stmt)
            case _:
                assert_never(stmt)

    def _for(self, loop: For) -> Execute:
        extent, step, name = self.expr(loop.extent), self.statement(loop.body), loop.variable
        shuffle = None if loop.kind in IN_ORDER else self.shuffle

        def run(env: Environment, memory: Memory) -> None:
            iterations = list(range(extent(env, memory)))
            if shuffle is not None:
                shuffle.shuffle(iterations)
            inner = dict(env)
            for value in iterations:
                inner[name] = value
                step(inner, memory)

        return run

    def _invoke(self, stmt: Invoke) -> Execute:
        if stmt.intrinsic in (BARRIER, PREFETCH, WAIT, WAIT_BEFORE):
            return lambda env, memory: None
        intrinsic = self.intrinsics.get(stmt.intrinsic)
        if intrinsic is None:
            raise InterpreterError(
                f"{self.name}: no intrinsic {stmt.intrinsic!r} was given; there are: "
                f"{', '.join(self.intrinsics) or 'none'}"
            )
        meaning = intrinsic.meaning
        intrinsic.check(stmt)
        step = _Compiler(stmt.intrinsic, self.shuffle, self.intrinsics).statement(meaning.body)
        places = tuple(self._places(region) for region in stmt.operands)
        bound = tuple(zip(intrinsic.parameters, stmt.operands, places, strict=True))
        written = {buffer.name for buffer in meaning.outputs}

        def invoke(env: Environment, memory: Memory) -> None:
            inner: Memory = {}
            chosen: dict[str, list[int]] = {}
            for parameter, region, place in bound:
                chosen[parameter.name] = [at(env, memory) for at in place]
                held = memory[region.buffer.name]
                inner[parameter.name] = [held[at] for at in chosen[parameter.name]]
            step({}, inner)
            for parameter, region, _ in bound:
                if parameter.name in written:
                    held = memory[region.buffer.name]
                    for at, value in zip(
                        chosen[parameter.name], inner[parameter.name], strict=True
                    ):
                        held[at] = value

        return invoke

    def _places(self, region: Region) -> list[Evaluate]:
        """The positions of a region's elements, row-major."""
        offsets = np.ndindex(*region.shape)
        return [
            self._place(
                region.buffer,
                tuple(
                    self.expr(start + offset)
                    for start, offset in zip(region.start, each, strict=True)
                ),
            )
            for each in offsets
        ]


def _values(env: Environment) -> str:
    return ", ".join(f"{name} = {value}" for name, value in env.items()) or "no loop runs"
