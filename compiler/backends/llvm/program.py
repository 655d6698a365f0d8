"""A sequence of calls of functions as one function, ``main``.

    int32 main(ptr pool, ptr memory, ptr* inputs, ptr* outputs, ptr* constants)

memory holds what the calls pass on to each other, and behind it the workspace of the calls; it is
aligned to 64 bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numpy.typing import NDArray

from ...errors import GraphError
from ...loops.expressions import Buffer
from ...loops.ir import Function
from .cache import BuiltFunction
from .emitter import ModuleText
from .target import CpuTarget

__all__ = ["ALIGNMENT", "Call", "Origin", "Place", "Program", "main_text", "memory_bytes"]

ALIGNMENT = 64


class Origin(StrEnum):
    """Whose memory an argument is in."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Place:
    """An argument of a call: the ``number``-th input, output or constant, or a byte of memory.

    offset: bytes from there on.
    """

    origin: Origin
    number: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A call of ``function``; arguments: of its inputs, then of its outputs."""

    function: str
    arguments: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """calls: in order.  memory_bytes: of what they pass on.

    inputs, outputs: as the caller sees them.  constants: arrays that are part of the program.
    Raises GraphError for an argument that is none of these.
    """

    functions: tuple[Function, ...]
    calls: tuple[Call, ...]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    constants: Mapping[str, NDArray[Any]]
    memory_bytes: int

    def __post_init__(self) -> None:
        known = {function.name: function for function in self.functions}
        numbers = {
            Origin.INPUT: len(self.inputs),
            Origin.OUTPUT: len(self.outputs),
            Origin.CONSTANT: len(self.constants),
            Origin.MEMORY: 1,
        }
        for call in self.calls:
            function = known.get(call.function)
            if function is None:
                raise GraphError(f"call of {call.function}; the program has {sorted(known)}")
            expected = len(function.inputs) + len(function.outputs)
            if len(call.arguments) != expected:
                raise GraphError(
                    f"call of {call.function}: {len(call.arguments)} arguments; required {expected}"
                )
            for place in call.arguments:
                if not 0 <= place.number < numbers[place.origin]:
                    raise GraphError(
                        f"call of {call.function}: {place.origin} {place.number}; the program has "
                        f"{numbers[place.origin]}"
                    )


def memory_bytes(program: Program, built: Sequence[BuiltFunction]) -> int:
    """Of ``main``'s memory: the program's, and the largest workspace."""
    return _workspace_offset(program) + max((each.workspace_bytes for each in built), default=0)


def _workspace_offset(program: Program) -> int:
    return -(-program.memory_bytes // ALIGNMENT) * ALIGNMENT


def main_text(
    program: Program, built: Sequence[BuiltFunction], target: CpuTarget, symbol: str
) -> str:
    """LLVM's assembly of ``main``; built: the program's functions, in its order."""
    module = ModuleText(target)
    symbols = {f.name: each.symbol for f, each in zip(program.functions, built, strict=True)}
    lines = [
        f"  %workspace = getelementptr i8, ptr %memory, i64 {_workspace_offset(program)}",
    ]
    names: dict[Place, str] = {}
    for call in program.calls:
        for place in call.arguments:
            if place not in names:
                names[place] = _load_place(lines, place, len(names))
        arguments = ["ptr %pool", "ptr %workspace"]
        arguments += [f"ptr {names[place]}" for place in call.arguments]
        callee = symbols[call.function]
        module.declare(callee, "void", ["ptr"] * len(arguments))
        lines.append(f"  call void @{callee}({', '.join(arguments)})")
    body = "\n".join(lines)
    parameters = "ptr %pool, ptr %memory, ptr %inputs, ptr %outputs, ptr %constants"
    module.define(symbol, f"define i32 @{symbol}({parameters}) {{\n{body}\n  ret i32 0\n}}")
    return module.text()


def _load_place(lines: list[str], place: Place, number: int) -> str:
    """Append what makes the address of ``place``; its name."""
    base = "%memory"
    if place.origin is not Origin.MEMORY:
        base = f"%base{number}"
        lines.append(
            f"  %slot{number} = getelementptr ptr, ptr %{place.origin}s, i64 {place.number}"
        )
        lines.append(f"  {base} = load ptr, ptr %slot{number}")
    if not place.offset:
        return base
    lines.append(f"  %at{number} = getelementptr i8, ptr {base}, i64 {place.offset}")
    return f"%at{number}"
