"""The check of programs: it passes those the compiler makes, and finds mutants of them.

A mutant's calls are run by a machine that knows nothing of tensors: bytes in, bytes out.  If its
outputs differ from the program's, the check must have found it.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.ir import Block
from dovetail.compiler.program.contents import Contents
from dovetail.compiler.program.ir import Call, Item, Loop, Operand, Origin, Place, Program, Stride
from dovetail.compiler.program.verify import verify
from dovetail.compiler.targets.cpu.llvm.intrinsics import INTRINSICS

from .programs import long_loop, random_program
from .test_ir import program


@pytest.mark.parametrize("seed", range(24))
def test_programs_of_graphs_keep_the_rules(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.compiler.program.steps.LEAST_SHARED", 1)
    verify(random_program(seed), INTRINSICS)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 7, 1 << 30])
def test_loops_of_any_length_are_followed(count: int) -> None:
    verify(long_loop(count), INTRINSICS)


Memories = dict[tuple[Origin, int], dict[int, object]]


def executed(program: Program) -> list[object]:
    """Contents of the outputs: for each byte, the calls that led to it."""
    memories: Memories = {}
    sizes = {each.name: each for each in program.functions}

    def lies(place: Place, indices: tuple[int, ...]) -> tuple[dict[int, object], int]:
        start = place.offset
        for stride in place.strides:
            index = indices[stride.depth]
            start += stride.bytes * (index % 2 if stride.alternating else index)
        return memories.setdefault((place.origin, place.number), {}), start

    def value(place: Place, size: int, indices: tuple[int, ...]) -> tuple[object, ...]:
        memory, start = lies(place, indices)
        unset = (place.origin, place.number)
        return tuple(memory.get(n, (unset, n)) for n in range(start, start + size))

    def put(place: Place, size: int, indices: tuple[int, ...], found: object) -> None:
        memory, start = lies(place, indices)
        memory.update({start + n: (found, n) for n in range(size)})

    def run(items: tuple[Item, ...], indices: tuple[int, ...]) -> None:
        for each in items:
            if isinstance(each, Loop):
                for number in range(each.count):
                    if each.counter is not None:
                        put(each.counter.place, 8, indices, number)
                    run(each.calls, (*indices, number))
                run(each.last, (*indices, each.count))
                continue
            function = sizes[each.function]
            taken = each.arguments[: len(function.inputs)]
            given = [
                value(operand.place, buffer.elements * buffer.dtype.bytes, indices)
                for operand, buffer in zip(taken, function.inputs, strict=True)
            ]
            results = each.arguments[len(taken) :]
            for number, (operand, buffer) in enumerate(zip(results, function.outputs, strict=True)):
                found = hash((each.function, number, tuple(given)))
                put(operand.place, buffer.elements * buffer.dtype.bytes, indices, found)

    run(program.calls, ())
    return [
        value(Place(Origin.OUTPUT, n), each.elements * each.dtype.bytes, ())
        for n, each in enumerate(program.outputs)
    ]


def moved(operand: Operand, draw: random.Random) -> Operand:
    """Some bytes on, or with another stride."""
    place = operand.place
    if place.strides and draw.random() < 0.5:
        first, *rest = place.strides
        first = Stride(first.depth, draw.choice((-first.bytes, 2 * first.bytes, 0)), False)
        return operand.at(replace(place, strides=(first, *rest)))
    return operand.at(place.after(draw.choice((-64, -16, -4, 4, 16, 64))))


def mutants(items: tuple[Item, ...], draw: random.Random) -> Iterator[tuple[Item, ...]]:
    """With one change each: a call left out, done too early or too late, or an operand moved."""
    for n, each in enumerate(items):
        around = items[:n], items[n + 1 :]
        yield (*around[0], *around[1])
        if around[1]:
            yield (*around[0], around[1][0], each, *around[1][1:])
        if isinstance(each, Loop):
            for calls in mutants(each.calls, draw):
                yield (*around[0], replace(each, calls=calls), *around[1])
            for last in mutants(each.last, draw):
                changed = tuple(call for call in last if isinstance(call, Call))
                yield (*around[0], replace(each, last=changed), *around[1])
            continue
        for place, operand in enumerate(each.arguments):
            if not all(stride.alternating for stride in operand.place.strides):
                continue  # which slice of a tensor is meant is what the program says
            arguments = list(each.arguments)
            arguments[place] = moved(operand, draw)
            yield (*around[0], replace(each, arguments=tuple(arguments)), *around[1])


def without_work(program: Program) -> Program:
    """With functions that do nothing: how they work is not what these tests are about."""
    functions = tuple(replace(each, body=Block(())) for each in program.functions)
    return replace(program, functions=functions)


def closed(items: tuple[Item, ...]) -> bool:
    """True if no value decides how often a loop runs, and threads have nothing of their own."""
    loops = [each for each in items if isinstance(each, Loop)]
    return all(
        each.condition is None and each.guard is None and each.threads == 1 and closed(each.calls)
        for each in loops
    )


@pytest.mark.parametrize("seed", [*range(12), None])
def test_mutants_that_compute_something_else_are_found(seed: int | None) -> None:
    good = without_work(long_loop(7) if seed is None else random_program(seed))
    if not closed(good.calls):
        pytest.skip("values decide how often a loop runs")
    expected = executed(good)
    draw = random.Random(seed)
    wrong = 0
    for calls in mutants(good.calls, draw):
        mutant = replace(good, calls=calls)
        try:
            verify(mutant, INTRINSICS)
        except GraphError:
            wrong += 1
            continue
        assert executed(mutant) == expected, calls
    assert wrong >= len(good.calls) // 2


STRIDE = Stride(0, 4)


def changed(number: int, **fields: object) -> Program:
    good = program()
    calls = list(good.calls)
    calls[number] = replace(calls[number], **fields)  # type: ignore[type-var]
    return replace(good, calls=tuple(calls))


def test_each_rule_has_its_message() -> None:
    good = program()
    verify(good)
    x, w, product = good.calls[0].arguments  # type: ignore[union-attr]
    cases = [
        (replace(good, memory_bytes=183), "matmul: product is in bytes 64 to 183 of memory, which"),
        (replace(good, calls=good.calls[1:]), "double reads product from memory, byte 64; nothing"),
        (
            replace(good, calls=good.calls[:2]),
            "the caller reads out from output 1, byte 0; nothing",
        ),
        (changed(0, arguments=(x, w, x.at(x.place))), "matmul writes x to input 0"),
        (changed(1, arguments=(product, product)), "double writes product over what it reads"),
        (changed(1, arguments=(Operand("w", product.place), product)), "product is there"),
        (
            changed(0, arguments=(x, w, product.at(replace(product.place, strides=(STRIDE,))))),
            "a stride of loop 0, 0 are around it",
        ),
    ]
    for broken, message in cases:
        with pytest.raises(GraphError, match=message):
            verify(broken)


def shared(count: int, stride: int) -> Program:
    """Threads that copy the first output to slices of the second."""
    good = program()
    (_, _, last) = good.calls
    half, out = last.arguments  # type: ignore[union-attr]
    slices = out.at(replace(out.place, strides=(Stride(0, stride),)))
    loop = Loop(count, (Call("double", (half, slices)),), threads=2)
    return replace(good, calls=(*good.calls[:2], loop))


def test_threads_write_to_slices_of_their_own() -> None:
    verify(shared(1, 120))
    with pytest.raises(GraphError, match="double writes out on several threads at a time"):
        verify(shared(1, 60))


def test_slices_that_are_written_all_at_once_have_no_gaps() -> None:
    good = program()
    (_, second, last) = good.calls
    product, half = second.arguments  # type: ignore[union-attr]
    (buffer,) = next(each for each in good.functions if each.name == "double").outputs
    size = buffer.elements * buffer.dtype.bytes

    def long(stride: int) -> Program:
        place = replace(product.place, offset=good.memory_bytes, strides=(Stride(0, stride),))
        loop = Loop(40, (Call("double", (product, half.at(place))),))
        calls = (good.calls[0], loop, second, last)
        return replace(good, calls=calls, memory_bytes=good.memory_bytes + 50 * size)

    verify(long(size))
    with pytest.raises(GraphError, match="double leaves gaps in half"):
        verify(long(size + 4))


def looped(**fields: object) -> Program:
    """The last call, twice in a loop, before bytes 184 to 191 that a loop may use."""
    good = program()
    loop = Loop(**{"count": 2, "calls": good.calls[2:], **fields})  # type: ignore[arg-type]
    return replace(good, calls=(*good.calls[:2], loop), memory_bytes=good.memory_bytes + 8)


def test_what_a_loop_itself_reads_and_writes_keeps_the_rules() -> None:
    verify(looped())
    end = looped().memory_bytes
    flag = Operand("flag", Place(Origin.MEMORY, 0, end - 8))
    far = Operand("n", Place(Origin.MEMORY, 0, end - 7))
    unset = f"reads flag from memory, byte {end - 8}; nothing was written there"
    behind = f"n is in bytes {end - 7} to {end} of memory, which has {end}"
    cases: list[tuple[dict[str, object], str]] = [
        ({"guard": flag}, f"a loop's guard {unset}"),
        ({"condition": flag}, f"a loop's condition {unset}"),
        ({"counter": far}, f"a loop's counter: {behind}"),
        ({"done": far}, f"a loop's end: {behind}"),
        ({"threads": 2, "private": end - 8, "private_bytes": 5}, "a loop's threads: their memory"),
    ]
    for fields, message in cases:
        with pytest.raises(GraphError, match=message):
            verify(looped(**fields))
    inner = Loop(1, looped().calls[2:], threads=2)
    nested = looped(calls=(replace(inner, origin="inner"),))
    with pytest.raises(GraphError, match="a loop of inner is shared by threads inside another"):
        verify(nested)
    # A condition lies there after the first iteration, and the number of iterations at the end.
    verify(looped(counter=flag, condition=flag, done=flag))


def test_what_threads_write_for_themselves_is_gone_after_the_iteration() -> None:
    good = program()
    (_, _, last) = good.calls
    half, out = last.arguments  # type: ignore[union-attr]
    own = Operand("own", Place(Origin.PRIVATE))
    slices = out.at(replace(out.place, strides=(Stride(0, 120),)))
    first, second = Call("double", (half, own)), Call("double", (own, slices))
    memory = {"private": good.memory_bytes, "private_bytes": 120}
    room = {"memory_bytes": good.memory_bytes + 240}

    def with_loops(*loops: tuple[Call, ...]) -> Program:
        shared = (Loop(1, calls, threads=2, **memory) for calls in loops)  # type: ignore[arg-type]
        return replace(good, calls=(*good.calls[:2], *shared), **room)  # type: ignore[arg-type]

    verify(with_loops((first, second)))
    with pytest.raises(GraphError, match="double reads own from private, byte 0; nothing"):
        verify(with_loops((first,), (second,)))
    memory["private_bytes"] = 119
    with pytest.raises(GraphError, match="own is in bytes 0 to 119 of private, which has 119"):
        verify(with_loops((first, second)))


def test_a_byte_holds_the_tensor_that_was_written_there_last() -> None:
    contents, space = Contents(), (Origin.MEMORY, 0)
    contents.write(space, 10, 30, "a")
    contents.write(space, 15, 20, "b")
    assert contents.missing(space, 10, 15, "a") is None
    assert contents.missing(space, 15, 20, "b") is None
    assert contents.missing(space, 20, 30, "a") is None
    assert contents.missing(space, 10, 16, "a") == (15, "b")
    assert contents.missing(space, 19, 21, "b") == (20, "a")
    assert contents.missing(space, 9, 12, "a") == (9, "")
    assert contents.missing(space, 25, 31, "a") == (30, "")
    assert contents.missing((Origin.MEMORY, 1), 10, 11, "a") == (10, "")
    assert contents.missing(space, 12, 12, "c") is None
    before = contents.copy()
    contents.rename("b", "a")
    assert contents.missing(space, 15, 20, "a") is None
    assert contents.missing(space, 10, 15, "a") == (10, "")
    assert before.missing(space, 10, 15, "a") is None
    before.clear(space, 12, 22)
    assert before.missing(space, 10, 23, "a") == (12, "")
    assert before.missing(space, 21, 23, "a") == (21, "")
