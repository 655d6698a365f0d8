"""Results that end as bytes are packed four vectors at a time, and are the same bytes."""

import numpy as np
import pytest

from dovetail.compiler.graph.groups import group_nodes
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.loops.ir import Invoke
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.schedule.rules.cpu.machine import Machine
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.compiler.targets.cpu.recorded import schedule_kernel
from dovetail.compiler.targets.cpu.segment import EXACT_PASSES, compile_segment

from ...graph.graphs import convolution, image_builder


def layer(size: tuple[int, int], groups: int, limits: tuple[int, int], scale: float) -> Graph:
    """A 3x3 layer of 32 channels, its results limited, and one that reads them."""
    rng = np.random.default_rng(size[1])
    builder = image_builder((1, *size, 32))
    w = builder.constant("w", rng.integers(-128, 128, (32, 3, 3, 32 // groups)).astype(np.int8))
    b = builder.constant("b", rng.integers(-5000, 5000, 32).astype(np.int32))
    s = builder.constant("s", rng.uniform(scale, 2 * scale, 32).astype(np.float32))
    total = builder.node(Conv2d((1, 1), (1, 1, 1, 1), groups, 11), ("x", w, b), "sum", "conv")
    y = builder.node(Requantize(-4, *limits), (total, s), "y", "conv")
    return builder.build((convolution(builder, y, 32),))


def packed(graph: Graph) -> int:
    """How many packings the code has."""
    graph = EXACT_PASSES.run(graph)
    bodies = (
        schedule_kernel(graph, nodes, Machine()).function.body
        for nodes in group_nodes(graph)
        if len(nodes) > 1
    )
    calls = (each for body in bodies for each in walk(body) if isinstance(each, Invoke))
    return sum(each.intrinsic == "pack_uint8_16" for each in calls)


@pytest.mark.parametrize("size", [(7, 9), (13, 4), (6, 30)])
@pytest.mark.parametrize("groups", [1, 32])
@pytest.mark.parametrize(
    ("limits", "scale"), [((-128, 127), 3e-3), ((-4, 127), 3e-3), ((-100, 90), 1e5)]
)
def test_packed_results_are_the_same_bytes(
    size: tuple[int, int], groups: int, limits: tuple[int, int], scale: float
) -> None:
    graph = layer(size, groups, limits, scale)
    assert packed(graph)
    x = np.random.default_rng(0).integers(-128, 128, (1, *size, 32)).astype(np.int8)
    for threads in (1, 2):
        found = compile_segment(graph, LlvmOptions(threads=threads), EXACT_PASSES).run({"x": x})
        for name in graph.outputs:
            np.testing.assert_array_equal(found[name], run(graph, {"x": x})[name])
