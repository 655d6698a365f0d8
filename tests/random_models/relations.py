"""Models that mean the same as a random one: where ONNX Runtime has no say, they must agree.

Tensors are turned and turned back, cut and joined, padded and cropped, or reshaped there and back,
for all their readers or for some, and nodes stand in another order.
"""

from collections.abc import Callable
from random import Random

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .compare import SOFT, FoundError, check, difference, documented, named, ready, with_outputs
from .draw import Sample
from .ready import Target, make_ready
from .running import Array, compute, reads

__all__ = ["check_related", "related"]

MOST_CHANGES = 3


class _Change:
    """Nodes that give a tensor again, and their constants."""

    def __init__(self, random: Random, name: str, values: Array, number: int) -> None:
        self.random, self.name, self.values, self.number = random, name, values, number
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, results: int = 1, **attributes: object) -> list[str]:
        """A new node's results."""
        start = f"same{self.number}_{len(self.nodes)}"
        names = [f"{start}_{n}" for n in range(results)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names

    def constant(self, values: object) -> str:
        """A new constant."""
        name = f"same{self.number}_c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def axis(self) -> int:
        """One dimension."""
        return self.random.randrange(self.values.ndim)


def _turned(c: _Change) -> str:
    order = c.random.sample(range(c.values.ndim), c.values.ndim)
    (there,) = c.node("Transpose", c.name, perm=order)
    (back,) = c.node("Transpose", there, perm=[order.index(n) for n in range(len(order))])
    return back


def _joined(c: _Change) -> str:
    axis = c.axis()
    size = c.values.shape[axis]
    if size < 2:
        return _turned(c)
    at = c.random.randrange(1, size)
    parts = c.node("Split", c.name, c.constant([at, size - at]), results=2, axis=axis)
    (back,) = c.node("Concat", *parts, axis=axis)
    return back


def _cropped(c: _Change) -> str:
    axis = c.axis()
    before, after = (c.random.randrange(3) for _ in range(2))
    widths = np.zeros((2, c.values.ndim), np.int64)
    widths[:, axis] = before, after
    value = c.constant(c.values.dtype.type(c.random.randrange(100)))
    (wide,) = c.node("Pad", c.name, c.constant(widths.reshape(-1)), value)
    limits = ([before], [before + c.values.shape[axis]], [axis])
    (back,) = c.node("Slice", wide, *(c.constant(each) for each in limits))
    return back


def _reshaped(c: _Change) -> str:
    (flat,) = c.node("Reshape", c.name, c.constant([c.values.shape[0], -1]))
    (back,) = c.node("Reshape", flat, c.constant(c.values.shape))
    return back


CHANGES: tuple[Callable[[_Change], str], ...] = (_turned, _joined, _cropped, _reshaped)


def related(sample: Sample, seed: int) -> Sample:
    """A sample that means the same: bytes changed and changed back, or floats if there are none."""
    random = Random(seed)
    model = onnx.ModelProto()
    model.CopyFrom(sample.model)
    graph = model.graph
    stored = [node.output[0] for node in graph.node if node.op_type == "QuantizeLinear"]
    names = stored or [node.output[0] for node in graph.node]
    found = compute(with_outputs(sample.model, names), sample.inputs[0])
    known = {n: v for n, v in zip(names, found, strict=True) if v.ndim and v.dtype != np.bool_}
    for number, name in enumerate(random.sample(sorted(known), min(MOST_CHANGES, len(known)))):
        change = _Change(random, name, known[name], number)
        again = random.choice(CHANGES)(change)
        readers = [node for node in graph.node if name in node.input]
        if len(readers) > 1 and random.random() < 0.5:
            readers = random.sample(readers, len(readers) - 1)
        for node in readers:
            for place, read in enumerate(node.input):
                if read == name:
                    node.input[place] = again
        graph.node.extend(change.nodes)
        graph.initializer.extend(change.constants)
    nodes = _ordered(list(graph.node), random)
    del graph.node[:]
    graph.node.extend(nodes)
    return Sample(model, sample.inputs)


def _ordered(nodes: list[onnx.NodeProto], random: Random) -> list[onnx.NodeProto]:
    """Another order in which every node comes after those that it reads."""
    random.shuffle(nodes)
    made = {name for node in nodes for name in node.output}
    ordered: list[onnx.NodeProto] = []
    while nodes:
        ready = next(node for node in nodes if made.isdisjoint(reads(node)))
        nodes.remove(ready)
        made.difference_update(ready.output)
        ordered.append(ready)
    return ordered


def check_related(sample: Sample, seed: int, target: Target) -> None:
    """Raises FoundError where a target gives another result for a model that means the same.

    What is a step off in one of them, as documented, is none: the other has another form of it.
    """
    other = related(sample, seed)
    with documented(target):
        both = [ready(sample, target), make_ready(other.model, target)]
    for given in sample.inputs:
        first, second = (each.compute(given) for each in both)
        for name in (value.name for value in sample.model.graph.output):
            wrong = difference(second[name], [first[name]], 0)
            if wrong and any(node.op_type in SOFT for node in other.model.graph.node):
                check(other, target)
            elif wrong:
                raise FoundError(
                    f"{named(target)}: output {name} of a model that means the same: {wrong}"
                )
