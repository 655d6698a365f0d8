"""A graph that runs on a device at once, without a module between."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen
from dovetail.runtime.device import Device, PreparedPart

from ...graph.ir import Graph
from ...options import CompileOptions
from ...pipeline.trace import Trace
from .compile import compile_graph, prepare_graph
from .target import Gpu

__all__ = ["GpuSegment", "compile_segment"]

Array = NDArray[Any]


@frozen
class GpuSegment:
    """A compiled graph, ready on a device; see ``executor.Segment``."""

    graph: Graph
    kernel_calls: int
    ready: PreparedPart

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The graph's outputs, by name.  Raises WorkLimitError when a loop does not end."""
        given = {name: np.asarray(inputs[name], order="C") for name in self.graph.inputs}
        return dict(self.ready.run(given).outputs)


def compile_segment(graph: Graph, target: Gpu, device: Device) -> GpuSegment:
    """Compile a graph of general operators for ``target``, and make it ready on ``device``.

    Raises UnsupportedOperatorError for an operator that has no loops.
    """
    options = CompileOptions.from_environment()
    trace = Trace(options)
    prepared = prepare_graph(graph, target.backend, options, trace)
    part = compile_graph(prepared, target.name, target.backend, options, trace)
    return GpuSegment(graph, len(part.origins), device.prepare(part))
