"""A random model, by its seed, with inputs."""

from dataclasses import dataclass

import numpy as np
import onnx

from .drawing import Array, Drawing
from .products import conv
from .table import GENERAL, LAYERS, MOVING

__all__ = ["Sample", "draw", "trimmed"]


@dataclass(frozen=True)
class Sample:
    """A model, and inputs to compare on."""

    model: onnx.ModelProto
    inputs: tuple[dict[str, Array], ...]


def draw(seed: int) -> Sample:
    """One random model; four of five are quantised."""
    d = Drawing(seed, quantized=seed % 5 != 4)
    d.opset = d.random.choice((13, 17, 17, 19, 21))
    for _ in range(d.random.choice((1, 1, 1, 2))):
        d.input(_shape(d), 10 ** d.random.uniform(-1, 1))
    layers = LAYERS if d.quantized else GENERAL
    kinds, weights = zip(*layers, strict=True)
    if d.quantized and d.chance(0.6):
        d.floats += [d.quantize(name) for name in conv(d, d.floats[0])]
    for _ in range(d.random.choice((1, 2, 3, 4, 6, 9, 14))):
        for _ in range(8):
            (kind,) = d.random.choices(kinds, weights)
            x = d.random.choice(d.floats[-3:] if d.chance(0.8) else d.floats)
            ends = len(d.ends)
            results = kind(d, x)
            if results or len(d.ends) > ends:
                break
        for name in results:
            (d.floats if d.shape(name) else d.ends).append(_stored(d, name, x))
    return _sample(d)


def _shape(d: Drawing) -> tuple[int, ...]:
    batch = 2 if d.chance(0.03) else 1
    channels = d.random.choice((1, 2, 3, 4, 5, 8, 12, 16, 17, 20))
    rank = d.random.choice((4, 4, 4, 4, 4, 4, 3, 2))
    return (batch, channels, *(d.random.choice((1, 2, 4, 5, 6, 7, 8, 9)) for _ in range(rank - 2)))


def _stored(d: Drawing, name: str, x: str) -> str:
    """A result as later nodes read it: quantised, more often than not."""
    if not d.quantized:
        return name
    kind = d.nodes[-1].op_type
    if kind in MOVING:
        return d.quantize(name, x) if d.chance(0.85) else d.quantize(name)
    follows = kind in ("Conv", "Gemm", "MatMul", "Add", "Mul", "ConvTranspose")
    return name if d.chance(0.3 if follows else 0.06) else d.quantize(name)


def _sample(d: Drawing) -> Sample:
    """The model of what nothing reads, and some more; without what leads to no output."""
    read = {name for node in d.nodes for name in node.input}
    makers = {name: node for node in d.nodes for name in node.output}
    ends = [*d.ends, *(name for name in d.floats if name in makers and name not in read)]
    ends += [name for name in d.floats if name in makers and d.chance(0.08)]
    if len(ends) > 3:
        ends = d.random.sample(ends, 3)
    outputs = []
    for name in dict.fromkeys(ends or d.floats[-1:]):
        stored = makers[name].op_type == "DequantizeLinear" if name in makers else False
        outputs.append(makers[name].input[0] if stored and d.chance(0.75) else name)
    outputs = [name for name in dict.fromkeys(outputs) if name in makers] or [d.nodes[-1].output[0]]
    samples = [{name: d.values[name] for name in d.inputs}]
    samples.append({name: _other(d, d.values[name]) for name in d.inputs})
    model = trimmed(d.model(outputs))
    names = {value.name for value in model.graph.input}
    chosen = ({n: a for n, a in each.items() if n in names} for each in samples)
    return Sample(model, tuple(chosen))


def _other(d: Drawing, values: Array) -> Array:
    """Another input: all bytes alike, or floats a little larger."""
    if values.dtype == np.float32:
        spread = float(np.abs(values).max()) / 2
        return d.rng.normal(0, spread, values.shape).astype(np.float32)
    limits = np.iinfo(values.dtype)
    return d.rng.integers(limits.min, limits.max + 1, values.shape, values.dtype)


def trimmed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Without nodes, constants and inputs that no output needs."""
    needed = {value.name for value in model.graph.output}
    nodes = []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            nodes.append(node)
            needed.update(node.input)
    kept = onnx.ModelProto()
    kept.CopyFrom(model)
    graph = kept.graph
    for values, chosen in (
        (graph.node, nodes[::-1]),
        (graph.initializer, [each for each in model.graph.initializer if each.name in needed]),
        (graph.input, [each for each in model.graph.input if each.name in needed]),
    ):
        del values[:]
        values.extend(chosen)
    return kept
