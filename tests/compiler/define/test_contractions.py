"""Definitions of contractions: serial loops whose meaning is the operators', scheduled by steps."""

import json

import numpy as np
import pytest

from dovetail.compiler.define.group import define_group
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, Node
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import For, Invoke, LoopKind
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.rules.cpu.group import schedule_group
from dovetail.compiler.schedule.rules.cpu.machine import Machine
from dovetail.compiler.schedule.steps.trace import replay, to_record
from dovetail.compiler.targets.cpu.llvm.intrinsics import INTRINSICS

from .groups import groups

GROUPS = list(groups())
MACHINES = (Machine(), Machine(32, 16, threads=4), Machine(streamed_bytes=1))


@pytest.mark.parametrize(("graph", "nodes"), GROUPS)
def test_a_definition_is_serial_and_means_what_numpy_says(
    graph: Graph, nodes: tuple[Node, ...]
) -> None:
    definition = define_group(graph, nodes)
    function = definition.function
    verify(function)
    for stmt in walk(function.body):
        assert not isinstance(stmt, Invoke)
        assert not isinstance(stmt, For) or stmt.kind is LoopKind.SERIAL
    rng = np.random.default_rng(0)
    given = {
        name: rng.integers(0, 5, kind.shape).astype(kind.dtype.numpy)
        for name, kind in ((name, graph.types[name]) for name in graph.inputs)
    }
    named = {f"in{n}": given[name] for n, name in enumerate(definition.inputs)}
    expected = run(graph, given)[graph.outputs[0]]
    np.testing.assert_array_equal(interpret(function, named)["out0"], expected)
    for machine in MACHINES:
        kernel = schedule_group(definition, machine, INTRINSICS).function
        verify(kernel)
        found = interpret(kernel, named, intrinsics=INTRINSICS)["out0"]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("graph", "nodes"), GROUPS)
def test_the_trace_read_back_from_json_gives_the_same_kernel(
    graph: Graph, nodes: tuple[Node, ...], machine: Machine
) -> None:
    definition = define_group(graph, nodes)
    kernel = schedule_group(definition, machine, INTRINSICS)
    trace = json.loads(json.dumps(to_record(kernel)))
    again = replay(definition.function, trace, INTRINSICS)
    assert to_text(again.function) == to_text(kernel.function)
    assert again.function == kernel.function
