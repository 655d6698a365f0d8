"""A graph that runs again and again: the loops of models."""

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import GraphError
from ..interpreter import run
from ..ir import Graph
from ..types import TensorType
from .protocol import Array, Opaque, require, require_inputs

__all__ = ["Repeat"]

SCALAR = TensorType((), DType.INT64)


@frozen
class Repeat(Opaque):
    """``body`` in ``count`` iterations, one after the other; conditional: or fewer.

    Inputs: if guarded, whether there is an iteration at all, a bool of one element; ``states``
    initial states; tensors of which each iteration takes a slice of the first dimension, as many as
    ``backward`` has; what is the same in all iterations.
    The body's inputs: the iteration's number, int64[]; then states, slices and the rest.  Its
    outputs: if conditional, whether there is another iteration, a bool of one element; the new
    states, of the types of the old ones; what is collected, as many as ``collected_backward`` has.
    Results: the last states; what was collected, along a new first dimension; if conditional, the
    number of iterations, int64[], and nothing is collected.
    backward, collected_backward: from the last slice to the first.
    """

    body: Graph = field(repr=False)
    count: int
    states: int
    backward: tuple[bool, ...] = ()
    collected_backward: tuple[bool, ...] = ()
    conditional: bool = False
    guarded: bool = False

    def __post_init__(self) -> None:
        states, slices, collected = self.states, len(self.backward), len(self.collected_backward)
        open_ended = self.conditional or self.guarded
        if self.count < 1 or (open_ended and (slices or collected)):
            raise GraphError(f"{self}: required an iteration, and no slices under a condition")
        inputs, outputs = len(self.body.inputs), len(self.body.outputs)
        if inputs < 1 + states + slices or outputs != self.conditional + states + collected:
            raise GraphError(f"{self}: its body has {inputs} inputs and {outputs} outputs")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError for inputs that are not of the body's types, and states that change."""
        types = self.body.types
        require_inputs(self, inputs, len(self.body.inputs) - 1 + self.guarded)
        if self.guarded:
            self._require_condition(inputs[0])
            inputs = inputs[1:]
        wanted = [types[name] for name in self.body.inputs[1:]]
        for place in range(self.states, self.states + len(self.backward)):
            kind = wanted[place]
            wanted[place] = TensorType((self.count, *kind.shape), kind.dtype)
        require(self, list(inputs) == wanted, _listed(inputs), _listed(wanted))
        given = [types[name] for name in self.body.outputs[self.conditional :]]
        same = given[: self.states] == wanted[: self.states]
        require(self, same, _listed(given), f"states of {_listed(wanted[: self.states])}")
        if self.conditional:
            self._require_condition(types[self.body.outputs[0]])
            return (*given, SCALAR)
        collected = given[self.states :]
        grown = (TensorType((self.count, *each.shape), each.dtype) for each in collected)
        return (*given[: self.states], *grown)

    def _require_condition(self, found: TensorType) -> None:
        single = found.dtype == DType.BOOL and found.elements == 1
        require(self, single, found, "a bool that says whether it goes on")

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Iteration by iteration."""
        going = not self.guarded or bool(inputs[0].reshape(-1)[0])
        inputs = inputs[self.guarded :]
        sliced = self.states + len(self.backward)
        states, sources, rest = inputs[: self.states], inputs[self.states : sliced], inputs[sliced:]
        collected: list[list[Array]] = [[] for _ in self.collected_backward]
        number = 0
        while going and number < self.count:
            slices = [
                source[self.count - 1 - number if backward else number]
                for source, backward in zip(sources, self.backward, strict=True)
            ]
            given = (np.asarray(number, np.int64), *states, *slices, *rest)
            values = run(self.body, dict(zip(self.body.inputs, given, strict=True)))
            outputs = [values[name] for name in self.body.outputs]
            if self.conditional:
                going = bool(outputs.pop(0).reshape(-1)[0])
            states = outputs[: self.states]
            for kept, each in zip(collected, outputs[self.states :], strict=True):
                kept.append(each)
            number += 1
        if self.conditional:
            return (*states, np.asarray(number, np.int64))
        stacked = (
            np.stack(each[::-1] if backward else each)
            for each, backward in zip(collected, self.collected_backward, strict=True)
        )
        return (*states, *stacked)


def _listed(types: Sequence[TensorType]) -> str:
    return ", ".join(map(str, types)) or "nothing"
