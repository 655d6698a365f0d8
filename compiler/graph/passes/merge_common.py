"""Compute once what is computed several times in the same way.

    a = f(x); b = f(x); g(a, b)  ->  a = f(x); g(a, a)

Nodes with equal operators and inputs, and constants of equal content, are one.  Every merge removes
a node or a constant and none is added, so the pass ends.
"""

from collections.abc import Hashable
from dataclasses import replace
from types import MappingProxyType

from dovetail.isa.frozen import frozen

from ..ir import Array, Graph, Node
from ..operators.protocol import TensorOperator

__all__ = ["MergeCommon"]

LARGEST = 1 << 16
"""Bytes of a constant that is compared with others."""


@frozen
class MergeCommon:
    """A node whose result the graph returns stays."""

    name: str = "merge_common"

    def run(self, graph: Graph) -> Graph:
        """The graph without repetitions; ``graph`` itself when there are none."""
        names: dict[str, str] = {}
        seen: dict[Hashable, tuple[str, ...]] = {}
        constants: dict[str, Array] = {}
        for name, array in graph.constants.items():
            key = _content(array) if name not in graph.outputs else None
            if key is not None and key in seen:
                (names[name],) = seen[key]
                continue
            if key is not None:
                seen[key] = (name,)
            constants[name] = array
        nodes: list[Node] = []
        for node in graph.nodes:
            inputs = tuple(names.get(name, name) for name in node.inputs)
            known = _identity(node.operator)
            key = known and (known, inputs)
            if key in seen and not set(node.outputs) & set(graph.outputs):
                names.update(zip(node.outputs, seen[key], strict=True))
                continue
            if key is not None:
                seen.setdefault(key, node.outputs)
            nodes.append(node if inputs == node.inputs else replace(node, inputs=inputs))
        if not names:
            return graph
        types = {name: kind for name, kind in graph.types.items() if name not in names}
        return replace(
            graph,
            nodes=tuple(nodes),
            constants=MappingProxyType(constants),
            types=MappingProxyType(types),
        )


def _content(array: Array) -> Hashable | None:
    """Equal for constants of equal bits; None for large ones."""
    if array.nbytes > LARGEST:
        return None
    return str(array.dtype), array.shape, array.tobytes()


def _identity(operator: TensorOperator) -> Hashable | None:
    """Equal for operators that do the same; None for those that cannot be compared.

    Its text tells -0.0 from 0.0.
    """
    try:
        hash(operator)
    except TypeError:
        return None
    return operator, repr(operator)
