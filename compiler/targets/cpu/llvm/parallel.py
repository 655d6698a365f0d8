"""Parallel loops: the body as a function of its own, run in chunks on the threads of the pool.

``void body(ptr closure, i64 first, i64 last, i64 thread)`` reads what it needs of the surrounding
function from the closure, then calls ``inner`` with it, so that LLVM knows that the pointers are
of different memory.  Each thread has its own part of the workspace.
"""

from collections.abc import Callable
from dataclasses import replace

from ....dtypes import DType
from ....loops.ir import For, Invoke, Stmt, Store, Update
from ....loops.traverse import loads, variables, walk
from ...llvm.values import Value, memory_type
from .context import Context, Place
from .emitter import Emitter
from .pool_text import RUN

__all__ = ["parallel"]

Serial = Callable[[Context, str, Value, Value, Stmt], None]
"""Emits a loop from one value to another."""


def parallel(context: Context, loop: For, extent: Value, serial: Serial) -> None:
    """Emit ``loop`` as a call of the pool, and its body as two functions."""
    names = sorted(variables(loop.body) - {loop.variable})
    captured: dict[str, Value] = {}
    inner_variables = dict(context.variables)
    e = Emitter(context.e.module)
    for name in names:
        found = context.variables.get(name)
        if isinstance(found, Value) and found.constant is None:
            captured[name] = found
            given = replace(found, ref=f"%in.{len(captured) - 1}")
            if found.dtype is DType.BOOL:
                given = e.convert("trunc", replace(given, dtype=DType.UINT8), DType.BOOL)
            inner_variables[name] = given
    places = {name: context.places[name] for name in _buffers(loop.body) & context.places.keys()}
    inner_places = {
        name: Place(place.buffer, f"%at.{number}")
        for number, (name, place) in enumerate(sorted(places.items()))
    }
    inner = Context(
        e,
        context.function,
        inner_variables,
        inner_places,
        threads=context.threads,
        parallel=True,
        symbol=context.symbol,
        statistics=context.statistics,
        unrolled=context.unrolled,
    )
    number = sum(name.startswith(f"{context.symbol}.body") for name in e.module.definitions)
    body = f"{context.symbol}.body{number}"
    serial(
        inner, loop.variable, Value("%first", DType.INT64), Value("%last", DType.INT64), loop.body
    )
    parameters = [(place.pointer, "ptr noalias") for _, place in sorted(inner_places.items())]
    parameters += [
        (f"%in.{number}", memory_type(value.dtype))
        for number, value in enumerate(captured.values())
    ]
    parameters += [("%workspace", "ptr noalias"), ("%first", "i64"), ("%last", "i64")]
    _define(context, body, e, parameters, captured, inner.workspace_bytes)
    _call(context, body, [place.pointer for _, place in sorted(places.items())], captured, extent)
    most = context.workspace_used + inner.workspace_bytes * context.threads
    context.workspace_bytes = max(context.workspace_bytes, most)


def _buffers(body: Stmt) -> set[str]:
    found = {load.buffer.name for load in loads(body)}
    for stmt in walk(body):
        match stmt:
            case Store() | Update():
                found.add(stmt.buffer.name)
            case Invoke():
                found |= {region.buffer.name for region in stmt.operands}
            case _:
                pass
    return found


def _define(
    context: Context,
    body: str,
    e: Emitter,
    parameters: list[tuple[str, str]],
    captured: dict[str, Value],
    stride: int,
) -> None:
    """The two functions; bool travels as a byte."""
    typed = ", ".join(f"{kind} {name}" for name, kind in parameters)
    lines = [
        f"define internal void @{body}.inner({typed}) noinline {{",
        e.body(),
        "  ret void",
        "}",
    ]
    lines.append(
        f"define internal void @{body}(ptr %closure, i64 %first, i64 %last, i64 %thread) {{"
    )
    arguments = []
    for slot, (name, kind) in enumerate(parameters[:-2]):
        kind = kind.removesuffix(" noalias")
        lines.append(f"  %slot.{slot} = getelementptr i8, ptr %closure, i64 {8 * slot}")
        if name == "%workspace":
            lines.append(f"  %base = load {kind}, ptr %slot.{slot}")
            lines.append(f"  %mine = mul i64 %thread, {stride}")
            lines.append(f"  %value.{slot} = getelementptr i8, ptr %base, i64 %mine")
        else:
            lines.append(f"  %value.{slot} = load {kind}, ptr %slot.{slot}")
        arguments.append(f"{kind} %value.{slot}")
    arguments += ["i64 %first", "i64 %last"]
    lines += [f"  call void @{body}.inner({', '.join(arguments)})", "  ret void", "}"]
    context.e.module.define(body, "\n".join(lines))


def _call(
    context: Context, body: str, pointers: list[str], captured: dict[str, Value], extent: Value
) -> None:
    e = context.e
    count = len(pointers) + len(captured) + 1
    closure = e.slot(count, "i64", 8)
    base = e.op(
        f"getelementptr inbounds i8, ptr {context.workspace}, i64 {context.workspace_used}",
        DType.INT64,
    )
    held = [f"ptr {pointer}" for pointer in pointers]
    for value in captured.values():
        if value.dtype is DType.BOOL:
            value = e.convert("zext", value, DType.UINT8)
        held.append(value.typed)
    for slot, text in enumerate((*held, f"ptr {base.ref}")):
        place = e.op(f"getelementptr inbounds i8, ptr {closure}, i64 {8 * slot}", DType.INT64)
        e.line(f"store {text}, ptr {place.ref}")
    e.module.declare(RUN, "void", ("ptr", "ptr", "ptr", "i64", "i64"))
    arguments = f"ptr %context, ptr @{body}, ptr {closure}, {extent.typed}, i64 {context.threads}"
    e.line(f"call void @{RUN}({arguments})")
