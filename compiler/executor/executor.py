"""Models that specialise themselves as they run.

A model is imported for the shapes of its inputs.  Where a shape depends on a value, the part of
the graph that computes the value is compiled and run, and the import goes on with its result.
What was asked, and which answers led where, is kept as a tree: inputs of known shapes whose values
lead to known answers run without compiling anything.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..front.onnx.context import OptionalValue, Tensor, TensorSequence, Value
from ..front.onnx.source import ModelSource, SourceModel
from ..graph.ir import Graph, GraphBuilder
from ..graph.slices import slice_graph
from .values import Argument, arguments_key, flatten, restore

__all__ = ["Executor", "Segment"]

Array = NDArray[Any]

BRANCHES = 64
"""Answers to one question that are kept."""


class Segment(Protocol):
    """A compiled graph."""

    @property
    def graph(self) -> Graph:
        """It, after the passes of its target."""

    @property
    def kernel_calls(self) -> int:
        """Calls of a run that compute something, and do not only copy; those in loops once."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The graph's outputs, by name; each is an array of its own."""
        ...


@dataclass(slots=True)
class _Final:
    """All is known: the segment that computes the outputs."""

    segment: Segment
    outputs: tuple[tuple[str, Value], ...]


@dataclass(slots=True)
class _Question:
    """The value of ``tensor``, by a segment, or of an input; and where each answer leads."""

    tensor: str
    segment: Segment | None
    answers: "dict[bytes, _Question | _Final]" = field(default_factory=dict)


@dataclass(slots=True)
class Executor:
    """Runs a model, compiling what is new; compile: makes a segment of a graph, by a target."""

    source: ModelSource
    compile: Callable[[Graph], Segment]
    kernel_calls: int = 0
    """Kernel calls of the last run, to answer questions and to compute the outputs."""
    specialisations: int = 0
    """Times that the model was imported."""
    model: SourceModel = field(init=False)
    _known: "dict[tuple[object, ...], _Question | _Final]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = SourceModel.of(self.source)

    def run(self, inputs: Mapping[str, Argument]) -> dict[str, Argument]:
        """The outputs by name: arrays, or lists or None where the model says so.

        Raises ModelError for inputs that the model does not have, and what importing raises.
        """
        names = self.model.declared.keys()
        unknown = sorted(map(repr, set(inputs) - names))
        if unknown:
            raise ModelError(f"no input {unknown[0]}; the model's are {sorted(map(repr, names))}")
        if not all(isinstance(name, str) for name in inputs):
            raise ModelError("an input has a name that is not UTF-8 text")
        self._check_types(inputs)
        self.kernel_calls = 0
        key = arguments_key(inputs)
        arrays: dict[str, Array] = {}
        for name in sorted(inputs):
            arrays.update(flatten(name, inputs[name], lambda each, _: each)[1])
        try:
            final = self._follow(key, arrays) or self._specialise(key, inputs)
            self.kernel_calls += final.segment.kernel_calls
            results = final.segment.run(arrays)
        except MemoryError as error:
            raise ModelError(f"the model needs more memory than there is: {error}") from None
        return {name: restore(value, results) for name, value in final.outputs}

    def _check_types(self, inputs: Mapping[str, Argument]) -> None:
        """Arrays must have the element types that the model declares."""
        for name, wanted in self.model.declared.items():
            found = inputs.get(name)
            if wanted is None or found is None or isinstance(found, list | tuple):
                continue
            kind = np.asarray(found).dtype
            if kind != wanted.numpy and kind.kind not in "OUS":
                raise ModelError(f"input {name!r} is {kind}; required {wanted}")

    def _follow(self, key: tuple[object, ...], arrays: Mapping[str, Array]) -> _Final | None:
        """Where the questions asked before lead; None at an answer that is new."""
        place = self._known.get(key)
        while isinstance(place, _Question):
            place = place.answers.get(_digest(self._answer(place, arrays)))
        return place

    def _specialise(self, key: tuple[object, ...], inputs: Mapping[str, Argument]) -> _Final:
        self.specialisations += 1
        builder = GraphBuilder()
        arrays: dict[str, Array] = {}
        values: dict[str, Value] = {}
        for name in sorted(inputs):
            values[name], own = flatten(name, inputs[name], builder.input)
            arrays.update(own)
        path: list[tuple[_Question, bytes]] = []

        def resolve(tensor: str) -> Array:
            found = path[-1][0].answers.get(path[-1][1]) if path else self._known.get(key)
            if not isinstance(found, _Question):
                segment = None
                if tensor not in arrays:
                    graph = slice_graph(builder, (tensor,))
                    segment = self.compile(graph)
                found = _Question(tensor, segment)
                self._keep(key, path, found)
            answer = self._answer(found, arrays)
            path.append((found, _digest(answer)))
            return answer

        outputs = self.model.convert(values, builder, resolve)
        needed = [name for _, value in outputs for name in _tensors(value)]
        final = _Final(self.compile(slice_graph(builder, needed)), outputs)
        self._keep(key, path, final)
        return final

    def _answer(self, question: _Question, arrays: Mapping[str, Array]) -> Array:
        if question.segment is None:
            return arrays[question.tensor]
        self.kernel_calls += question.segment.kernel_calls
        given = {name: arrays[name] for name in question.segment.graph.inputs}
        return question.segment.run(given)[question.tensor]

    def _keep(
        self,
        key: tuple[object, ...],
        path: list[tuple[_Question, bytes]],
        found: _Question | _Final,
    ) -> None:
        if not path:
            self._known[key] = found
            return
        answers = path[-1][0].answers
        if len(answers) >= BRANCHES:
            answers.pop(next(iter(answers)))
        answers[path[-1][1]] = found


def _digest(array: Array) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def _tensors(value: Value) -> list[str]:
    match value:
        case Tensor(name=name):
            return [name]
        case TensorSequence(elements=elements):
            return [name for each in elements for name in _tensors(each)]
        case OptionalValue(value=inner):
            return [] if inner is None else _tensors(inner)
