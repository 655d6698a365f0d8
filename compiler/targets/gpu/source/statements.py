"""Statements of a kernel as text."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import assert_never

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import Binary, Buffer, Constant, Load, MultiplyAdd, Scope
from ....loops.expressions import BinaryFunction as B
from ....loops.intrinsic import BARRIER, PREFETCH
from ....loops.ir import Allocate, Block, For, If, Invoke, Let, LoopKind, Stmt, Store, Update, While
from ..kernels import Kernel, Parameter
from ..scope import bound
from .dialect import Dialect, Held
from .expressions import Expressions

__all__ = ["kernel_text"]


def kernel_text(name: str, kernel: Kernel, dialect: Dialect) -> str:
    """The source of one kernel, called ``name``."""
    writer = _Writer(name, dialect.prepare(kernel), dialect)
    return writer.text()


@dataclass(slots=True)
class _Writer:
    name: str
    kernel: Kernel
    dialect: Dialect
    lines: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    """Arrays of blocks, which stand before a kernel's statements."""
    depth: int = 1
    e: Expressions = field(init=False)

    def __post_init__(self) -> None:
        self.e = Expressions(self.dialect, self.line)

    def line(self, text: str) -> None:
        """A line of the kernel."""
        self.lines.append("  " * self.depth + text)

    def text(self) -> str:
        """All of it."""
        for each in self.dialect.numbers(self.kernel):
            self.line(each)
        for number, parameter in enumerate(self.kernel.parameters):
            self._parameter(number, parameter)
        self.statement(self.kernel.body)
        return self.dialect.kernel(self.name, self.kernel, self.shared, self.lines)

    def _parameter(self, number: int, parameter: Parameter) -> None:
        shape = self.kernel.geometry
        name = self.e.fresh(parameter.buffer.name)
        own = ""
        if parameter.private:
            own = "thread_id" if shape.threads > 1 else self.e.number(0)
            if shape.blocks > 1:
                own = f"block_id * {self.e.number(shape.threads)} + {own}"
        self.line(self.dialect.parameter(number, parameter, own, name))
        self.e.names[parameter.buffer.name] = name

    @contextmanager
    def inside(self, head: str) -> Iterator[None]:
        """Lines in braces."""
        self.line(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def statement(self, stmt: Stmt) -> None:
        """Its lines."""
        match stmt:
            case Block(statements=statements):
                for each in statements:
                    self.statement(each)
            case For(kind=LoopKind.BLOCK | LoopKind.THREAD):
                self._bound(stmt)
            case For():
                self._loop(stmt)
            case While(condition=condition, body=body):
                with self.inside("while (true)"):
                    self.line(f"if (!{self.e.texts(condition)[0]}) break;")
                    self.statement(body)
            case If(condition=condition, then=then, otherwise=otherwise):
                with self.inside(f"if ({self.e.texts(condition)[0]})"):
                    self.statement(then)
                if otherwise is not None:
                    with self.inside("else"):
                        self.statement(otherwise)
            case Allocate():
                self._allocate(stmt)
            case Let(variable=variable, value=value, body=body):
                name = self.e.fresh(variable.name)
                self.line(self.dialect.let(variable.dtype, name, self.e.texts(value)[0]))
                with bound(self.e.names, variable.name, name):
                    self.statement(body)
            case Store(buffer=buffer, indices=indices, value=value):
                self._write(buffer, *self.e.texts(value, *indices))
            case Update():
                self._update(stmt)
            case Invoke(intrinsic=name):
                if name == BARRIER:
                    self.line(self.dialect.barrier)
                elif name != PREFETCH:
                    raise GraphError(f"a GPU has no intrinsic {name!r}")
            case _:
                assert_never(stmt)

    def _loop(self, stmt: For) -> None:
        (extent,) = self.e.texts(stmt.extent)
        name = self.e.fresh(stmt.variable)
        if not isinstance(stmt.extent, Constant):
            last = self.e.fresh("n")
            self.line(self.dialect.let(self.dialect.index, last, extent))
            extent = last
        if stmt.kind is LoopKind.UNROLLED and self.dialect.unroll:
            self.line(self.dialect.unroll)
        head = self.dialect.loop(name, extent)
        with self.inside(head), bound(self.e.names, stmt.variable, name):
            self.statement(stmt.body)

    def _bound(self, stmt: For) -> None:
        """The iteration of this block or thread, if there is one for it."""
        shape = self.kernel.geometry
        axis = shape.axes[stmt.variable]
        is_block = stmt.kind is LoopKind.BLOCK
        number, count = ("block_id", shape.blocks) if is_block else ("thread_id", shape.threads)
        index = self.e.number
        value = f"{number} / {index(axis.stride)}" if axis.stride > 1 else number
        if axis.stride * axis.extent < axis.total:
            value = f"{value} % {index(axis.extent)}"
        if axis.extent == 1:
            value = index(0)
        outermost = axis.stride * axis.extent == axis.total
        guard = f"if ({number} < {index(axis.total)})" if outermost and axis.total < count else ""
        with self.inside(guard) if guard else nullcontext():
            name = self.e.fresh(stmt.variable)
            self.line(self.dialect.let(self.dialect.index, name, value))
            with bound(self.e.names, stmt.variable, name):
                self.statement(stmt.body)

    def _allocate(self, stmt: Allocate) -> None:
        buffer = stmt.buffer
        shared = buffer.scope is Scope.SHARED
        name = self.e.fresh(f"{self.name}.{buffer.name}" if shared else buffer.name)
        held = Held.SCALAR if buffer.elements == 1 and not shared else Held.ARRAY
        if held is Held.SCALAR:
            self.line(self.dialect.scalar(buffer.dtype, name))
        else:
            array = self.dialect.array(buffer.dtype, name, buffer.elements or 1, shared)
            (self.shared.append if shared else self.line)(array)
        with bound(self.e.names, buffer.name, name), bound(self.e.held, buffer.name, held):
            self.statement(stmt.body)

    def _write(self, buffer: Buffer, value: str, *indices: str) -> None:
        place = self.e.place(buffer, list(indices))
        self.line(self.dialect.store(buffer.dtype, *place, value))

    def _update(self, stmt: Update) -> None:
        old = Load(stmt.buffer, stmt.indices)
        value = stmt.value
        exact = stmt.buffer.dtype is DType.FLOAT32 and stmt.function is B.ADD
        new = Binary(stmt.function, old, value)
        if exact and isinstance(value, Binary) and value.function is B.MUL:
            self._write(
                stmt.buffer, *self.e.texts(MultiplyAdd(value.left, value.right, old), *stmt.indices)
            )
            return
        self._write(stmt.buffer, *self.e.texts(new, *stmt.indices))
