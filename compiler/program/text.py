"""Programs as text: the printer; ``parse`` reads it back.

    memory 512
    most_work 1000000000000000
    input x: float32[3, 16]
    output y: float32[16]
    constant w: float32[16, 16] sha256 0123456789abcdef
    call kernel0(h0: constant 1, h: memory + 64)
    loop 3 work 544 from "GRU":
      carry h.next to h
      call kernel1(x: input 0 + 64 * i0, w: constant 0, h.next: memory) from "GRU"
      last:
        call kernel0(h: memory + 64 + 64 * i0 % 2, y: output 0)
    function "kernel0"
      ...

An operand is a tensor and its place: whose memory, an offset in bytes, and what each loop around
adds; ``i0`` is the iteration of the outermost loop, and ``% 2`` means in odd ones only.  Functions
are written as ``loops/text`` writes them.  The elements of constants are not in the text.
"""

import json
from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from ..graph.text import digest
from ..loops.expressions import Buffer
from ..loops.text import name_to_text
from ..loops.text import to_text as function_to_text
from .ir import Call, Item, Loop, Operand, Origin, Place, Program

__all__ = ["ROLES", "to_text"]

ROLES = ("guard", "counter", "condition", "done")
"""Operands of a loop itself."""


def to_text(program: Program) -> str:
    """The program; no newline at the end."""
    lines = [f"memory {program.memory_bytes}", f"most_work {program.most_work}"]
    lines += [f"input {_declared(each)}" for each in program.inputs]
    lines += [f"output {_declared(each)}" for each in program.outputs]
    lines += [_constant(name, array) for name, array in program.constants.items()]
    for item in program.calls:
        lines += _item(item, "")
    lines += map(function_to_text, program.functions)
    return "\n".join(lines)


def _declared(buffer: Buffer) -> str:
    return f"{name_to_text(buffer.name)}: {buffer.dtype}[{', '.join(map(str, buffer.shape))}]"


def _constant(name: str, array: NDArray[Any]) -> str:
    sizes = ", ".join(map(str, array.shape))
    return (
        f"constant {name_to_text(name)}: {array.dtype}[{sizes}] sha256 {json.dumps(digest(array))}"
    )


def _item(item: Item, indent: str) -> Iterator[str]:
    if isinstance(item, Call):
        arguments = ", ".join(map(_operand, item.arguments))
        origins = ", ".join(map(json.dumps, item.origins))
        source = f" from {origins}" if origins else ""
        yield f"{indent}call {name_to_text(item.function)}({arguments}){source}"
        return
    yield f"{indent}{_head(item)}:"
    deeper = indent + "  "
    for role in ROLES:
        operand = getattr(item, role)
        if operand is not None:
            yield f"{deeper}{role} {_operand(operand)}"
    for new, old in item.carried:
        yield f"{deeper}carry {name_to_text(new)} to {name_to_text(old)}"
    for each in item.calls:
        yield from _item(each, deeper)
    if item.last:
        yield f"{deeper}last:"
        for each in item.last:
            yield from _item(each, deeper + "  ")


def _head(loop: Loop) -> str:
    threads = f" threads {loop.threads}" if loop.threads > 1 else ""
    private = f" private {loop.private} + {loop.private_bytes}" if loop.private_bytes else ""
    source = f" from {json.dumps(loop.origin)}"
    return f"loop {loop.count} work {loop.work}{threads}{private}{source}"


def _operand(operand: Operand) -> str:
    return f"{name_to_text(operand.tensor)}: {_place(operand.place)}"


def _place(place: Place) -> str:
    alone = place.origin in (Origin.MEMORY, Origin.PRIVATE)
    parts = [str(place.origin) if alone else f"{place.origin} {place.number}"]
    if place.offset:
        parts.append(str(place.offset))
    for stride in place.strides:
        odd = " % 2" if stride.alternating else ""
        parts.append(f"{stride.bytes} * i{stride.depth}{odd}")
    return " + ".join(parts)
