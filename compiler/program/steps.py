"""The steps that compute a graph, and a plan of the memory of what they compute.

A step is a call of a function, or a loop over the steps of a graph of its own.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from dovetail.isa.frozen import frozen

from ..graph.groups import group_nodes
from ..graph.ir import Graph, Node
from ..graph.operators.movement import Reshape
from ..graph.operators.repetition import Repeat
from ..graph.types import TensorType
from ..loops.ir import Function
from .functions import Shared, first_shared
from .memory import aligned, plan_apart, plan_memory

__all__ = ["Body", "Repetition", "Step", "size_of"]

SCALAR_BYTES = 8
MOST_APART = 64 << 20
"""Bytes more for tensors to share memory with others of their layout only."""
LEAST_SHARED = 1 << 16
"""Work of a loop that is worth threads."""


@frozen
class Step:
    """A call of ``function`` on tensors; origins: the model's nodes it computes."""

    function: Function
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    origins: tuple[str, ...]


@frozen
class Repetition:
    """A loop over the steps of ``body``; nested: it is in another one.

    Its work space: the memory of the body, two places for each state, then the iteration's number
    and the condition.
    """

    node: Node
    operator: Repeat
    body: "Body"
    nested: bool

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
        """The types of the tensors that one iteration hands to the next."""
        types = self.operator.body.types
        return [types[name] for name in self.operator.body.inputs[1 : 1 + self.operator.states]]

    @property
    def may_stop(self) -> bool:
        """True if it, or a loop in it, ends the run when it has used up what is allowed."""
        return self.operator.conditional or any(
            isinstance(step, Repetition) and step.may_stop for step in self.body.steps
        )

    @property
    def threads(self) -> int:
        """Number of threads that share the iterations."""
        apart = self.operator.states == 0 and not self.may_stop
        worth = self.operator.count * self.body.work >= LEAST_SHARED
        return self.body.shared.lowering.threads if apart and worth and not self.nested else 1

    @property
    def private_bytes(self) -> int:
        """Size of the work space of one thread."""
        states = 2 * sum(map(size_of, self.states))
        return aligned(self.body.bytes) + states + 2 * aligned(SCALAR_BYTES)

    @property
    def bytes(self) -> int:
        """Size of the work space of all threads."""
        return self.threads * self.private_bytes

    @property
    def work(self) -> int:
        """Work of all iterations; of one, where a condition decides how many there are."""
        return (1 if self.operator.conditional else self.operator.count) * self.body.work


@dataclass(slots=True)
class Body:
    """The steps of ``graph``.

    nested: the graph is the body of a loop.  bytes: of memory that the plan takes.
    Raises UnsupportedOperatorError for an operator that has no lowering.
    """

    graph: Graph
    shared: Shared
    nested: bool = False
    bytes: int = 0
    steps: list[Step | Repetition] = field(default_factory=list)
    copies: list[tuple[str, int]] = field(default_factory=list)
    """Outputs that are elsewhere too: the tensor, the output's number."""
    owners: dict[str, int] = field(default_factory=dict)
    """Tensors that are computed in the memory of an output: its number."""
    offsets: dict[str, int] = field(default_factory=dict)
    """Where each other computed tensor begins in the memory."""
    spaces: dict[int, int] = field(default_factory=dict)
    """Where the work space of each step that is a loop begins."""
    _aliases: dict[str, str] = field(default_factory=dict)
    """Tensors that are others under another shape."""

    def __post_init__(self) -> None:
        for nodes in group_nodes(self.graph):
            self._add(nodes)
        computed = {name for step in self.steps for name in step.outputs}
        for number, name in enumerate(self.graph.outputs):
            root = self.root(name)
            if root in computed and root not in self.owners:
                self.owners[root] = number
            else:
                self.copies.append((root, number))
        self._plan()

    def _add(self, nodes: tuple[Node, ...]) -> None:
        (first, *others) = nodes
        if isinstance(first.operator, Reshape) and not others:
            self._aliases[first.output] = first.inputs[0]
        elif isinstance(first.operator, Repeat):
            body = Body(first.operator.body, self.shared, True)
            self.steps.append(Repetition(first, first.operator, body, self.nested))
        else:
            kernel = self.shared.lowering.lower(self.graph, nodes)
            origins = tuple(dict.fromkeys(node.origin for node in nodes))
            function = self.shared.function(kernel.function)
            self.steps.append(Step(function, kernel.inputs, kernel.outputs, origins))

    def root(self, name: str) -> str:
        """The tensor whose memory ``name`` is."""
        while name in self._aliases:
            name = self._aliases[name]
        return name

    def _plan(self) -> None:
        """Offsets of what is computed but not returned, and of the work space of loops."""
        lifetimes: dict[str, tuple[int, int]] = {}
        sizes: dict[str, int] = {}
        spaces: dict[str, int] = {}
        for number, step in enumerate(self.steps):
            for name in step.outputs:
                if name not in self.owners:
                    lifetimes[name] = (number, number)
                    kind = self.graph.types[name]
                    sizes[name] = kind.elements * kind.dtype.bytes
            for name in map(self.root, step.inputs):
                if name in lifetimes:
                    lifetimes[name] = (lifetimes[name][0], number)
            if isinstance(step, Repetition):
                space = f"\0space{number}"
                spaces[space] = number
                lifetimes[space] = (number, number)
                sizes[space] = step.bytes
        for name, _ in self.copies:
            if name in lifetimes:
                lifetimes[name] = (lifetimes[name][0], len(self.steps))
        plan = plan_memory(lifetimes, sizes)
        if self.shared.lowering.threads > 1:
            apart = plan_apart(lifetimes, sizes, self._layouts(lifetimes))
            plan = apart if apart.bytes <= plan.bytes + MOST_APART else plan
        self.bytes = plan.bytes
        for name, offset in plan.offsets.items():
            if name in spaces:
                self.spaces[spaces[name]] = offset
            else:
                self.offsets[name] = offset

    def _layouts(self, names: Mapping[str, object]) -> dict[str, Hashable]:
        """Tensors of equal layouts: each thread writes to the same places, wherever these are.

        A layout is the shape of the part in which threads find their places.
        """
        found: dict[str, Hashable] = {name: name for name in names}
        for step in self.steps:
            for place, name in enumerate(step.outputs):
                shape = self.graph.types[name].shape
                first = 0
                if isinstance(step, Step):
                    first = first_shared(step.function, step.function.outputs[place].name)
                found[name] = shape[first:]
        return found

    def works(self) -> list[tuple[int, str]]:
        """The work of each step, and the nodes it stands for; of a loop with a condition once."""
        return [
            (self.shared.works[step.function.name], ", ".join(step.origins))
            if isinstance(step, Step)
            else (step.work, step.node.origin)
            for step in self.steps
        ]

    @property
    def work(self) -> int:
        """Work of all steps, copies included, and one more."""
        outputs = (self.graph.types[name].elements for name in self.graph.outputs)
        return 1 + sum(each for each, _ in self.works()) + sum(outputs)


def size_of(kind: TensorType) -> int:
    """Bytes of memory that a tensor takes."""
    return aligned(kind.elements * kind.dtype.bytes)
