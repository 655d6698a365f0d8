"""Programs: calls of functions on tensors, loops around calls, and the place of every tensor.

A program is what a graph becomes before it is machine code.  ``text`` prints it, ``parse`` reads it
back, ``verify`` checks it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Union

from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..errors import GraphError
from ..loops.expressions import Buffer
from ..loops.ir import Function
from ..options import MOST_WORK

__all__ = [
    "Call",
    "Item",
    "Loop",
    "Operand",
    "Origin",
    "Place",
    "Program",
    "Stride",
    "all_calls",
    "all_operands",
    "stops",
]


class Origin(StrEnum):
    """Whose memory a tensor is in."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    MEMORY = "memory"
    PRIVATE = "private"
    """In a loop on threads: the thread's own part of the memory."""


@frozen
class Stride:
    """Addition of a loop to an address: ``bytes`` in each iteration; alternating: in odd ones only.

    depth: of the loop; 0 is the outermost.
    """

    depth: int
    bytes: int
    alternating: bool = False


@frozen
class Place:
    """A byte of the ``number``-th input, output or constant, or of the memory.

    offset: bytes from the beginning.  strides: of the loops around the call.
    """

    origin: Origin
    number: int = 0
    offset: int = 0
    strides: tuple[Stride, ...] = ()

    def after(self, offset: int) -> "Place":
        """The place ``offset`` bytes further on."""
        return replace(self, offset=self.offset + offset)


@frozen
class Operand:
    """A tensor, and the place where it, or the part of it that is meant, begins."""

    tensor: str
    place: Place

    def at(self, place: Place) -> "Operand":
        """A part of the same tensor."""
        return Operand(self.tensor, place)


@frozen
class Call:
    """A call of ``function``.

    arguments: its inputs, then its outputs.  origins: the model's nodes that it computes; a call
    that only copies has none.
    """

    function: str
    arguments: tuple[Operand, ...]
    origins: tuple[str, ...] = ()


@frozen
class Loop:
    """``calls`` again and again, ``count`` times at most; then ``last``, once.

    In the strides of ``last`` the iteration is the number of iterations done.
    carried: pairs of tensors: what an iteration computes as the first, the next one reads as the
    second.
    threads: that share the iterations, which are independent of each other.  Only a loop in
    no other one has more than one.  private, private_bytes: where the threads' own parts of the
    memory begin, one after the other, and the size of each.
    counter: int64, gets the iteration's number before each.  condition: bool, read after each: the
    loop goes on while it holds.  done: int64, gets the number of iterations.
    guard: bool, read before the first; there is no iteration if it does not hold.
    work: of an iteration; a loop with a condition takes it from what is allowed.
    origin: the model's node.
    """

    count: int
    calls: "tuple[Call | Loop, ...]"
    last: tuple[Call, ...] = ()
    counter: Operand | None = None
    condition: Operand | None = None
    done: Operand | None = None
    work: int = 0
    origin: str = ""
    threads: int = 1
    private: int = 0
    private_bytes: int = 0
    guard: Operand | None = None
    carried: tuple[tuple[str, str], ...] = ()


Item = Union[Call, Loop]  # noqa: UP007


@frozen
class Program:
    """Calls and loops, in order.

    inputs, outputs: as the caller sees them.  constants: arrays that are part of the program, by
    their tensors' names.  memory_bytes: of the memory in which calls leave tensors for others.
    most_work: allowed to all loops with a condition together.
    Raises GraphError for a call of no function, and for an operand that is in none of these.
    """

    functions: tuple[Function, ...]
    calls: tuple[Item, ...]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    constants: Mapping[str, NDArray[Any]]
    memory_bytes: int
    most_work: int = MOST_WORK

    def __post_init__(self) -> None:
        known = {function.name: function for function in self.functions}
        numbers = {
            Origin.INPUT: len(self.inputs),
            Origin.OUTPUT: len(self.outputs),
            Origin.CONSTANT: len(self.constants),
            Origin.MEMORY: 1,
            Origin.PRIVATE: 1,
        }
        for call in all_calls(self.calls):
            function = known.get(call.function)
            if function is None:
                raise GraphError(f"call of {call.function}; the program has {sorted(known)}")
            expected = len(function.inputs) + len(function.outputs)
            if len(call.arguments) != expected:
                raise GraphError(
                    f"call of {call.function}: {len(call.arguments)} arguments; required {expected}"
                )
        for operand in all_operands(self.calls):
            place = operand.place
            if not 0 <= place.number < numbers[place.origin]:
                raise GraphError(
                    f"{operand.tensor} is in {place.origin} {place.number}; the program has "
                    f"{numbers[place.origin]}"
                )

    @property
    def stops(self) -> tuple[str, ...]:
        """The nodes whose loops may be stopped."""
        return tuple(stops(self.calls))

    @property
    def origins(self) -> tuple[tuple[str, ...], ...]:
        """The model's nodes that each call computes, of calls that do not only copy."""
        return tuple(call.origins for call in all_calls(self.calls) if call.origins)


def all_calls(items: Sequence[Item]) -> Iterator[Call]:
    """Every call, those in loops included."""
    for each in items:
        if isinstance(each, Call):
            yield each
        else:
            yield from all_calls(each.calls)
            yield from each.last


def stops(items: Sequence[Item]) -> Iterator[str]:
    """The nodes whose loops may be stopped, in the order in which ``main`` numbers them."""
    for each in items:
        if isinstance(each, Loop):
            yield from stops(each.calls)
            if each.condition is not None:
                yield each.origin


def all_operands(items: Sequence[Item]) -> Iterator[Operand]:
    """Everything that is read or written, in loops too."""
    for each in items:
        if isinstance(each, Call):
            yield from each.arguments
        else:
            yield from all_operands(each.calls)
            yield from all_operands(each.last)
            yield from filter(None, (each.counter, each.condition, each.done, each.guard))
