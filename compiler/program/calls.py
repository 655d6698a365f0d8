"""The calls that compute a graph, and where their arguments lie; bodies of loops included."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..graph.groups import group_nodes
from ..graph.ir import Graph, Node
from ..graph.operators.movement import Reshape
from ..graph.operators.repetition import Repeat
from ..graph.types import TensorType
from ..targets.cpu.recorded import tuned_kernel
from .ir import Call, Loop, Origin, Place, Stride
from .memory import ALIGNMENT, plan_apart, plan_memory
from .steps import Shared, Step, copying

__all__ = ["Calls"]

START = Place(Origin.MEMORY)

IMAGE_RANK = 5
MOST_APART = 64 << 20
"""Bytes more for tensors to share memory with others of their layout only."""
LEAST_SHARED = 1 << 16
"""Work of a loop that is worth threads."""


@dataclass(frozen=True, slots=True)
class _Repetition:
    """A loop over the calls of ``body``.

    Its work space: the memory of the body, two places for each state, then the iteration's number
    and the condition.
    """

    node: Node
    operator: Repeat
    body: "Calls"
    repeated: bool

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tensors it reads."""
        return self.node.inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        """The tensors it computes."""
        return self.node.outputs

    @property
    def states(self) -> list[TensorType]:
        """Of the tensors that one iteration hands to the next."""
        types = self.operator.body.types
        return [types[name] for name in self.operator.body.inputs[1 : 1 + self.operator.states]]

    @property
    def may_stop(self) -> bool:
        """Whether it, or a loop in it, ends the run when it has used up what is allowed."""
        return self.operator.conditional or any(
            isinstance(step, _Repetition) and step.may_stop for step in self.body.steps
        )

    @property
    def threads(self) -> int:
        """That share the iterations."""
        apart = self.operator.states == 0 and not self.may_stop
        worth = self.operator.count * self.body.work >= LEAST_SHARED
        return self.body.shared.threads if apart and worth and not self.repeated else 1

    @property
    def private_bytes(self) -> int:
        """Of the work space of a thread."""
        return _aligned(self.body.bytes) + 2 * sum(map(_size, self.states)) + 2 * ALIGNMENT

    @property
    def bytes(self) -> int:
        """Of the work space."""
        return self.threads * self.private_bytes


