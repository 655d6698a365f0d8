"""From a graph to a program: every step becomes a call or a loop, every tensor gets its place."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import WorkLimitError
from ..graph.ir import Graph
from ..graph.types import TensorType
from ..loops.expressions import Buffer
from .functions import Lowering, Shared, copying
from .ir import Call, Item, Loop, Operand, Origin, Place, Program, Stride
from .memory import aligned
from .steps import SCALAR_BYTES, Body, Repetition, Step, size_of

__all__ = ["build_program"]


def build_program(graph: Graph, lowering: Lowering) -> Program:
    """The program that computes ``graph``.

    Raises UnsupportedOperatorError for an operator that has no lowering, WorkLimitError for loops
    that come to more than ``lowering`` allows.
    """
    shared = Shared(lowering, names={*graph.inputs, *graph.outputs})
    body = Body(graph, shared)
    _require_work(body, lowering.most_work)
    inputs = {name: Operand(name, Place(Origin.INPUT, n)) for n, name in enumerate(graph.inputs)}
    outputs = [Operand(name, Place(Origin.OUTPUT, n)) for n, name in enumerate(graph.outputs)]
    items = _items(body, inputs, outputs, Place(Origin.MEMORY), 0)
    return Program(
        tuple(shared.functions.values()),
        items,
        _buffers(graph, graph.inputs),
        _buffers(graph, graph.outputs),
        shared.constants,
        body.bytes,
        lowering.most_work,
    )


def _require_work(body: Body, allowed: int) -> None:
    works = body.works()
    found = sum(work for work, _ in works)
    if found > allowed:
        most, where = max(works)
        raise WorkLimitError(
            f"the loops come to {found:.2g} reads and writes of elements, {most:.2g} of them in "
            f"{where}; allowed are {allowed:.2g}; allow more (--most-work, DOVETAIL_MOST_WORK) or "
            "check the attributes and shapes there"
        )


def _buffers(graph: Graph, names: tuple[str, ...]) -> tuple[Buffer, ...]:
    """Tensors as the program's caller sees them."""
    return tuple(Buffer(name, graph.types[name].shape, graph.types[name].dtype) for name in names)


def _items(
    body: Body, inputs: Mapping[str, Operand], outputs: Sequence[Operand], memory: Place, depth: int
) -> tuple[Item, ...]:
    """The calls of a graph with their arguments.

    inputs, outputs: places of the graph's.  memory: where what is planned begins.  depth: the
    number of loops around.
    """
    shared = body.shared
    places = dict(inputs)
    for name, offset in body.offsets.items():
        places[name] = Operand(shared.name(name), memory.after(offset))
    for name, number in body.owners.items():
        places[name] = outputs[number]
    read = [name for step in body.steps for name in step.inputs]
    for name in map(body.root, [*read, *(root for root, _ in body.copies)]):
        if name not in places:
            places[name] = shared.constant(shared.name(name), body.graph.constants[name])
    for name in (*read, *body.graph.outputs):
        places[name] = places[body.root(name)]
    found: list[Item] = []
    for number, step in enumerate(body.steps):
        if isinstance(step, Step):
            arguments = tuple(places[name] for name in (*step.inputs, *step.outputs))
            found.append(Call(step.function.name, arguments, step.origins))
        else:
            found += _loop(step, places, memory.after(body.spaces[number]), depth)
    for root, number in body.copies:
        found.append(_copy(shared, body.graph.types[root], places[root], outputs[number]))
    return tuple(found)


def _loop(
    step: Repetition, places: Mapping[str, Operand], space: Place, depth: int
) -> tuple[Item, ...]:
    """Initial states are copied, states alternate between two places, the last ones are copied."""
    operator, body = step.operator, step.body
    shared, types = body.shared, operator.body.types
    number, *names = operator.body.inputs
    shares = step.threads > 1
    start = Place(Origin.PRIVATE) if shares else space
    offset = aligned(body.bytes)
    before: list[Call] = []
    last: list[Call] = []
    carried: list[tuple[str, str]] = []
    inner: dict[str, Operand] = {}
    outputs: list[Operand] = []
    given = [places[name] for name in step.inputs[operator.guarded :]]
    for place, kind in enumerate(step.states):
        size = size_of(kind)
        first = start.after(offset)
        old = Operand(
            shared.name(names[place]), replace(first, strides=(Stride(depth, size, True),))
        )
        new = Operand(
            shared.name(f"{names[place]}.next"),
            replace(first.after(size), strides=(Stride(depth, -size, True),)),
        )
        outputs.append(new)
        carried.append((new.tensor, old.tensor))
        before.append(_copy(shared, kind, given[place], old.at(first)))
        last.append(_copy(shared, kind, old, places[step.outputs[place]]))
        inner[names[place]] = old
        offset += 2 * size
    counter = Operand(shared.name(number), start.after(offset))
    condition = Operand(
        shared.name(f"{number}.condition"), start.after(offset + aligned(SCALAR_BYTES))
    )
    inner[number] = counter
    for place, name in enumerate(names[operator.states :], operator.states):
        inner[name] = given[place]
        if place < operator.states + len(operator.backward):
            backward = operator.backward[place - operator.states]
            inner[name] = _slice(given[place], types[name], operator.count, backward, depth)
    collected = operator.body.outputs[operator.conditional + operator.states :]
    for place, backward in enumerate(operator.collected_backward):
        whole = places[step.outputs[operator.states + place]]
        outputs.append(_slice(whole, types[collected[place]], operator.count, backward, depth))
    if operator.conditional:
        outputs.insert(0, condition)
    read = {name for node in operator.body.nodes for name in node.inputs}
    used = number in read or number in operator.body.outputs
    loop = Loop(
        operator.count,
        _items(body, inner, outputs, start, depth + 1),
        tuple(last),
        counter if used else None,
        condition if operator.conditional else None,
        places[step.outputs[-1]] if operator.conditional else None,
        body.work,
        step.node.origin,
        step.threads,
        space.offset if shares else 0,
        step.private_bytes if shares else 0,
        places[step.inputs[0]] if operator.guarded else None,
        tuple(carried),
    )
    return (*before, loop)


def _slice(whole: Operand, kind: TensorType, count: int, backward: bool, depth: int) -> Operand:
    """The part for an iteration, along the first dimension of ``whole``."""
    size = kind.elements * kind.dtype.bytes
    place = whole.place.after((count - 1) * size if backward else 0)
    stride = Stride(depth, -size if backward else size)
    return whole.at(replace(place, strides=(*place.strides, stride)))


def _copy(shared: Shared, kind: TensorType, source: Operand, target: Operand) -> Call:
    function = shared.function(copying(kind.elements, kind.dtype))
    return Call(function.name, (source, target))
