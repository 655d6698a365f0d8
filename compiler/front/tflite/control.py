"""Converters of control flow and of variables."""

import numpy as np

from ...dtypes import DType
from ...errors import ModelError
from ...graph.emitter import Tensor
from ...graph.formulas import Term
from ...graph.ir import Graph, GraphBuilder
from ...graph.operators.movement import Reshape
from ...graph.operators.repetition import Repeat
from ...graph.slices import slice_graph
from ...graph.types import TensorType
from .context import ImportContext
from .model import convert_subgraph
from .node import Converter, Node
from .schema import Subgraph

__all__ = ["CONTROL"]

MOST_DEPTH = 20
"""Subgraphs that call each other."""
FOREVER = 1 << 62
"""Iterations of a loop that its condition ends."""


def _subgraph(node: Node, name: str) -> Subgraph:
    number, subgraphs = node.attribute(name, -1), node.context.file.subgraphs
    if not 0 < number < len(subgraphs):
        raise ModelError(f"{node}: subgraph {number} of {len(subgraphs)}")
    return subgraphs[number]


def _called(
    node: Node, context: ImportContext, subgraph: Subgraph, arguments: tuple[Term, ...]
) -> tuple[Term, ...]:
    if context.depth >= MOST_DEPTH:
        raise ModelError(f"{node}: more than {MOST_DEPTH} subgraphs call each other")
    context.depth += 1
    outputs, _ = convert_subgraph(context, subgraph, arguments)
    context.depth -= 1
    return outputs


def convert_if(node: Node) -> tuple[Term, ...]:
    """The branch that a known condition chooses; else both, and of their results the right ones."""
    condition, *rest = node.terms()
    arguments = tuple(rest)
    branches = [_subgraph(node, f"{name}_subgraph_index") for name in ("then", "else")]
    if node.context.known(condition.tensor):
        branch = branches[0 if node.value(0).reshape(-1)[0] else 1]
        return _called(node, node.context, branch, arguments)
    first, second = (_called(node, node.context, each, arguments) for each in branches)
    types = [[each.tensor.type for each in results] for results in (first, second)]
    if types[0] != types[1]:
        raise node.unsupported("a condition of branches whose results have different types")
    chosen = condition.reshape()
    return tuple(chosen.where(a, b, a.dtype) for a, b in zip(first, second, strict=True))


def convert_while(node: Node) -> tuple[Term, ...]:
    """The body again and again while the condition holds, as one operator."""
    initial = node.terms()
    check, body = (_subgraph(node, f"{name}_subgraph_index") for name in ("cond", "body"))
    (guard,) = _called(node, node.context, check, initial)
    graph = _body(node, check, body, initial)
    operator = Repeat(graph, FOREVER, len(initial), conditional=True, guarded=True)
    given = (guard.reshape().tensor, *(each.tensor for each in initial))
    results = node.context.emit_many(operator, *given)
    return tuple(Term(node.context, each) for each in results[: len(initial)])


def _body(node: Node, check: Subgraph, body: Subgraph, initial: tuple[Term, ...]) -> Graph:
    """One iteration: the new states, and before them whether there is another one."""
    outer = node.context
    inner = ImportContext(
        GraphBuilder(),
        outer.origin,
        file=outer.file,
        budget=outer.budget,
        converters=outer.converters,
        depth=outer.depth + 1,
    )
    kinds = [TensorType((), DType.INT64), *(each.tensor.type for each in initial)]
    names = [inner.builder.input(f"state{place}", kind) for place, kind in enumerate(kinds)]
    states = tuple(
        Term(inner, Tensor(name, kind)) for name, kind in zip(names[1:], kinds[1:], strict=True)
    )
    results = _called(node, inner, body, states)
    if [each.tensor.type for each in results] != kinds[1:]:
        raise node.unsupported("a body whose results have other types than its inputs")
    (going,) = _called(node, inner, check, results)
    exits = [
        inner.builder.node(Reshape(each.shape), (each.tensor.name,), "result", outer.origin)
        for each in (going.reshape(), *results)
    ]
    part = slice_graph(inner.builder, exits)
    types = {**part.types, **{name: inner.builder.types[name] for name in names}}
    return Graph(tuple(names), tuple(exits), part.nodes, part.constants, types)


def convert_call_once(node: Node) -> tuple[Term, ...]:
    """Convert the subgraph that gives variables their first values."""
    _called(node, node.context, _subgraph(node, "init_subgraph_index"), ())
    return ()


def convert_variable(node: Node) -> Term:
    """A number that stands for a variable."""
    name = f"{node.attribute('container', '')}/{node.attribute('shared_name', '')}"
    numbers = node.context.variable_numbers
    return node.constant(numbers.setdefault(name, len(numbers)), DType.INT32)


def convert_assign(node: Node) -> tuple[Term, ...]:
    """A variable's new value, for what reads it after."""
    node.context.variables[int(node.value(0))] = node.term(1)
    return ()


def convert_read(node: Node) -> Term:
    """A variable's value; zeros where nothing was assigned."""
    number = int(node.value(0))
    if number in node.context.variables:
        return node.context.variables[number]
    kind = node.result()
    node.context.require_room(*kind.shape)
    return node.constant(np.zeros(kind.shape), kind.dtype)


CONTROL: dict[str, Converter] = {
    "ASSIGN_VARIABLE": convert_assign,
    "CALL_ONCE": convert_call_once,
    "IF": convert_if,
    "READ_VARIABLE": convert_read,
    "VAR_HANDLE": convert_variable,
    "WHILE": convert_while,
}
