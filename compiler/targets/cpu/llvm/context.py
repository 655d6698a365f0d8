"""The state of code generation at one point of a function."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dovetail.isa.frozen import frozen

from ....loops.expressions import Buffer, Expr
from ...llvm.values import Linear, Operand, Value
from .emitter import Emitter

__all__ = ["Context", "Place", "Statistics"]


@frozen
class Place:
    """Where a buffer is.

    lanes: above 1, each lane of a vector loop has a buffer of its own, its elements interleaved
    with the other lanes'.  steps: elements from one index to the next in each dimension, where they
    are not those of the buffer's shape.
    """

    buffer: Buffer
    pointer: str
    lanes: int = 1
    steps: tuple[int, ...] | None = None

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next, in each dimension."""
        if self.steps is not None:
            return self.steps
        result, step = [], 1
        for size in reversed(self.buffer.shape):
            result.append(step)
            step *= size
        return tuple(reversed(result))


@dataclass(slots=True)
class Statistics:
    """loops, vectors: emitted so far.  scalar_loops: whether an innermost loop is without lanes."""

    loops: int = 0
    vectors: int = 0
    scalar_loops: bool = False


@dataclass(slots=True)
class Context:
    """Names in scope, and the lanes and the mask of the vector loop code is written for.

    mask: the active lanes; None for all.  some_active: whether at least one is known to be.
    symbol: the function's name in machine code.  parallel: whether it is the body of a parallel
    loop, in which all loops run on one thread.  memo: values of expressions of this statement, the
    last table those of code that is not always done.
    """

    e: Emitter
    function: str
    variables: dict[str, Operand] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    lanes: int = 1
    mask: Value | None = None
    some_active: bool = True
    symbol: str = ""
    threads: int = 1
    parallel: bool = False
    workspace: str = "%workspace"
    workspace_used: int = 0
    workspace_bytes: int = 0
    stack_bytes: int = 0
    unrolled: int = 1
    memo: list[dict[int, Operand]] = field(default_factory=lambda: [{}])
    statistics: Statistics = field(default_factory=Statistics)

    def materialize(self, a: Operand, lanes: int | None = None) -> Value:
        """``a`` in a register, as a vector of ``lanes`` (by default of as many as it has)."""
        e = self.e
        if isinstance(a, Linear):
            lanes = a.lanes
            if a.stride == 0:
                return e.broadcast(a.base, lanes)
            steps = ", ".join(f"i64 {a.stride * lane}" for lane in range(lanes))
            ends = sorted((0, a.stride * (lanes - 1)))
            offsets = Value(f"<{steps}>", a.dtype, lanes, None, ends[0], ends[1])
            if a.base.constant == 0:
                return offsets
            result = e.binary("add", e.broadcast(a.base, lanes), offsets)
            if a.base.low is None or a.base.high is None:
                return result
            low, high = a.base.low + ends[0], a.base.high + ends[1]
            return Value(result.ref, result.dtype, lanes, None, low, high)
        return e.broadcast(a, lanes) if lanes and lanes > 1 else a

    def known(self, expr: Expr) -> Operand | None:
        """Its value, if code that has been done already computed it."""
        for values in reversed(self.memo):
            found = values.get(id(expr))
            if found is not None:
                return found
        return None

    @contextmanager
    def bound(self, name: str, value: Operand) -> Iterator[None]:
        """``name`` stands for ``value`` inside."""
        before = self.variables.get(name)
        self.variables[name] = value
        try:
            yield
        finally:
            if before is None:
                del self.variables[name]
            else:
                self.variables[name] = before

    @contextmanager
    def loop(self) -> Iterator[None]:
        """The body of a loop: notes whether it is an innermost one without lanes."""
        found = self.statistics
        loops, vectors = found.loops, found.vectors
        yield
        found.scalar_loops |= self.lanes == 1 and (loops, vectors) == (found.loops, found.vectors)
        found.loops += 1

    @contextmanager
    def masked(self, mask: Value | None, some_active: bool) -> Iterator[None]:
        """The active lanes inside."""
        before = self.mask, self.some_active
        self.mask, self.some_active = mask, some_active
        try:
            yield
        finally:
            self.mask, self.some_active = before

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Code that is not always done: what it computes is not known after it."""
        self.memo.append({})
        try:
            yield
        finally:
            self.memo.pop()

    def both(self, a: Value | None, b: Value) -> Value:
        """Two masks at once."""
        return b if a is None else self.e.binary("and", a, b)

    def any_lane(self, mask: Value) -> Value:
        """True if a lane of ``mask`` is active."""
        return self.e.op(f"call i1 {self._reduce_or(mask.lanes)}({mask.typed})", mask.dtype)

    def _reduce_or(self, lanes: int) -> str:
        name = f"llvm.vector.reduce.or.v{lanes}i1"
        self.e.module.declare(name, "i1", (f"<{lanes} x i1>",))
        return f"@{name}"

    def common(self, operands: Sequence[Operand]) -> list[Value]:
        """All as values of as many lanes as the widest has."""
        lanes = max(a.lanes for a in operands)
        return [self.materialize(a, lanes) for a in operands]