@dataclass(slots=True)
class Calls:
    """The steps of ``graph``, and a plan of the memory of what they compute.

    bytes: that the plan takes.  repeated: the graph is the body of a loop.
    """

    graph: Graph
    shared: Shared
    repeated: bool = False
    bytes: int = 0
    steps: list[Step | _Repetition] = field(default_factory=list)
    copies: list[tuple[str, int]] = field(default_factory=list)
    """Outputs that lie elsewhere too: the tensor, the output's number."""
    _aliases: dict[str, str] = field(default_factory=dict)
    """Tensors that are others under another shape."""
    _owners: dict[str, int] = field(default_factory=dict)
    """Tensors that are computed in the memory of an output: its number."""
    _offsets: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises UnsupportedOperatorError for an operator that has no lowering."""
        for nodes in group_nodes(self.graph):
            self._add(nodes)
        computed = {name for step in self.steps for name in step.outputs}
        for number, name in enumerate(self.graph.outputs):
            root = self._root(name)
            if root in computed and root not in self._owners:
                self._owners[root] = number
            else:
                self.copies.append((root, number))
        self._plan()

    def _add(self, nodes: tuple[Node, ...]) -> None:
        (first, *others) = nodes
        if isinstance(first.operator, Reshape) and not others:
            self._aliases[first.output] = first.inputs[0]
        elif isinstance(first.operator, Repeat):
            body = Calls(first.operator.body, self.shared, True)
            self.steps.append(_Repetition(first, first.operator, body, self.repeated))
        else:
            kernel = tuned_kernel(self.graph, nodes, self.shared.machine, self.shared.records)
            origins = tuple(dict.fromkeys(node.origin for node in nodes))
            name = self.shared.function(kernel.function)
            self.steps.append(
                Step(
                    name,
                    kernel.definition.inputs,
                    kernel.definition.outputs,
                    origins,
                    self.repeated,
                )
            )

    def _root(self, name: str) -> str:
        """The tensor whose memory ``name`` is."""
        while name in self._aliases:
            name = self._aliases[name]
        return name

    def _plan(self) -> None:
        """Offsets of what is computed but not returned, and of the work space of loops."""
        lifetimes: dict[str, tuple[int, int]] = {}
        sizes: dict[str, int] = {}
        for number, step in enumerate(self.steps):
            for name in step.outputs:
                if name not in self._owners:
                    lifetimes[name] = (number, number)
                    kind = self.graph.types[name]
                    sizes[name] = kind.elements * kind.dtype.bytes
            for name in map(self._root, step.inputs):
                if name in lifetimes:
                    lifetimes[name] = (lifetimes[name][0], number)
            if isinstance(step, _Repetition):
                lifetimes[_space(number)] = (number, number)
                sizes[_space(number)] = step.bytes
        for name, _ in self.copies:
            if name in lifetimes:
                lifetimes[name] = (lifetimes[name][0], len(self.steps))
        plan = plan_memory(lifetimes, sizes)
        if self.shared.threads > 1:
            apart = plan_apart(lifetimes, sizes, {name: self._layout(name) for name in lifetimes})
            plan = apart if apart.bytes <= plan.bytes + MOST_APART else plan
        self._offsets, self.bytes = plan.offsets, plan.bytes

    def _layout(self, name: str) -> Hashable:
        """Of tensors with an equal one, threads write to the same places, wherever they lie: those
        of one shape, and images float[N, C / B, H, W, B] of one size.
        """
        kind = self.graph.types.get(name)
        if kind is None:
            return name
        return kind.shape[2:] if kind.rank == IMAGE_RANK else kind.shape

    def all_steps(self) -> tuple[Step, ...]:
        """In order, those in loops included."""
        found: list[Step] = []
        for step in self.steps:
            found += [step] if isinstance(step, Step) else step.body.all_steps()
        return tuple(found)

    def works(self) -> list[tuple[int, str]]:
        """The work of each step, and the nodes it stands for; of a loop with a condition once."""
        found = []
        for step in self.steps:
            if isinstance(step, Step):
                found.append((self.shared.works[step.function], ", ".join(step.origins)))
            else:
                found.append((_count(step) * step.body.work, step.node.origin))
        return found

    @property
    def work(self) -> int:
        """Of all steps, copies included, and one more."""
        outputs = (self.graph.types[name].elements for name in self.graph.outputs)
        return 1 + sum(each for each, _ in self.works()) + sum(outputs)

    def items(
        self,
        inputs: Mapping[str, Place],
        outputs: Sequence[Place],
        memory: Place = START,
        depth: int = 0,
    ) -> tuple[Call | Loop, ...]:
        """The calls with their arguments.

        inputs, outputs: where the graph's lie.  memory: where what is planned begins.
        depth: the number of loops around.
        """
        places = dict(inputs)
        for name, offset in self._offsets.items():
            places[name] = _after(memory, offset)
        for name, number in self._owners.items():
            places[name] = outputs[number]
        read = [name for step in self.steps for name in step.inputs]
        for name in map(self._root, [*read, *(root for root, _ in self.copies)]):
            if name not in places:
                places[name] = self.shared.constant(name, self.graph.constants[name])
        for name in (*read, *self.graph.outputs):
            places[name] = places[self._root(name)]
        found: list[Call | Loop] = []
        for number, step in enumerate(self.steps):
            if isinstance(step, Step):
                arguments = tuple(places[name] for name in (*step.inputs, *step.outputs))
                found.append(Call(step.function, arguments))
            else:
                found += _loop(step, places, _after(memory, self._offsets[_space(number)]), depth)
        for root, number in self.copies:
            kind = self.graph.types[root]
            found.append(_copy(self.shared, kind, places[root], outputs[number]))
        return tuple(found)


def _loop(
    step: _Repetition, places: Mapping[str, Place], space: Place, depth: int
) -> list[Call | Loop]:
    """Initial states are copied, states alternate between two places, the last ones are copied."""
    operator, body = step.operator, step.body
    shared, types = body.shared, operator.body.types
    number, *names = operator.body.inputs
    start = replace(space, origin=Origin.PRIVATE, offset=0) if step.threads > 1 else space
    offset = _aligned(body.bytes)
    before: list[Call | Loop] = []
    last: list[Call] = []
    inner: dict[str, Place] = {}
    outputs: list[Place] = []
    given = step.inputs[operator.guarded :]
    for place, kind in enumerate(step.states):
        size = _size(kind)
        first = _after(start, offset)
        old = replace(first, strides=(Stride(depth, size, True),))
        new = _after(first, size)
        outputs.append(replace(new, strides=(Stride(depth, -size, True),)))
        before.append(_copy(shared, kind, places[given[place]], first))
        last.append(_copy(shared, kind, old, places[step.outputs[place]]))
        inner[names[place]] = old
        offset += 2 * size
    counter, condition = (_after(start, offset + n * ALIGNMENT) for n in range(2))
    inner[number] = counter
    for place, name in enumerate(names[operator.states :], operator.states):
        inner[name] = places[given[place]]
        if place < operator.states + len(operator.backward):
            backward = operator.backward[place - operator.states]
            inner[name] = _slice(inner[name], types[name], operator.count, backward, depth)
    collected = operator.body.outputs[operator.conditional + operator.states :]
    for place, backward in enumerate(operator.collected_backward):
        whole = places[step.outputs[operator.states + place]]
        outputs.append(_slice(whole, types[collected[place]], operator.count, backward, depth))
    if operator.conditional:
        outputs.insert(0, condition)
    read = {name for node in operator.body.nodes for name in node.inputs}
    used = number in read or number in operator.body.outputs
    return [
        *before,
        Loop(
            operator.count,
            body.items(inner, outputs, start, depth + 1),
            tuple(last),
            counter if used else None,
            condition if operator.conditional else None,
            places[step.outputs[-1]] if operator.conditional else None,
            body.work,
            step.node.origin,
            step.threads,
            space.offset,
            step.private_bytes,
            places[step.inputs[0]] if operator.guarded else None,
        ),
    ]


def _slice(whole: Place, kind: TensorType, count: int, backward: bool, depth: int) -> Place:
    """Of the iteration, along the first dimension of ``whole``."""
    size = kind.elements * kind.dtype.bytes
    start = whole.offset + (count - 1) * size if backward else whole.offset
    stride = Stride(depth, -size if backward else size)
    return replace(whole, offset=start, strides=(*whole.strides, stride))


def _after(place: Place, offset: int) -> Place:
    return replace(place, offset=place.offset + offset)


def _copy(shared: Shared, kind: TensorType, source: Place, target: Place) -> Call:
    name = shared.function(copying(kind.elements, kind.dtype))
    return Call(name, (source, target))


def _count(step: _Repetition) -> int:
    return 1 if step.operator.conditional else step.operator.count


def _size(kind: TensorType) -> int:
    return _aligned(kind.elements * kind.dtype.bytes)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _space(number: int) -> str:
    """The name of a loop's work space in the plan; no tensor is called so."""
    return f"\0space{number}"
