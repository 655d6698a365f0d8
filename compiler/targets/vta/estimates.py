"""Estimated cost of nodes on the accelerator and on the CPU, before compilation.

The CPU is that of a Zynq 7020 (two Cortex-A9, 650 MHz), which the default configuration sits
beside.  The figures only decide about groups of nodes without products that are cheaper than a
launch: all others run on the accelerator if it has them.
"""

from dovetail.isa.config import HardwareConfig

from ...graph.ir import Graph, Node
from ...graph.operators.integer.products import Conv2d, RowProducts
from ...graph.operators.movement import Reshape
from ...graph.partition import Costs

__all__ = ["costs_of"]

HOST_ELEMENTS = 1e8
"""Elements a second that the CPU computes, quantised, one operator at a time."""

HOST_BYTES = 4e8
"""Bytes a second that the CPU brings from one layout to the other, in its memory."""

LAUNCH_SECONDS = 50e-6
"""Registers written, and an interrupt or a poll, under Linux."""


def costs_of(config: HardwareConfig) -> Costs:
    """The estimates for an accelerator."""

    def own(graph: Graph, node: Node) -> float:
        words = graph.types[node.output].elements / config.block
        return 0 if isinstance(node.operator, Reshape) else words / config.clock_hz

    def host(graph: Graph, node: Node) -> float | None:
        if isinstance(node.operator, Conv2d | RowProducts):
            return None
        elements = graph.types[node.output].elements
        return 0 if isinstance(node.operator, Reshape) else elements / HOST_ELEMENTS

    return Costs(own, host, LAUNCH_SECONDS, 1 / HOST_BYTES)
