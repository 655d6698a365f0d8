"""Kernels of a model for CPUs: groups of nodes separately, and where they come from."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dovetail.isa.frozen import frozen

from ..graph.groups import group_nodes
from ..graph.ir import Graph, Node
from ..graph.keys import group_key
from ..graph.operators.contractions import Contract
from ..graph.operators.movement import Reshape
from ..graph.operators.protocol import Fusion
from ..graph.operators.repetition import Repeat
from ..graph.operators.winograd import Winograd
from ..loops.ir import Function
from ..schedule.records import KernelRecord
from ..schedule.rules.cpu.machine import Machine
from ..schedule.steps.schedule import Step
from ..schedule.steps.threads import over_threads
from ..targets.cpu.llvm.intrinsics import INTRINSICS
from ..targets.cpu.llvm.target import CpuTarget
from ..targets.cpu.recorded import Kernel as Scheduled
from ..targets.cpu.recorded import recorded_kernel, schedule_kernel

__all__ = ["Kernel", "Place", "Setting", "kernels_of"]


@frozen
class Setting:
    """Target of the code: as of LlvmOptions."""

    level: str = "native"
    threads: int = 1
    constant_bytes: int = 0
    """Bytes of the network's constants: as much passes through the caches between two calls."""

    @property
    def cpu(self) -> str:
        """LLVM's name of the CPU."""
        return CpuTarget.at_level(self.level).cpu

    @property
    def title(self) -> str:
        """Where measurements hold: the CPU, and the compiler that made the code."""
        return f"{self.cpu}, {self.threads} threads, compiler {_compiler_digest()}"

    @property
    def machine(self) -> Machine:
        """As the lowering sees it."""
        return CpuTarget.at_level(self.level).machine(self.threads)


@cache
def _compiler_digest() -> str:
    """Hash of the sources that decide what a record becomes."""
    digest, compiler = hashlib.sha256(), Path(__file__).parents[1]
    for folder in ("define", "loops", "schedule/steps", "schedule/rules/cpu", "targets/cpu/llvm"):
        for path in sorted((compiler / folder).glob("*.py")):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


@frozen
class Kernel:
    """A group of nodes as a graph of its own; constants except for scalars are inputs.

    cold: inputs that are constants, which come from memory each time that a network runs.
    """

    graph: Graph
    key: str
    title: str
    cold: frozenset[str]

    def __reduce__(self) -> tuple[Any, ...]:
        graph = self.graph
        parts = (graph.inputs, graph.outputs, graph.nodes, dict(graph.constants), dict(graph.types))
        return _unpacked, (parts, self.key, self.title, self.cold)

    def recorded(self, setting: Setting, record: KernelRecord) -> Scheduled:
        """Its loops by a record.  Raises ScheduleError for one that does not suit."""
        return recorded_kernel(self.graph, self.graph.nodes, setting.machine, record)

    def ruled(self, setting: Setting, given: Sequence[Step] = ()) -> Scheduled:
        """Its loops by the rules, and by steps that are given in place of theirs.

        Raises ScheduleError for some that do not suit.
        """
        return schedule_kernel(self.graph, self.graph.nodes, setting.machine, given)

    def function(self, setting: Setting, record: KernelRecord) -> Function:
        """The function to compile: loops, and over threads if there are more than one.

        Raises ScheduleError for a record that does not suit.
        """
        function = replace(self.recorded(setting, record).function, name="kernel")
        return over_threads(function, INTRINSICS) if setting.threads > 1 else function


def _unpacked(parts: tuple[Any, ...], key: str, title: str, cold: frozenset[str]) -> Kernel:
    """From another process."""
    return Kernel(Graph(*parts), key, title, cold)


@frozen
class Place:
    """A kernel where a graph calls it.

    origin: the node of the model whose contraction it computes, or else whose result.
    tile: Winograd's, 0 for none.  calls: in one run.
    """

    kernel: Kernel
    origin: str
    tile: int
    calls: int = 1


def kernels_of(graph: Graph, calls: int = 1) -> Iterator[Place]:
    """The groups of a graph that went through all passes, bodies of loops included.

    calls: of the graph, in one run.
    """
    for nodes in group_nodes(graph):
        if isinstance(nodes[0].operator, Repeat):
            operator = nodes[0].operator
            times = 1 if operator.conditional else max(operator.count, 1)
            yield from kernels_of(operator.body, calls * times)
        elif not (len(nodes) == 1 and isinstance(nodes[0].operator, Reshape)):
            anchors = [n for n in nodes if isinstance(n.operator, Contract | Winograd)]
            anchor = (*anchors, nodes[-1])[0]
            tile = anchor.operator.tile if isinstance(anchor.operator, Winograd) else 0
            yield Place(_kernel(graph, nodes), anchor.origin, tile, calls)


def _kernel(graph: Graph, nodes: Sequence[Node]) -> Kernel:
    made = {name for node in nodes for name in node.outputs}
    read = tuple(dict.fromkeys(n for node in nodes for n in node.inputs if n not in made))
    scalars = {
        name: graph.constants[name]
        for name in read
        if name in graph.constants and graph.constants[name].size == 1
    }
    types = {name: graph.types[name] for name in (*read, *made)}
    inputs = tuple(name for name in read if name not in scalars)
    own = Graph(inputs, nodes[-1].outputs, tuple(nodes), scalars, types)
    cold = frozenset(name for name in inputs if name in graph.constants)
    return Kernel(own, group_key(graph, nodes), _title(types, nodes), cold)


def _title(types: Mapping[str, object], nodes: Sequence[Node]) -> str:
    """The anchor, or else the last node, and shapes."""
    anchor = nodes[-1]
    for node in nodes:
        operator = node.operator
        if operator.fusion in (Fusion.CONTRACTION, Fusion.REDUCTION):
            anchor = node
    name = type(anchor.operator).__name__
    if isinstance(anchor.operator, Winograd):
        name = f"{name}{anchor.operator.tile}"
    more = f"+{len(nodes) - 1}" if len(nodes) > 1 else ""
    given = " ".join(str(types[x]) for x in anchor.inputs)
    return f"{name}{more} {given} -> {types[nodes[-1].output]}"
