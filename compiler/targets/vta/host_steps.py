"""Nodes that the host runs, as steps of the module's part."""

from collections.abc import Sequence

from dovetail.runtime.accelerator import host_steps as steps
from dovetail.runtime.accelerator.host_steps import HostStep

from ...errors import UnsupportedOperatorError
from ...graph.ir import Node
from ...graph.operators.assembly import Halves
from ...graph.operators.integer.conversions import Dequantize, Quantize, Shift128
from ...graph.operators.integer.values import Softmax
from ...graph.operators.movement import Reshape, Slice, Transpose

__all__ = ["host_steps"]


def host_steps(nodes: Sequence[Node]) -> tuple[HostStep, ...]:
    """The steps of a chain of nodes.

    Raises UnsupportedOperatorError when one has no step.
    """
    return tuple(_step(node) for node in nodes)


def _step(node: Node) -> HostStep:
    match node.operator:
        case Quantize(scale=scale, zero_point=zero_point):
            return steps.Quantize(scale, zero_point)
        case Dequantize(scale=scale, zero_point=zero_point):
            return steps.Dequantize(scale, zero_point)
        case Softmax() as softmax:
            return steps.Softmax(
                softmax.x_scale, softmax.x_zero_point, softmax.scale, softmax.zero_point
            )
        case Shift128(to=to):
            return steps.Shift128(str(to))
        case Reshape(shape=shape):
            return steps.Reshape(shape)
        case Transpose(permutation=permutation):
            return steps.Transpose(permutation)
        case Halves() as halves:
            return steps.Halves(halves.rows, halves.above, halves.last, halves.fill)
        case Slice(starts=starts):
            return steps.Image(starts[0])
        case other:
            raise UnsupportedOperatorError(
                f"node {node.origin!r}: {type(other).__name__} has no host step"
            )
