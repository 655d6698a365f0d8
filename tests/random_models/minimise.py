"""A model that fails, made smaller as long as it fails alike."""

from collections.abc import Callable, Iterator

import numpy as np
import onnx

from .compare import with_inputs, with_outputs
from .draw import Sample, trimmed
from .running import REFUSED, Array, compute

__all__ = ["minimised"]


def minimised(sample: Sample, fails: Callable[[Sample], bool]) -> Sample:
    """The smallest model found that still ``fails``.

    Each step leaves fewer nodes, outputs or elements, so that it ends.
    """
    while True:
        smaller = (each for each in _smaller(sample) if _size(each) < _size(sample))
        found = next((each for each in smaller if _runs(each) and fails(each)), None)
        if found is None:
            return sample
        sample = found


def _size(sample: Sample) -> tuple[int, int, int]:
    graph = sample.model.graph
    elements = sum(array.size for array in sample.inputs[0].values())
    return len(graph.node), len(graph.output), elements


def _runs(sample: Sample) -> bool:
    try:
        compute(sample.model, dict(sample.inputs[0]))
    except REFUSED:
        return False
    return bool(sample.model.graph.node)


def _smaller(sample: Sample) -> Iterator[Sample]:
    """Samples that may fail alike, the smallest first."""
    model = sample.model
    if len(sample.inputs) > 1:
        for given in sample.inputs:
            yield Sample(model, (given,))
    outputs = [value.name for value in model.graph.output]
    if len(outputs) > 1:
        for name in outputs:
            yield _fitted(with_outputs(model, [name]), sample.inputs)
        for name in outputs:
            yield _fitted(with_outputs(model, [n for n in outputs if n != name]), sample.inputs)
    names = [name for node in model.graph.node for name in node.output]
    for name in names:
        if name not in outputs:
            yield _fitted(with_outputs(model, [name]), sample.inputs)
    try:
        known = [
            {**given, **dict(zip(names, compute(with_outputs(model, names), given), strict=True))}
            for given in sample.inputs
        ]
    except REFUSED:
        return
    for name in reversed(names):
        if name not in outputs:
            yield _fitted(with_inputs(model, [name], known[0]), known)
    for node in model.graph.node:
        for name in node.input:
            alike = name in known[0] and known[0][name].shape == known[0][node.output[0]].shape
            if alike and known[0][name].dtype == known[0][node.output[0]].dtype:
                yield _fitted(_without(model, node, name), sample.inputs)
    yield from _shrunk(sample)


def _fitted(
    model: onnx.ModelProto, inputs: list[dict[str, Array]] | tuple[dict[str, Array], ...]
) -> Sample:
    """The sample of a model that reads some of ``inputs``."""
    names = [value.name for value in model.graph.input]
    return Sample(model, tuple({name: given[name] for name in names} for given in inputs))


def _without(model: onnx.ModelProto, node: onnx.NodeProto, name: str) -> onnx.ModelProto:
    """The model whose nodes read ``name`` in place of the result of ``node``."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for each in made.graph.node:
        for place, read in enumerate(each.input):
            if read == node.output[0] and each.output[0] != node.output[0]:
                each.input[place] = name
    return trimmed(made)


def _shrunk(sample: Sample) -> Iterator[Sample]:
    """With a smaller input."""
    for name, array in sample.inputs[0].items():
        for axis, size in enumerate(array.shape):
            for fewer in sorted({1, size // 2, size - 1}):
                if not 0 < fewer < size:
                    continue
                made = onnx.ModelProto()
                made.CopyFrom(sample.model)
                for value in made.graph.input:
                    if value.name == name:
                        value.type.tensor_type.shape.dim[axis].dim_value = fewer
                for value in made.graph.output:
                    value.type.tensor_type.ClearField("shape")
                given = (
                    {**each, name: np.take(each[name], range(fewer), axis)}
                    for each in sample.inputs
                )
                yield Sample(made, tuple(given))
