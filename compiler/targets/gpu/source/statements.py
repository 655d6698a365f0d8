"""Statements of a kernel as text."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import assert_never

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import Binary, Buffer, Load, MultiplyAdd, Scope
from ....loops.expressions import BinaryFunction as B
from ....loops.intrinsic import BARRIER, PREFETCH
from ....loops.ir import (
    Allocate,
    Block,
    For,
    If,
    Invoke,
    Let,
    LoopKind,
    Stmt,
    Store,
    Update,
    While,
)
from ..kernels import Kernel, Parameter
from ..scope import bound
from .arithmetic import Helpers
from .dialect import Dialect
from .expressions import Expressions

__all__ = ["kernel_text"]


def kernel_text(name: str, kernel: Kernel, dialect: Dialect, helpers: Helpers) -> str:
    """The source of one kernel, called ``name``.

    Its parameters are pairs: where a memory begins, and how many bytes behind it the buffer does.
    """
    writer = _Writer(kernel, dialect, helpers)
    return writer.kernel(name)


@dataclass(slots=True)
class _Writer:
    kernel_: Kernel
    dialect: Dialect
    helpers: Helpers
    lines: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    """Arrays of blocks, which stand at the head of a kernel."""
    depth: int = 1
    e: Expressions = field(init=False)

    def __post_init__(self) -> None:
        self.e = Expressions(self.dialect, self.helpers, self.line)

    def line(self, text: str) -> None:
        """A line of the kernel."""
        self.lines.append("  " * self.depth + text)

    def kernel(self, name: str) -> str:
        """All of it."""
        kernel, space = self.kernel_, self.dialect.global_
        count = len(kernel.parameters)
        given = [f"{space}char *p{number}, ulong o{number}" for number in range(count)]
        if kernel.geometry.blocks > 1:
            self.line(f"const long block = {self.dialect.block};")
        if kernel.geometry.threads > 1:
            self.line(f"const long thread = {self.dialect.thread};")
        for number, parameter in enumerate(kernel.parameters):
            self._parameter(number, parameter)
        self.statement(kernel.body)
        head = f"{self.dialect.kernel} void {name}({', '.join(given)}) {{"
        shared = (f"  {each}" for each in self.shared)
        return "\n".join((head, *shared, *self.lines, "}"))

    def _parameter(self, number: int, parameter: Parameter) -> None:
        buffer, shape = parameter.buffer, self.kernel_.geometry
        kind = f"{self.dialect.global_}{self.dialect.element(buffer.dtype)}"
        name = self.e.fresh(buffer.name)
        place = f"({kind} *)(p{number} + o{number})"
        if parameter.private:
            own = "thread" if shape.threads > 1 else "0"
            if shape.blocks > 1:
                own = f"block * {shape.threads} + {own}"
            place = f"{place} + ({own}) * {buffer.elements}L"
        self.line(f"{kind} *{name} = {place};")
        self.e.names[buffer.name] = name

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
                kind = self.dialect.type(variable.dtype)
                self.line(f"const {kind} {name} = {self.e.texts(value)[0]};")
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
        if stmt.kind is LoopKind.UNROLLED:
            self.line("#pragma unroll")
        head = f"for (long {name} = 0, n{name} = {extent}; {name} < n{name}; {name}++)"
        if extent.endswith("L"):
            head = f"for (long {name} = 0; {name} < {extent}; {name}++)"
        with self.inside(head), bound(self.e.names, stmt.variable, name):
            self.statement(stmt.body)

    def _bound(self, stmt: For) -> None:
        """The iteration of this block or thread, if there is one for it."""
        shape = self.kernel_.geometry
        axis = shape.axes[stmt.variable]
        is_block = stmt.kind is LoopKind.BLOCK
        number, count = ("block", shape.blocks) if is_block else ("thread", shape.threads)
        value = f"{number} / {axis.stride}L" if axis.stride > 1 else number
        if axis.stride * axis.extent < axis.total:
            value = f"{value} % {axis.extent}L"
        if axis.extent == 1:
            value = "0L"
        outermost = axis.stride * axis.extent == axis.total
        guard = f"if ({number} < {axis.total}L)" if outermost and axis.total < count else ""
        with self.inside(guard) if guard else nullcontext():
            name = self.e.fresh(stmt.variable)
            self.line(f"const long {name} = {value};")
            with bound(self.e.names, stmt.variable, name):
                self.statement(stmt.body)

    def _allocate(self, stmt: Allocate) -> None:
        buffer = stmt.buffer
        name = self.e.fresh(buffer.name)
        kind = self.dialect.element(buffer.dtype)
        is_scalar = buffer.elements == 1 and buffer.scope is not Scope.SHARED
        if buffer.scope is Scope.SHARED:
            kind = f"{self.dialect.shared}{kind}"
        before = set(self.e.scalars)
        self.e.scalars.discard(buffer.name)
        if is_scalar:
            self.e.scalars.add(buffer.name)
        with bound(self.e.names, buffer.name, name):
            place = self.line if buffer.scope is not Scope.SHARED else self.shared.append
            place(f"{kind} {name};" if is_scalar else f"{kind} {name}[{buffer.elements or 1}];")
            self.statement(stmt.body)
        self.e.scalars.clear()
        self.e.scalars.update(before)

    def _write(self, buffer: Buffer, value: str, *indices: str) -> None:
        element = self.e.element(buffer, list(indices))
        self.line(f"{element} = {self.e.stored(buffer.dtype, value)};")

    def _update(self, stmt: Update) -> None:
        old = Load(stmt.buffer, stmt.indices)
        value = stmt.value
        exact = stmt.buffer.dtype is DType.FLOAT32 and stmt.function is B.ADD
        new = Binary(stmt.function, old, value)
        if exact and isinstance(value, Binary) and value.function is B.MUL:
            self._write(
                stmt.buffer,
                *self.e.texts(MultiplyAdd(value.left, value.right, old), *stmt.indices),
            )
            return
        self._write(stmt.buffer, *self.e.texts(new, *stmt.indices))
