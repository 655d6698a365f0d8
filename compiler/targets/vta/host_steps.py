"""Nodes that the host runs, as the steps of ``dovetail.runtime.host``."""

from collections.abc import Sequence
from typing import Any

from ...errors import UnsupportedOperatorError
from ...graph.ir import Node
from ...graph.operators.integer.conversions import Dequantize, Quantize, Shift128
from ...graph.operators.integer.values import Softmax
from ...graph.operators.movement import Reshape, Transpose

__all__ = ["host_steps"]


def host_steps(nodes: Sequence[Node], first: str) -> list[dict[str, Any]]:
    """The steps of a chain of nodes that begins with tensor ``first``.

    Raises UnsupportedOperatorError when the nodes are no chain, or one has no step.
    """
    steps, current = [], first
    for node in nodes:
        if node.inputs[0] != current:
            raise UnsupportedOperatorError(
                f"node {node.origin!r}: the host runs one chain of nodes; "
                f"this one reads {node.inputs[0]!r}"
            )
        steps.append(_step(node))
        current = node.output
    return steps


def _step(node: Node) -> dict[str, Any]:
    match node.operator:
        case Quantize(scale=scale, zero_point=zero_point):
            return {"step": "quantize", "scale": scale, "zero_point": zero_point}
        case Dequantize(scale=scale, zero_point=zero_point):
            return {"step": "dequantize", "scale": scale, "zero_point": zero_point}
        case Softmax() as softmax:
            return {
                "step": "softmax",
                "x_scale": softmax.x_scale,
                "x_zero_point": softmax.x_zero_point,
                "scale": softmax.scale,
                "zero_point": softmax.zero_point,
            }
        case Shift128(to=to):
            return {"step": "shift128", "to": to}
        case Reshape(shape=shape):
            return {"step": "reshape", "shape": list(shape)}
        case Transpose(permutation=permutation):
            return {"step": "transpose", "permutation": list(permutation)}
        case other:
            raise UnsupportedOperatorError(
                f"node {node.origin!r}: {type(other).__name__} has no host step"
            )
