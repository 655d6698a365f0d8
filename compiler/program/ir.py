"""A sequence of calls of functions, and of loops of them, as one function, ``main``.

    int32 main(ptr pool, ptr memory, ptr* inputs, ptr* outputs, ptr* constants)

memory holds what the calls pass on to each other, and behind it the workspace of the calls; it is
aligned to 64 bytes.  The result is 0, or ``FIRST_STOP`` and more: the loop that was stopped, as it
came to more work than is allowed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Union

from numpy.typing import NDArray

from dovetail.runtime.native.program import ALIGNMENT, FIRST_STOP

from ..errors import GraphError
from ..loops.expressions import Buffer
from ..loops.ir import Function
from ..options import MOST_WORK
from ..targets.cpu.llvm.cache import BuiltFunction

__all__ = [
    "ALIGNMENT",
    "FIRST_STOP",
    "Call",
    "Loop",
    "Origin",
    "Place",
    "Program",
    "Stride",
    "all_places",
    "memory_bytes",
    "stops",
    "workspace_bytes",
    "workspace_offset",
]


class Origin(StrEnum):
    """Whose memory an argument is in."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    MEMORY = "memory"
    PRIVATE = "private"
    """In a loop on threads: the thread's own part of the memory."""


@dataclass(frozen=True, slots=True)
class Stride:
    """What a loop adds to an address: ``bytes`` in each iteration; alternating: in odd ones only.

    depth: of the loop; 0 is the outermost.
    """

    depth: int
    bytes: int
    alternating: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """An argument of a call: the ``number``-th input, output or constant, or a byte of memory.

    offset: bytes from there on.  strides: of the loops around the call.
    """

    origin: Origin
    number: int = 0
    offset: int = 0
    strides: tuple[Stride, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A call of ``function``; arguments: of its inputs, then of its outputs."""

    function: str
    arguments: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """``calls`` again and again, ``count`` times at most; then ``last``, once.

    In the strides of ``last`` the iteration is the number of iterations done.
    threads: that share the iterations, which are independent of each other.  Only a loop in
    no other one has more.  private, private_bytes: the threads' own parts of the memory, one after
    the other, and the size of each.
    counter: int64, gets the iteration's number before each.  condition: bool, read after each: the
    loop goes on while it holds.  done: int64, gets the number of iterations.
    guard: bool, read before the first; there is none if it does not hold.
    work: of an iteration; a loop with a condition takes it from what is allowed.
    origin: the model's node.
    """

    count: int
    calls: "tuple[Call | Loop, ...]"
    last: tuple[Call, ...] = ()
    counter: Place | None = None
    condition: Place | None = None
    done: Place | None = None
    work: int = 0
    origin: str = ""
    threads: int = 1
    private: int = 0
    private_bytes: int = 0
    guard: Place | None = None


Item = Union[Call, Loop]  # noqa: UP007


@dataclass(frozen=True, slots=True)
class Program:
    """calls: in order.  memory_bytes: of what they pass on.

    inputs, outputs: as the caller sees them.  constants: arrays that are part of the program.
    most_work: allowed to all loops with a condition together.
    stops: what ``stops`` says of the calls.
    Raises GraphError for an argument that is none of these.
    """

    functions: tuple[Function, ...]
    calls: tuple[Item, ...]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    constants: Mapping[str, NDArray[Any]]
    memory_bytes: int
    most_work: int = MOST_WORK
    stops: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        known = {function.name: function for function in self.functions}
        numbers = {
            Origin.INPUT: len(self.inputs),
            Origin.OUTPUT: len(self.outputs),
            Origin.CONSTANT: len(self.constants),
            Origin.MEMORY: 1,
            Origin.PRIVATE: 1,
        }
        for call in _all_calls(self.calls):
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


def _all_calls(items: Sequence[Item]) -> Iterator[Call]:
    for each in items:
        if isinstance(each, Call):
            yield each
        else:
            yield from _all_calls(each.calls)
            yield from each.last


def stops(items: Sequence[Item]) -> Iterator[str]:
    """The nodes whose loops may be stopped, in the order in which ``main`` numbers them."""
    for each in items:
        if isinstance(each, Loop):
            yield from stops(each.calls)
            if each.condition is not None:
                yield each.origin


def all_places(items: Sequence[Item]) -> Iterator[Place]:
    """Every place that is read or written, those in loops included."""
    for each in items:
        if isinstance(each, Call):
            yield from each.arguments
        else:
            yield from all_places(each.calls)
            yield from all_places(each.last)
            yield from filter(None, (each.counter, each.condition, each.done, each.guard))


def memory_bytes(program: Program, built: Sequence[BuiltFunction]) -> int:
    """Of ``main``'s memory: the program's, and a workspace for each thread that calls functions."""
    threads = max((each.threads for each in program.calls if isinstance(each, Loop)), default=1)
    return workspace_offset(program) + threads * workspace_bytes(built)


def workspace_bytes(built: Sequence[BuiltFunction]) -> int:
    """Of the workspace that any of the functions can do with."""
    most = max((each.workspace_bytes for each in built), default=0)
    return -(-most // ALIGNMENT) * ALIGNMENT


def workspace_offset(program: Program) -> int:
    """Where the workspace begins in ``main``'s memory."""
    return -(-program.memory_bytes // ALIGNMENT) * ALIGNMENT
