"""Nodes of the model that are part of no integer layer, and the tensors that they read.

An integer layer may read their bytes, and they may read those of an integer layer, in the model's
own order of dimensions and element type.  A float that an integer layer would compute inside, such
as the sum of a convolution before it is quantised, is computed by the model's own nodes where one
of them reads it.
"""

from ...ir import Node
from ...operators.integer.conversions import Shift128
from .layouts import to_model_order
from .state import State
from .values import Floating, Integer

__all__ = ["as_stored", "in_model_form", "keep"]


def keep(state: State, node: Node) -> None:
    """Take over a node of the model, with what it reads."""
    inputs = tuple(in_model_form(state, name) for name in node.inputs)
    results = state.builder.node_outputs(node.operator, inputs, node.output, node.origin)
    state.plain.update(zip(node.outputs, results, strict=True))


def in_model_form(state: State, name: str) -> str:
    """A tensor of the model as the model has it; the nodes that make it are added if need be."""
    pending = [name]
    while pending:
        current = pending[-1]
        if current in state.plain:
            pending.pop()
            continue
        value = state.values.get(current)
        if current in state.arrays:
            state.plain[current] = state.builder.constant(current, state.arrays[current])
        elif isinstance(value, Integer):
            state.plain[current] = as_stored(state, value, current)
        elif isinstance(value, Floating):
            state.plain[current] = to_model_order(state.builder, value, current)
        else:
            node = state.producers[current]
            missing = [each for each in node.inputs if each not in state.plain]
            pending += missing
            if not missing:
                keep(state, node)
    return state.plain[name]


def as_stored(state: State, tensor: Integer, origin: str) -> str:
    """The bytes of a tensor as the model stores them: uint8 where it does."""
    name = to_model_order(state.builder, tensor, origin)
    return state.builder.node(Shift128("uint8"), (name,), name, origin) if tensor.unsigned else name
