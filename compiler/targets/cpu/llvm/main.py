"""The text of a program's ``main``: addresses, calls, loops.

    int32 main(ptr pool, ptr memory, ptr* inputs, ptr* outputs, ptr* constants)

memory holds what the calls pass on to each other, and behind it the workspace of the calls; it is
aligned to 64 bytes.  The result is 0, or ``FIRST_STOP`` and more: the loop that was stopped, as it
came to more work than is allowed.  A program that is to be timed reads a clock before its first
call or loop, and after each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dovetail.runtime.native.program import FIRST_STOP

from ....program.ir import Call, Loop, Origin, Place, Program, all_operands
from ....program.memory import aligned
from .cache import BuiltFunction
from .emitter import ModuleText
from .pool_text import RUN
from .target import CpuTarget

__all__ = ["main_text", "memory_bytes"]

PARAMETERS = "ptr %pool, ptr %memory, ptr %inputs, ptr %outputs, ptr %constants"
CLOCK = "llvm.readcyclecounter"
"""A counter of even steps that programs may read: TSC of x86-64, CNTVCT of aarch64."""
CLOSURE = ("pool", "memory", "inputs", "outputs", "constants", "workspace")
"""Pointers given to the threads of a loop, one each."""


def main_text(
    program: Program,
    built: Sequence[BuiltFunction],
    target: CpuTarget,
    symbol: str,
    timed: bool = False,
) -> str:
    """LLVM's assembly of ``main``; built: the program's functions, in its order.

    timed: with clocks, int64 behind ``memory_bytes``, one more than calls and loops.
    """
    symbols = {f.name: each.symbol for f, each in zip(program.functions, built, strict=True)}
    writer = _Writer(ModuleText(target), symbols, symbol, _workspace_bytes(built))
    writer.line(f"%workspace = getelementptr i8, ptr %memory, i64 {aligned(program.memory_bytes)}")
    writer.line("%rest = alloca i64")
    writer.line(f"store i64 {min(program.most_work, 2**62)}, ptr %rest")
    names: dict[Place, str] = {}
    clocks = memory_bytes(program, built)
    for number, each in enumerate(program.calls):
        if timed:
            writer.clock(clocks + 8 * number)
        writer.items((each,), names, ())
    if timed:
        writer.clock(clocks + 8 * len(program.calls))
    writer.line("ret i32 0")
    body = "\n".join(writer.lines)
    writer.module.define(symbol, f"define i32 @{symbol}({PARAMETERS}) {{\nentry:\n{body}\n}}")
    return writer.module.text()


def memory_bytes(program: Program, built: Sequence[BuiltFunction]) -> int:
    """Size of ``main``'s memory: the program's, and a workspace for each thread that calls."""
    threads = max((each.threads for each in program.calls if isinstance(each, Loop)), default=1)
    return aligned(program.memory_bytes) + threads * _workspace_bytes(built)


def _workspace_bytes(built: Sequence[BuiltFunction]) -> int:
    """Size of a workspace that is enough for each of the functions."""
    return aligned(max((each.workspace_bytes for each in built), default=0))


@dataclass(slots=True)
class _Writer:
    """Appends lines; ``indices`` are the iterations of the loops around, the outermost first."""

    module: ModuleText
    symbols: dict[str, str]
    symbol: str
    workspace: int
    """Bytes that a thread has for the functions it calls."""
    lines: list[str] = field(default_factory=list)
    block: str = "entry"
    count: int = 0
    stops: int = 0

    def line(self, text: str) -> None:
        """An instruction."""
        self.lines.append(f"  {text}")

    def value(self, text: str) -> str:
        """An instruction with a result; its name."""
        self.count += 1
        self.line(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def start(self, label: str) -> None:
        """The block that follows."""
        self.lines.append(f"{label}:")
        self.block = label

    def clock(self, offset: int) -> None:
        """Read the clock into the memory."""
        self.module.declare(CLOCK, "i64", [])
        now = self.value(f"call i64 @{CLOCK}()")
        slot = self.value(f"getelementptr i8, ptr %memory, i64 {offset}")
        self.line(f"store i64 {now}, ptr {slot}")

    def items(
        self, items: Sequence[Call | Loop], names: dict[Place, str], indices: tuple[str, ...]
    ) -> None:
        """Calls and loops; names: of the addresses known so far, to which it adds."""
        for each in items:
            if isinstance(each, Loop):
                self.loop(each, names, indices)
                continue
            arguments = ["ptr %pool", "ptr %workspace"]
            arguments += [f"ptr {self.address(a.place, names, indices)}" for a in each.arguments]
            callee = self.symbols[each.function]
            self.module.declare(callee, "void", ["ptr"] * len(arguments))
            self.line(f"call void @{callee}({', '.join(arguments)})")

    def address(self, place: Place, names: dict[Place, str], indices: tuple[str, ...]) -> str:
        """Address of ``place`` in this iteration."""
        if place in names:
            return names[place]
        found = "%memory"
        if place.origin is Origin.PRIVATE:
            found = "%private"
        elif place.origin is not Origin.MEMORY:
            slot = self.value(f"getelementptr ptr, ptr %{place.origin}s, i64 {place.number}")
            found = self.value(f"load ptr, ptr {slot}")
        if place.offset:
            found = self.value(f"getelementptr i8, ptr {found}, i64 {place.offset}")
        for stride in place.strides:
            index = indices[stride.depth]
            if stride.alternating:
                index = self.value(f"and i64 {index}, 1")
            step = self.value(f"mul i64 {index}, {stride.bytes}")
            found = self.value(f"getelementptr i8, ptr {found}, i64 {step}")
        names[place] = found
        return found

    def loop(self, loop: Loop, names: dict[Place, str], indices: tuple[str, ...]) -> None:
        """A loop here, or one that threads share."""
        if loop.threads > 1:
            self.share(loop)
        else:
            self.repeat(loop, names, indices, ("0", str(min(loop.count, 2**62))))

    def share(self, loop: Loop) -> None:
        """The loop as a function of its own, which the pool calls for ranges of iterations."""
        self.count += 1
        body, number = f"{self.symbol}.loop{self.count}", self.count
        inner = _Writer(self.module, self.symbols, body, self.workspace)
        for place, name in enumerate(CLOSURE):
            slot = "workspaces" if name == "workspace" else name
            inner.line(f"%slot.{place} = getelementptr ptr, ptr %closure, i64 {place}")
            inner.line(f"%{slot} = load ptr, ptr %slot.{place}")
        inner.line(f"%own.0 = mul i64 %thread, {self.workspace}")
        inner.line("%workspace = getelementptr i8, ptr %workspaces, i64 %own.0")
        inner.line(f"%own.1 = mul i64 %thread, {loop.private_bytes}")
        inner.line(f"%own.2 = add i64 %own.1, {loop.private}")
        inner.line("%private = getelementptr i8, ptr %memory, i64 %own.2")
        inner.repeat(loop, {}, (), ("%first", "%last"))
        inner.line("ret void")
        parameters = "ptr %closure, i64 %first, i64 %last, i64 %thread"
        text = "\n".join(inner.lines)
        self.module.define(
            body, f"define internal void @{body}({parameters}) {{\nentry:\n{text}\n}}"
        )
        self.line(f"%closure{number} = alloca [{len(CLOSURE)} x ptr]")
        for place, name in enumerate(CLOSURE):
            slot = self.value(f"getelementptr ptr, ptr %closure{number}, i64 {place}")
            self.line(f"store ptr %{name}, ptr {slot}")
        self.module.declare(RUN, "void", ("ptr", "ptr", "ptr", "i64", "i64"))
        arguments = f"ptr %pool, ptr @{body}, ptr %closure{number}, i64 {loop.count}"
        self.line(f"call void @{RUN}({arguments}, i64 {loop.threads})")

    def repeat(
        self, loop: Loop, names: dict[Place, str], indices: tuple[str, ...], limits: tuple[str, str]
    ) -> None:
        """A block that is entered at once, or past a guard, for iterations between two values."""
        depth = len(indices)
        for operand in all_operands((loop,)):
            if all(stride.depth < depth for stride in operand.place.strides):
                self.address(operand.place, names, indices)
        self.count += 1
        number, before = self.count, self.block
        if loop.guard is not None:
            enter = self.holds(loop.guard.place, names, indices)
            self.line(f"br i1 {enter}, label %loop{number}, label %done{number}")
        else:
            self.line(f"br label %loop{number}")
        at = len(self.lines) + 1
        self.start(f"loop{number}")
        index, following = f"%i{number}", f"%n{number}"
        self.line("")
        inner = dict(names)
        if loop.counter is not None:
            self.line(f"store i64 {index}, ptr {self.address(loop.counter.place, inner, indices)}")
        self.items(loop.calls, inner, (*indices, index))
        self.line(f"{following} = add i64 {index}, 1")
        again = self.value(f"icmp slt i64 {following}, {limits[1]}")
        if loop.condition is not None:
            again = self.condition(loop, loop.condition.place, again, inner, indices)
        phi = f"phi i64 [ {limits[0]}, %{before} ], [ {following}, %{self.block} ]"
        self.lines[at] = f"  {index} = {phi}"
        self.line(f"br i1 {again}, label %loop{number}, label %done{number}")
        end = self.block
        self.start(f"done{number}")
        if loop.guard is not None:
            following = self.value(f"phi i64 [ 0, %{before} ], [ {following}, %{end} ]")
        if loop.done is not None:
            self.line(f"store i64 {following}, ptr {self.address(loop.done.place, names, indices)}")
        self.items(loop.last, dict(names), (*indices, following))

    def condition(
        self,
        loop: Loop,
        place: Place,
        again: str,
        names: dict[Place, str],
        indices: tuple[str, ...],
    ) -> str:
        """The condition for another iteration; ends ``main`` when no work is left for it."""
        number, self.stops = self.stops, self.stops + 1
        holds = self.holds(place, names, indices)
        again = self.value(f"and i1 {again}, {holds}")
        rest = self.value("load i64, ptr %rest")
        rest = self.value(f"sub i64 {rest}, {min(max(loop.work, 1), 2**62)}")
        self.line(f"store i64 {rest}, ptr %rest")
        spent = self.value(f"icmp slt i64 {rest}, 0")
        stop = self.value(f"and i1 {again}, {spent}")
        self.line(f"br i1 {stop}, label %stop{number}, label %go{number}")
        self.start(f"stop{number}")
        self.line(f"ret i32 {FIRST_STOP + number}")
        self.start(f"go{number}")
        return again

    def holds(self, place: Place, names: dict[Place, str], indices: tuple[str, ...]) -> str:
        """The condition that the bool at ``place`` is true."""
        byte = self.value(f"load i8, ptr {self.address(place, names, indices)}")
        return self.value(f"icmp ne i8 {byte}, 0")
