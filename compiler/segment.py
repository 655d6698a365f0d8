"""A graph as machine code: groups of nodes → loop programs → LLVM → calls in order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .backends.llvm.compile import LlvmOptions, compile_functions
from .backends.llvm.module import CompiledModule
from .graph.block_channels import BlockChannels
from .graph.expand_convolutions import ExpandConvolutions
from .graph.fold_scales import FoldScales
from .graph.groups import group_nodes
from .graph.ir import Graph
from .graph.memory import ALIGNMENT, MemoryPlan, plan_memory
from .graph.operators.movement import Reshape
from .loops.ir import Function
from .loops.text import to_text
from .lower.group import lower_group
from .passes import Pipeline

__all__ = ["Segment", "Step", "compile_segment"]

Array = NDArray[Any]

PASSES: Pipeline[Graph] = Pipeline((FoldScales(), BlockChannels(), ExpandConvolutions()))
"""What a graph goes through before it becomes groups."""


@dataclass(frozen=True, slots=True)
class Step:
    """A call of ``function`` on tensors."""

    function: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    origins: tuple[str, ...]
    """The model's nodes it computes."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A compiled graph.

    aliases: tensors that are others under another shape.
    plan: where intermediate tensors lie.
    """

    graph: Graph
    steps: tuple[Step, ...]
    aliases: Mapping[str, str]
    plan: MemoryPlan
    code: CompiledModule

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The graph's outputs, by name; each is an array of its own.

        inputs: of the types of the graph's inputs, contiguous.
        """
        memory = _block(self.plan.bytes)
        values: dict[str, Array] = {**self.graph.constants}
        for name in self.graph.inputs:
            values[name] = np.ascontiguousarray(inputs[name]).reshape(inputs[name].shape)
        for step in self.steps:
            arguments = [self._value(values, name) for name in step.inputs]
            results = [self._place(memory, name) for name in step.outputs]
            self.code.run(step.function, arguments, results)
            values.update(zip(step.outputs, results, strict=True))
        return {name: self._returned(values, name) for name in self.graph.outputs}

    def _returned(self, values: dict[str, Array], name: str) -> Array:
        found = self._value(values, name)
        computed = name in values and name not in self.graph.constants
        return found if computed and name not in self.graph.inputs else found.copy()

    def _value(self, values: dict[str, Array], name: str) -> Array:
        found = values.get(name)
        if found is None:
            found = self._value(values, self.aliases[name]).reshape(self.graph.types[name].shape)
            values[name] = found
        return found

    def _place(self, memory: Array, name: str) -> Array:
        kind = self.graph.types[name]
        if name not in self.plan.offsets:
            return np.empty(kind.shape, kind.dtype.numpy)
        start = self.plan.offsets[name]
        size = kind.elements * kind.dtype.bytes
        return memory[start : start + size].view(kind.dtype.numpy).reshape(kind.shape)


def compile_segment(graph: Graph, options: LlvmOptions | None = None) -> Segment:
    """Compile a graph of general operators.

    Raises UnsupportedOperatorError for an operator that has no lowering.
    """
    graph = PASSES.run(graph)
    functions: dict[str, Function] = {}
    steps: list[Step] = []
    aliases: dict[str, str] = {}
    for nodes in group_nodes(graph):
        if len(nodes) == 1 and isinstance(nodes[0].operator, Reshape):
            aliases[nodes[0].output] = nodes[0].inputs[0]
            continue
        lowered = lower_group(graph, nodes)
        text = to_text(lowered.function)
        function = functions.setdefault(
            text, replace(lowered.function, name=f"kernel{len(functions)}")
        )
        origins = tuple(dict.fromkeys(node.origin for node in nodes))
        steps.append(Step(function.name, lowered.inputs, lowered.outputs, origins))
    plan = _plan(graph, steps, aliases)
    code = compile_functions(list(functions.values()), options or LlvmOptions())
    return Segment(graph, tuple(steps), aliases, plan, code)


def _plan(graph: Graph, steps: Sequence[Step], aliases: Mapping[str, str]) -> MemoryPlan:
    """Places of what the steps compute, but for what the graph returns."""

    def root(name: str) -> str:
        while name in aliases:
            name = aliases[name]
        return name

    returned = {root(name) for name in graph.outputs}
    lifetimes: dict[str, tuple[int, int]] = {}
    for number, step in enumerate(steps):
        for name in step.outputs:
            if name not in returned:
                lifetimes[name] = (number, number)
        for name in map(root, step.inputs):
            if name in lifetimes:
                lifetimes[name] = (lifetimes[name][0], number)
    sizes = {name: graph.types[name].elements * graph.types[name].dtype.bytes for name in lifetimes}
    return plan_memory(lifetimes, sizes)


def _block(size: int) -> Array:
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]
