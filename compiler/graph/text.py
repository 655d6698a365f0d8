"""Graphs as text, for dumps: one line a tensor and a node."""

from .ir import Graph

__all__ = ["to_text"]


def to_text(graph: Graph) -> str:
    """Inputs, constants, nodes and outputs, one a line."""
    lines = [f"input {name}: {graph.types[name]}" for name in graph.inputs]
    lines += [f"constant {name}: {graph.types[name]}" for name in graph.constants]
    for node in graph.nodes:
        arguments = ", ".join(node.inputs)
        kind = graph.types[node.output]
        lines.append(f"{node.output}: {kind} = {node.operator}({arguments})")
    lines += [f"output {name}" for name in graph.outputs]
    return "\n".join(lines)
