"""Loops of models as one operator, ``Repeat``, around the body as a graph of its own.

The body is imported once, with inputs for what changes from iteration to iteration.  A loop stays a
sequence of iterations when its body needs a value that changes (as a shape does that depends on the
iteration), or states change their types.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx

from ...dtypes import DType
from ...graph.folding import FOLDED_WORK, evaluation_work
from ...graph.formulas import Term
from ...graph.ir import Array, Graph, GraphBuilder
from ...graph.operators.movement import Reshape
from ...graph.operators.repetition import Repeat
from ...graph.slices import slice_graph
from ...graph.types import TensorType
from ..source import NeedsValueError
from .context import ImportContext, Tensor, Value, with_narrow
from .inputs import scalar

__all__ = ["FOREVER", "VaryingValueError", "roll_if", "roll_loop", "roll_scan"]

FOREVER = 1 << 62
"""Iterations of a loop that only a condition ends."""

Values = tuple[Value | None, ...]


class VaryingValueError(NeedsValueError):
    """A body needs a value that changes from iteration to iteration."""


def roll_if(
    ctx: ImportContext, condition: Tensor, then: onnx.GraphProto, otherwise: onnx.GraphProto
) -> tuple[Tensor, ...] | None:
    """Results of the branch that the condition chooses at run time.

        r = zeros; repeat then up to once if condition; repeat otherwise up to once if not

    None where the branches' results are not of the same types.
    """
    branches = [_Body.begin(ctx, ()) for _ in range(2)]
    for branch, graph in zip(branches, (then, otherwise), strict=True):
        if branch is None or branch.run(graph, (), 0) is None:
            return None
    first, second = (branch for branch in branches if branch is not None)
    if [(each.type, each.narrow) for each in first.outputs] != [
        (each.type, each.narrow) for each in second.outputs
    ]:
        return None
    results = tuple(
        with_narrow(scalar(ctx, 0, each.type.dtype).expand(*each.type.shape).tensor, each.narrow)
        for each in first.outputs
    )
    for branch, guard in ((first, condition), (second, (~Term(ctx, condition)).tensor)):
        results = branch.once(guard, results)
    return results


def roll_loop(
    ctx: ImportContext, graph: onnx.GraphProto, count: int, carried: Values
) -> tuple[Tensor, ...] | None:
    """States and what is collected, of ONNX's Loop whose condition holds at first.

    None for a loop that cannot be rolled.
    """
    body = _Body.begin(ctx, carried)
    if body is None:
        return None
    going = body.run(graph, (body.number, body.inner.constant(True)), 1)
    if going is None:
        return None
    (condition,) = going
    if body.inner.known(condition):
        if not body.inner.value(condition).reshape(-1)[0]:
            count = 1
        return body.repeat(count)
    known = body.iterations(condition, count)
    if known is not None:
        return body.repeat(known)
    if len(body.outputs) == len(body.states):
        return body.repeat(count, condition)
    return body.repeat(body.count(condition, count))


def roll_scan(
    ctx: ImportContext,
    graph: onnx.GraphProto,
    carried: Values,
    sources: tuple[Tensor, ...],
    backward: tuple[bool, ...],
    collected_backward: tuple[bool, ...],
) -> tuple[Tensor, ...] | None:
    """States and what is collected, of ONNX's Scan of sources along their first dimensions.

    None for a loop that cannot be rolled.
    """
    body = _Body.begin(ctx, carried)
    if body is None or body.run(graph, (), 0, sources) is None:
        return None
    return body.repeat(sources[0].type.shape[0], None, sources, backward, collected_backward)


@dataclass(slots=True)
class _Body:
    """ctx: around the loop.  inner: of the body.  number: of the iteration.

    initial, states: each state before the loop, and in the body.
    outputs: the new states, then what is collected.
    """

    ctx: ImportContext
    inner: ImportContext
    number: Tensor
    initial: tuple[Tensor, ...]
    states: tuple[Tensor, ...]
    slices: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()

    @classmethod
    def begin(cls, ctx: ImportContext, carried: Values) -> "_Body | None":
        """An empty graph with the inputs of a body; None for states that are not tensors."""
        initial = tuple(each for each in carried if isinstance(each, Tensor))
        if len(initial) < len(carried) or ctx.nested is None:
            return None
        inner = ImportContext(
            GraphBuilder(), budget=ctx.budget, opset=ctx.opset, origin=ctx.origin, outer=ctx
        )

        def resolve(name: str) -> Array:
            for outer, captured in inner.captured.values():
                if captured.name == name:
                    return ctx.value(outer)
            raise VaryingValueError(
                f"node {inner.origin!r}: a shape depends on a value that changes in the loop"
            )

        inner.resolve = resolve
        number = _input(inner, "iteration", TensorType((), DType.INT64))
        states = tuple(
            with_narrow(_input(inner, f"state{place}", each.type), each.narrow)
            for place, each in enumerate(initial)
        )
        return cls(ctx, inner, number, initial, states)

    def run(
        self,
        graph: onnx.GraphProto,
        leading: tuple[Tensor, ...],
        heads: int,
        sources: tuple[Tensor, ...] = (),
    ) -> tuple[Tensor, ...] | None:
        """Import the body; its first ``heads`` results, None when it cannot be rolled."""
        self.slices = tuple(
            with_narrow(
                _input(
                    self.inner, f"slice{place}", TensorType(each.type.shape[1:], each.type.dtype)
                ),
                each.narrow,
            )
            for place, each in enumerate(sources)
        )
        assert self.ctx.nested is not None
        arguments: list[Value] = [*leading, *self.states, *self.slices]
        for place in _kept(graph, len(leading), heads, len(self.states)):
            arguments[len(leading) + place] = self.inner.capture(self.initial[place])
        try:
            results = self.ctx.nested(self.inner, graph, tuple(arguments))
        except VaryingValueError:
            return None
        tensors = tuple(each for each in results if isinstance(each, Tensor))
        self.outputs = tensors[heads:]
        given = [(each.type, each.narrow) for each in self.states]
        found = [(each.type, each.narrow) for each in self.outputs[: len(given)]]
        return tensors[:heads] if len(tensors) == len(results) and found == given else None

    def repeat(
        self,
        count: int,
        condition: Tensor | None = None,
        sources: tuple[Tensor, ...] = (),
        backward: tuple[bool, ...] = (),
        collected_backward: tuple[bool, ...] | None = None,
    ) -> tuple[Tensor, ...]:
        """The loop; of ``count`` iterations, or as the condition says."""
        places = range(len(self.states))
        graph, captured = self._graph(condition, places, self.outputs)
        if collected_backward is None:
            collected_backward = (False,) * (len(self.outputs) - len(self.states))
        conditional = condition is not None
        operator = Repeat(graph, count, len(self.states), backward, collected_backward, conditional)
        given = (*self.initial, *sources, *captured)
        results = self.ctx.emit_plain(operator, given, not conditional)
        return tuple(
            with_narrow(each, inner.narrow)
            for each, inner in zip(results, self.outputs, strict=False)
        )

    def once(self, guard: Tensor, initial: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The results of one iteration if ``guard`` holds, else ``initial``, of their types."""
        self.initial = initial
        self.states = tuple(
            _input(self.inner, f"state{place}", each.type) for place, each in enumerate(initial)
        )
        graph, captured = self._graph(None, range(len(initial)), self.outputs)
        operator = Repeat(graph, 1, len(initial), guarded=True)
        results = self.ctx.emit_plain(operator, (guard, *initial, *captured), False)
        return tuple(
            with_narrow(each, inner.narrow)
            for each, inner in zip(results, self.outputs, strict=True)
        )

    def iterations(self, condition: Tensor, most: int) -> int | None:
        """Number of iterations, when that follows from what is known, and soon."""
        graph, given = self._counting(condition)
        if not all(map(self.ctx.known, given)):
            return None
        once = Repeat(graph, 1, len(graph.outputs) - 1, conditional=True)
        work = evaluation_work(once, (), [each.type for each in given])
        tried = min(most, FOLDED_WORK // work + 1)
        values = [self.ctx.value(each) for each in given]
        found = int(self.ctx.computed(replace(once, count=tried), values)[-1])
        return None if found == tried < most else found

    def count(self, condition: Tensor, most: int) -> int:
        """Number of iterations, by a loop that counts them: the model is specialised to it."""
        graph, given = self._counting(condition)
        operator = Repeat(graph, most, len(graph.outputs) - 1, conditional=True)
        return int(self.ctx.value(self.ctx.emit_plain(operator, given, False)[-1]))

    def _counting(self, condition: Tensor) -> tuple[Graph, list[Tensor]]:
        """A body with the states alone that the condition depends on, and its inputs."""
        chosen: set[int] = set()
        while True:
            needed = [condition, *(self.outputs[place] for place in chosen)]
            read = slice_graph(self.inner.builder, [each.name for each in needed]).inputs
            more = {place for place, each in enumerate(self.states) if each.name in read}
            if more <= chosen:
                break
            chosen |= more
        places = sorted(chosen)
        graph, captured = self._graph(condition, places, [self.outputs[n] for n in places])
        return graph, [*(self.initial[place] for place in places), *captured]

    def _graph(
        self, condition: Tensor | None, places: Sequence[int], outputs: Sequence[Tensor]
    ) -> tuple[Graph, list[Tensor]]:
        """The body of some states, and the tensors around the loop that it reads."""
        builder = self.inner.builder
        exits = outputs if condition is None else (condition, *outputs)
        names = [
            builder.node(Reshape(each.type.shape), (each.name,), "result", self.ctx.origin)
            for each in exits
        ]
        part = slice_graph(builder, names)
        around = {inner.name: outer for outer, inner in self.inner.captured.values()}
        captured = [name for name in part.inputs if name in around]
        own = (self.number, *(self.states[place] for place in places), *self.slices)
        inputs = (*(each.name for each in own), *captured)
        types = {**part.types, **{name: builder.types[name] for name in inputs}}
        graph = Graph(inputs, tuple(names), part.nodes, part.constants, types)
        return graph, [around[name] for name in captured]


def _input(ctx: ImportContext, name: str, kind: TensorType) -> Tensor:
    return Tensor(ctx.builder.input(name, kind), kind)


def _kept(graph: onnx.GraphProto, first: int, heads: int, states: int) -> list[int]:
    """The places of states that no iteration changes."""
    source = {
        node.output[0]: node.input[0]
        for node in graph.node
        if node.op_type == "Identity" and len(node.input) == len(node.output) == 1
    }
    found = []
    for place in range(min(states, len(graph.input) - first, len(graph.output) - heads)):
        name = graph.output[heads + place].name
        while name in source:
            name = source.pop(name)
        if name == graph.input[first + place].name:
            found.append(place)
    return found
