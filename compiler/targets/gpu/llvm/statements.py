"""Statements of a kernel as instructions."""

from dataclasses import dataclass, field
from typing import assert_never

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import Binary, Buffer, Constant, Load, MultiplyAdd, Scope
from ....loops.expressions import BinaryFunction as B
from ....loops.fills import fill_of
from ....loops.intrinsic import BARRIER, PREFETCH, WAIT, WAIT_BEFORE
from ....loops.ir import Allocate, Block, For, If, Invoke, Let, LoopKind, Stmt, Store, Update, While
from ..fragments import FRAGMENTS
from ..kernels import Kernel, Parameter
from ..maths import with_plain_functions
from ..scope import bound
from ..shared import ALIGNED_BYTES, group_count, group_sums
from ..tensor_cores import BESIDE, COPIES, PRODUCTS
from ..warpgroups import GROUP_PRODUCTS
from .emitter import Emitter, element_type
from .expressions import Address, Expressions
from .fragments import emit_fragment
from .machine import Machine
from .tensor_cores import emit_copy, emit_fill, emit_product
from .warpgroups import emit_group_product, emit_group_wait

__all__ = ["KernelWriter"]

GLOBAL, SHARED = 1, 3
"""Address spaces, of all machines."""
ENDED, ENDED_BUT = "llvm.nvvm.cp.async.wait.all", "llvm.nvvm.cp.async.wait.group"
COMMITTED = "llvm.nvvm.cp.async.commit.group"
MOST = 64
"""Iterations that are written out."""


