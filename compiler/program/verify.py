"""The rules that every program keeps, and the first one that a program breaks.

The check knows nothing of the plan of the memory.  It follows the calls in their order, notes which
tensor each byte holds, and finds reads of a tensor from bytes that another one has overwritten, or
that it never had.
Of a loop it follows the first iterations and the last; those between them differ only by what they
read and write of slices.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from ..errors import GraphError
from ..loops.expressions import Buffer
from ..loops.intrinsic import Intrinsic
from ..loops.ir import Function
from ..loops.verify import verify as verify_function
from .contents import Contents, Space
from .ir import Call, Item, Loop, Operand, Origin, Place, Program

__all__ = ["verify"]

NUMBER_BYTES, CONDITION_BYTES = 8, 1
FOLLOWED = 3
"""Iterations at the beginning of a loop that are followed; from then on, every other one finds what
the one before the last did."""


def verify(program: Program, intrinsics: Mapping[str, Intrinsic] | None = None) -> None:
    """Raise GraphError, naming call and tensor, unless the program keeps these rules.

    Every function keeps those of ``loops/verify``.  Operands are inside the memory they are in.
    Inputs and constants are not written.  What a call reads has been written in full, and nothing
    has been written over it since.  A call writes over nothing that it reads.  Iterations that
    threads share write different bytes.  In the end each output holds the tensor of its name.
    """
    for function in program.functions:
        verify_function(function, intrinsics, trust_data=True)
    checker = _Checker(program, {each.name: each for each in program.functions})
    for number, buffer in enumerate(program.inputs):
        checker.contents.write((Origin.INPUT, number), 0, _bytes(buffer), buffer.name)
    for number, (name, array) in enumerate(program.constants.items()):
        checker.contents.write((Origin.CONSTANT, number), 0, array.nbytes, name)
    checker.items(program.calls, ())
    for number, buffer in enumerate(program.outputs):
        result = Operand(buffer.name, Place(Origin.OUTPUT, number))
        checker.read("the caller", result, _bytes(buffer), ())


def _bytes(buffer: Buffer) -> int:
    return buffer.elements * buffer.dtype.bytes


Range = tuple[Space, int, int]


@dataclass(slots=True)
class _Checker:
    """Follows calls; the loops around give their iterations, the outermost first."""

    program: Program
    functions: Mapping[str, Function]
    contents: Contents = field(default_factory=Contents)
    private_bytes: int = 0

    def items(self, items: Sequence[Item], indices: tuple[int, ...]) -> None:
        """Calls and loops in order."""
        for each in items:
            if isinstance(each, Call):
                self.call(each, indices)
            else:
                self.loop(each, indices)

    def call(self, call: Call, indices: tuple[int, ...]) -> None:
        """Reads its inputs, then writes its outputs."""
        function = self.functions[call.function]
        read: list[Range] = []
        for operand, buffer in zip(call.arguments, function.inputs, strict=False):
            read.append(self.read(call.function, operand, _bytes(buffer), indices))
        results = call.arguments[len(function.inputs) :]
        for operand, buffer in zip(results, function.outputs, strict=True):
            found = self.write(call.function, operand, _bytes(buffer), indices)
            for other in read:
                if found[0] == other[0] and max(found[1:2] + other[1:2]) < min(found[2], other[2]):
                    raise GraphError(
                        f"{call.function} writes {operand.tensor} over what it reads or writes"
                    )
            read.append(found)

    def loop(self, loop: Loop, indices: tuple[int, ...]) -> None:
        """The iterations that differ, and ``last`` wherever the loop may end."""
        if loop.guard is not None:
            self.read("a loop's guard", loop.guard, CONDITION_BYTES, indices)
            self.ends(loop, indices, 0)
        if loop.threads > 1:
            self.share(loop, indices)
        followed, resumed = FOLLOWED, loop.count
        if loop.count > FOLLOWED + 2:
            resumed = loop.count - 1 - (loop.count - 1 - FOLLOWED) % 2
        else:
            followed = loop.count
        for number in (*range(followed), *range(resumed, loop.count)):
            if number == resumed:
                self.skip(loop, indices, followed, resumed)
            self.iteration(loop, indices, number)
        self.items(loop.last, (*indices, loop.count))
        if loop.done is not None:
            self.write("a loop's end", loop.done, NUMBER_BYTES, indices)

    def iteration(self, loop: Loop, indices: tuple[int, ...], number: int) -> None:
        """One of them."""
        if loop.threads > 1:
            self.contents.clear((Origin.PRIVATE, 0), 0, loop.private_bytes)
        if loop.counter is not None:
            self.write("a loop's counter", loop.counter, NUMBER_BYTES, indices)
        self.items(loop.calls, (*indices, number))
        if loop.condition is not None:
            self.read("a loop's condition", loop.condition, CONDITION_BYTES, indices)
        for new, old in loop.carried:
            self.contents.rename(new, old)
        if loop.condition is not None:
            self.ends(loop, indices, number + 1)

    def ends(self, loop: Loop, indices: tuple[int, ...], done: int) -> None:
        """Check ``last`` where the loop may end, but need not."""
        before = self.contents.copy()
        self.items(loop.last, (*indices, done))
        self.contents = before

    def share(self, loop: Loop, indices: tuple[int, ...]) -> None:
        """Threads take their memory, and write only to slices of their own."""
        if indices:
            raise GraphError(f"a loop of {loop.origin} is shared by threads inside another one")
        end = loop.private + loop.threads * loop.private_bytes
        self.inside("a loop's threads", "their memory", (Origin.MEMORY, 0), loop.private, end)
        self.contents.clear((Origin.MEMORY, 0), loop.private, end)
        self.private_bytes = loop.private_bytes
        for name, operand, size, ranges in self.writes(loop.calls, 1, {}):
            low, high = _hull(operand.place, (0,), ranges)
            steps = [s.bytes for s in operand.place.strides if s.depth == 0 and not s.alternating]
            if operand.place.origin is not Origin.PRIVATE and abs(sum(steps)) < high + size - low:
                raise GraphError(f"{name} writes {operand.tensor} on several threads at a time")

    def skip(self, loop: Loop, indices: tuple[int, ...], first: int, behind: int) -> None:
        """Check at once what iterations from ``first`` to before ``behind`` write to slices."""
        depth = len(indices)
        for name, operand, size, inner in self.writes(loop.calls, depth + 1, {}):
            place = operand.place
            if all(each.depth != depth or each.alternating for each in place.strides):
                continue
            ranges = {**inner, depth: (first, behind - 1)}
            low, high = _hull(place, indices, ranges)
            counts = (ranges[s.depth] for s in place.strides if s.depth in ranges)
            if high + size - low > size * prod(last - start + 1 for start, last in counts):
                raise GraphError(f"{name} leaves gaps in {operand.tensor}")
            space = (place.origin, place.number)
            self.inside(name, operand.tensor, space, low, high + size)
            self.contents.write(space, low, high + size, operand.tensor)

    def writes(
        self, items: Sequence[Item], depth: int, ranges: Mapping[int, tuple[int, int]]
    ) -> Iterator[tuple[str, Operand, int, Mapping[int, tuple[int, int]]]]:
        """Results of calls in ``items``: the function, where, bytes, iterations of loops inside."""
        for each in items:
            if isinstance(each, Call):
                function = self.functions[each.function]
                results = each.arguments[len(function.inputs) :]
                for operand, buffer in zip(results, function.outputs, strict=True):
                    yield each.function, operand, _bytes(buffer), ranges
                continue
            if each.counter is not None:
                yield "a loop's counter", each.counter, NUMBER_BYTES, ranges
            if each.done is not None:
                yield "a loop's end", each.done, NUMBER_BYTES, ranges
            inner = {**ranges, depth: (0, each.count - 1)}
            yield from self.writes(each.calls, depth + 1, inner)
            yield from self.writes(each.last, depth + 1, {**ranges, depth: (each.count,) * 2})

    def read(self, name: str, operand: Operand, size: int, indices: tuple[int, ...]) -> Range:
        """Require the tensor to be there in full."""
        space, start = self.address(operand.place, indices)
        self.inside(name, operand.tensor, space, start, start + size)
        problem = self.contents.missing(space, start, start + size, operand.tensor)
        if problem is not None:
            byte, found = problem
            raise GraphError(
                f"{name} reads {operand.tensor} from {_named(space)}, byte {byte}; "
                + (f"{found} is there" if found else "nothing was written there")
            )
        return space, start, start + size

    def write(self, name: str, operand: Operand, size: int, indices: tuple[int, ...]) -> Range:
        """The tensor is there from now on."""
        space, start = self.address(operand.place, indices)
        if space[0] in (Origin.INPUT, Origin.CONSTANT):
            raise GraphError(f"{name} writes {operand.tensor} to {_named(space)}")
        self.inside(name, operand.tensor, space, start, start + size)
        self.contents.write(space, start, start + size, operand.tensor)
        return space, start, start + size

    def address(self, place: Place, indices: tuple[int, ...]) -> tuple[Space, int]:
        """The first byte, in these iterations."""
        for stride in place.strides:
            if stride.depth >= len(indices):
                raise GraphError(f"a stride of loop {stride.depth}, {len(indices)} are around it")
        return (place.origin, place.number), _hull(place, indices, {})[0]

    def inside(self, name: str, tensor: str, space: Space, start: int, end: int) -> None:
        """Require bytes from ``start`` to before ``end`` to be part of a memory."""
        origin, number = space
        match origin:
            case Origin.INPUT:
                size = _bytes(self.program.inputs[number])
            case Origin.OUTPUT:
                size = _bytes(self.program.outputs[number])
            case Origin.CONSTANT:
                size = list(self.program.constants.values())[number].nbytes
            case Origin.MEMORY:
                size = self.program.memory_bytes
            case Origin.PRIVATE:
                size = self.private_bytes
        if start < end and not 0 <= start < end <= size:
            raise GraphError(
                f"{name}: {tensor} is in bytes {start} to {end - 1} of {_named(space)}, which has "
                f"{size}"
            )


def _hull(
    place: Place, indices: Sequence[int], ranges: Mapping[int, tuple[int, int]]
) -> tuple[int, int]:
    """The lowest and the highest offset; ranges: of iterations, where there are several."""
    low = high = place.offset
    for stride in place.strides:
        first, last = ranges.get(stride.depth) or (indices[stride.depth],) * 2
        if stride.alternating:
            first, last = (first % 2,) * 2 if first == last else (0, 1)
        low += min(first * stride.bytes, last * stride.bytes)
        high += max(first * stride.bytes, last * stride.bytes)
    return low, high


def _named(space: Space) -> str:
    origin, number = space
    return str(origin) if origin in (Origin.MEMORY, Origin.PRIVATE) else f"{origin} {number}"
