"""The meaning of a graph: its operators evaluated in order; the oracle of all backends."""

from collections.abc import Mapping

from ..errors import GraphError
from .ir import Array, Graph

__all__ = ["run"]


def run(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Evaluate the graph on ``inputs``; return every tensor by name, outputs among them.

    Raises GraphError when an input is missing, unknown, or of another type.
    """
    _check_inputs(graph, inputs)
    values: dict[str, Array] = {**graph.constants, **inputs}
    for node in graph.nodes:
        results = node.operator.evaluate([values[name] for name in node.inputs])
        values.update(zip(node.outputs, results, strict=True))
    return values


def _check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> None:
    if set(inputs) != set(graph.inputs):
        raise GraphError(f"inputs {sorted(inputs)}; required {sorted(graph.inputs)}")
    for name, array in inputs.items():
        wanted = graph.types[name]
        if array.shape != wanted.shape or array.dtype != wanted.dtype.numpy:
            raise GraphError(
                f"input {name!r} is {array.dtype}{list(array.shape)}; required {wanted}"
            )