@dataclass(slots=True)
class KernelWriter:
    """The text of one kernel, whose parameters are pointers; shared: arrays around it."""

    name: str
    kernel: Kernel
    machine: Machine
    e: Emitter = field(default_factory=Emitter)
    shared: list[str] = field(default_factory=list)
    x: Expressions = field(init=False)
    _numbers: dict[LoopKind, str] = field(default_factory=dict)
    _sums: tuple[Buffer, ...] = ()
    _given: str = ""
    """Where the memory that the launch gives begins."""

    def __post_init__(self) -> None:
        self.x = Expressions(self.e, self.machine.extremes)
        self._sums = group_sums(self.kernel.body)

    def text(self) -> str:
        """The function."""
        e, shape = self.e, self.kernel.geometry
        for kind, count in ((LoopKind.BLOCK, shape.blocks), (LoopKind.THREAD, shape.threads)):
            self._numbers[kind] = "0"
            if count > 1:
                self._numbers[kind] = self.machine.number(e, kind)
        given = []
        for number, parameter in enumerate(self.kernel.parameters):
            known = "noalias"
            if parameter.alignment > 1 and not self.machine.offsets:
                known += f" align {parameter.alignment}"
            given.append(f"ptr addrspace({GLOBAL}) {known} %p{number}")
            given += [f"i64 %offset{number}"] * self.machine.offsets
            self.x.addresses[parameter.buffer.name] = self._parameter(number, parameter)
        if self.kernel.shared.size:
            self._given = self._given_memory()
        self.statement(with_plain_functions(self.kernel.body))
        e.line("ret void")
        head = f"define {self.machine.convention} void @{self.name}({', '.join(given)}) {{\nentry:"
        return "\n".join((*self.shared, head, *e.allocas, *e.lines, "}"))

    def _parameter(self, number: int, parameter: Parameter) -> Address:
        pointer = f"%p{number}"
        if self.machine.offsets:
            where = f"ptr addrspace({GLOBAL}) {pointer}, i64 %offset{number}"
            pointer = self.e.op(f"getelementptr i8, {where}")
        if parameter.private:
            e, buffer = self.e, parameter.buffer
            block, thread = self._numbers[LoopKind.BLOCK], self._numbers[LoopKind.THREAD]
            first = e.op(f"mul nsw i64 {block}, {self.kernel.geometry.threads}")
            own = e.op(f"add nsw i64 {first}, {thread}")
            place = e.op(f"mul nsw i64 {own}, {buffer.elements}")
            kind = element_type(buffer.dtype)
            pointer = e.op(f"getelementptr {kind}, ptr addrspace({GLOBAL}) {pointer}, i64 {place}")
        return Address(pointer, GLOBAL)

    def statement(self, stmt: Stmt) -> None:
        """Its instructions; values that it loads may change with the next one."""
        self.x.memo = [{}]
        match stmt:
            case Block(statements=statements):
                for each in statements:
                    self.statement(each)
            case For(kind=LoopKind.BLOCK | LoopKind.THREAD):
                self._bound(stmt)
            case For(kind=LoopKind.UNROLLED, extent=Constant(value=count)) if count <= MOST:
                for number in range(int(count)):
                    with bound(self.x.variables, stmt.variable, str(number)):
                        self.statement(stmt.body)
            case For():
                self._loop(stmt)
            case While(condition=condition, body=body):
                head, inside, end = (self.e.label(each) for each in ("while", "do", "done"))
                self.e.jump(head)
                self.e.start(head)
                self.e.branch(self.x.evaluate(condition)[0], inside, end)
                self.e.start(inside)
                self.statement(body)
                self.e.jump(head)
                self.e.start(end)
            case If(condition=condition) if (fill := fill_of(stmt)) and fill[0].intrinsic in COPIES:
                emit_fill(self.x, fill[0], self.x.evaluate(condition)[0])
            case If(condition=condition, then=then, otherwise=otherwise):
                self._if(self.x.evaluate(condition)[0], then, otherwise)
            case Allocate(buffer=buffer, body=body):
                with bound(self.x.addresses, buffer.name, self._allocated(buffer)):
                    self.statement(body)
            case Let(variable=variable, value=value, body=body):
                with bound(self.x.variables, variable.name, self.x.evaluate(value)[0]):
                    self.statement(body)
            case Store(buffer=buffer, indices=indices, value=value):
                found, *places = self.x.evaluate(value, *indices)
                self.x.store(buffer, tuple(places), found)
            case Update():
                self._update(stmt)
            case Invoke(intrinsic=name):
                if name == BARRIER:
                    self.machine.wait(self.e)
                elif name in (WAIT, WAIT_BEFORE):
                    self._wait(name == WAIT_BEFORE)
                elif name in COPIES:
                    emit_copy(self.x, stmt)
                elif name in PRODUCTS or name in BESIDE:
                    emit_product(self.x, stmt)
                elif name in FRAGMENTS:
                    emit_fragment(self.x, stmt)
                elif name in GROUP_PRODUCTS:
                    emit_group_product(self.x, stmt)
                elif name != PREFETCH:
                    raise GraphError(f"a GPU has no intrinsic {name!r}")
            case _:
                assert_never(stmt)

    def _wait(self, before: bool) -> None:
        """Wait for the copies and products of its warpgroup that the thread began.

        before: only for those from before the last wait.
        """
        if before:
            self.e.call(COMMITTED, "void")
            self.e.call(ENDED_BUT, "void", ("i32", "1"))
        else:
            self.e.call(ENDED, "void")
        if self._sums:
            emit_group_wait(self.x, self._sums, group_count(self.kernel.body) if before else 0)

    def _if(self, condition: str, then: Stmt, otherwise: Stmt | None) -> None:
        first, second, end = (self.e.label(each) for each in ("then", "else", "end"))
        self.e.branch(condition, first, second if otherwise is not None else end)
        self.e.start(first)
        self.statement(then)
        self.e.jump(end)
        if otherwise is not None:
            self.e.start(second)
            self.statement(otherwise)
            self.e.jump(end)
        self.e.start(end)

    def _loop(self, stmt: For) -> None:
        """Tested before each iteration."""
        e = self.e
        (extent,) = self.x.evaluate(stmt.extent)
        before = e.block
        head, inside, end = (e.label(each) for each in ("loop", "body", "done"))
        e.jump(head)
        e.start(head)
        at, counter, following = len(e.lines), e.name("i"), e.name("n")
        e.lines.append("")
        e.branch(e.op(f"icmp slt i64 {counter}, {extent}"), inside, end)
        e.start(inside)
        with bound(self.x.variables, stmt.variable, counter):
            self.statement(stmt.body)
        e.line(f"{following} = add nuw nsw i64 {counter}, 1")
        e.lines[at] = f"  {counter} = phi i64 [ 0, %{before} ], [ {following}, %{e.block} ]"
        e.jump(head)
        e.start(end)

    def _bound(self, stmt: For) -> None:
        """The iteration of this block or thread, if there is one for it."""
        e, shape = self.e, self.kernel.geometry
        axis, number = shape.axes[stmt.variable], self._numbers[stmt.kind]
        count = shape.blocks if stmt.kind is LoopKind.BLOCK else shape.threads
        value, span = number, axis.stride * axis.extent
        if axis.stride > 1:
            value = e.op(f"udiv i64 {value}, {axis.stride}")
        if span < axis.total:
            value = e.op(f"urem i64 {value}, {axis.extent}")
        if axis.extent == 1:
            value = "0"
        end = ""
        if span == axis.total < count:
            inside, end = e.label("bound"), e.label("end")
            e.branch(e.op(f"icmp ult i64 {number}, {axis.total}"), inside, end)
            e.start(inside)
        with bound(self.x.variables, stmt.variable, value):
            self.statement(stmt.body)
        if end:
            e.jump(end)
            e.start(end)

    def _allocated(self, buffer: Buffer) -> Address:
        kind = f"[{buffer.elements or 1} x {element_type(buffer.dtype)}]"
        if buffer.scope is not Scope.SHARED:
            private = self.machine.private
            return Address(self.e.alloca(kind, private), private)
        space = f"addrspace({SHARED})"
        given = self.kernel.shared
        if buffer.name in given.offsets:
            place = f"ptr {space} {self._given}, i64 {given.offsets[buffer.name]}"
            pointer = self.e.op(f"getelementptr inbounds i8, {place}")
            return Address(pointer, SHARED, buffer.name in given.swizzled)
        name = f"@{self.name}.shared{len(self.shared)}"
        self.shared.append(f"{name} = internal {space} global {kind} undef, align 16")
        return Address(name, SHARED)

    def _given_memory(self) -> str:
        """The start of the memory that the launch provides, a multiple of ``ALIGNED_BYTES``."""
        e, name, space = self.e, f"@{self.name}_given", f"addrspace({SHARED})"
        self.shared.append(f"{name} = external {space} global [0 x i8], align 16")
        place = e.op(f"ptrtoint ptr {space} {name} to i64")
        above = e.op(f"add i64 {place}, {ALIGNED_BYTES - 1}")
        return e.op(f"inttoptr i64 {e.op(f'and i64 {above}, -{ALIGNED_BYTES}')} to ptr {space}")

    def _update(self, stmt: Update) -> None:
        buffer, value = stmt.buffer, stmt.value
        old = Load(buffer, stmt.indices)
        fused = buffer.dtype is DType.FLOAT32 and stmt.function is B.ADD
        new: Binary | MultiplyAdd = Binary(stmt.function, old, value)
        if fused and isinstance(value, Binary) and value.function is B.MUL:
            new = MultiplyAdd(value.left, value.right, old)
        found, *places = self.x.evaluate(new, *stmt.indices)
        self.x.store(buffer, tuple(places), found)
