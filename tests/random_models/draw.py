"""A random model, by its seed, with inputs."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from .drawing import LARGEST, Drawing
from .networks import classified
from .products import conv
from .running import REFUSED, Array, compute, fused, reads
from .table import BLOCKS, GENERAL, LAYERS, MOVERS, MOVING, ROWS, Layer

__all__ = ["WHOLE", "Sample", "draw", "trimmed", "wraps"]

WHOLE = (6, 8, 11, 13)
"""Remainders of seeds, divided by 20, of models that run on the accelerator as a whole; those of 8
and 13 have rows."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A model, and inputs to compare on; each is equal to itself alone."""

    model: onnx.ModelProto
    inputs: tuple[dict[str, Array], ...]


def draw(seed: int) -> Sample:
    """One random model: two of five are quantised networks of images, one is one of rows more often
    than not, one is quantised, one float.

    One in five is for the accelerator as a whole.  Of those quantised one in five has operators of
    bytes.
    """
    kind = seed % 5
    d = Drawing(seed, quantized=kind != 4, whole=seed % 20 in WHOLE)
    d.opset = d.random.choice((11 if kind == 4 else 13, 13, 17, 17, 19, 21, 21, 23))
    d.batch = 1 if d.whole else d.random.choice((*[1] * 24, 2, 3, 5))
    rows = kind == 3 and (d.whole or d.chance(0.7))
    layers = ROWS if rows else LAYERS if d.quantized else GENERAL
    layers = BLOCKS[rows] if d.whole else layers
    drawn = _rows if rows else _image if kind < 2 else _shape
    for _ in range(d.random.choice((1, 1, 1, 2))):
        shape = drawn(d)
        while np.prod(shape) > LARGEST:
            shape = drawn(d)
        d.input(shape, 10 ** d.random.uniform(-1, 1))
    if kind < 2 or (d.quantized and not rows and d.chance(0.6)):
        d.floats += [d.quantize(name) for name in conv(d, d.floats[0])]
    for _ in range(d.random.choice((1, 2, 3, 4, 6) if d.whole else (1, 1, 1, 2, 2, 3, 4, 6, 12))):
        _add_layer(d, layers, images=kind < 2 and not d.whole)
    if kind < 2 and d.chance(0.6):
        last = classified if d.whole and len(d.shape(d.floats[-1])) == 4 else conv
        d.floats += [d.quantize(name) for name in last(d, d.floats[-1])]
    return _sample(d)


def _add_layer(d: Drawing, layers: Sequence[tuple[Layer, int]], images: bool) -> None:
    """An operator that applies, after some trials.  images: only what gives an image."""
    kinds, weights = zip(*layers, strict=True)
    for _ in range(12):
        (kind,) = d.random.choices(kinds, weights)
        x = d.random.choice(d.floats[-3:] if d.chance(0.8) else d.floats)
        ends = len(d.ends)
        if kind in MOVERS and x in d.scales and d.chance(0.15):
            results = _moved_bytes(d, kind, x)
        else:
            results = kind(d, x)
        if images and any(not _is_image(d, d.shape(name)) for name in results):
            continue
        for name in results:
            (d.floats if d.shape(name) else d.ends).append(_stored(d, name, x))
        if results or len(d.ends) > ends:
            return


def _moved_bytes(d: Drawing, kind: Layer, x: str) -> list[str]:
    """The operator of the bytes of ``x``, dequantised after it."""
    maker = next(node for node in d.nodes if x in node.output)
    return [d.dequantize(name, d.scales[x]) for name in kind(d, maker.input[0])]


def _is_image(d: Drawing, shape: tuple[int, ...]) -> bool:
    return len(shape) == 4 and (shape[0] == 1 or d.batch > 1)


def _image(d: Drawing) -> tuple[int, ...]:
    channels = d.random.choice((1, 2, 3, 4, 5, 8, 12, 16, 17, 20, 32))
    return (d.batch, channels, *(d.random.choice((1, 2, 4, 5, 7, 8, 9, 12)) for _ in range(2)))


def _rows(d: Drawing) -> tuple[int, ...]:
    length = d.random.choice((1, 2, 3, 4, 5, 7, 8, 16, 17))
    return (d.batch, length, d.random.choice((4, 5, 8, 12, 16, 17, 20, 32, 48)))


def _shape(d: Drawing) -> tuple[int, ...]:
    channels = d.random.choice((1, 2, 3, 4, 5, 8, 12, 16, 17, 20))
    rank = d.random.choice((4, 4, 4, 4, 4, 4, 3, 2))
    return (
        d.batch,
        channels,
        *(d.random.choice((1, 2, 4, 5, 6, 7, 8, 9)) for _ in range(rank - 2)),
    )


def _stored(d: Drawing, name: str, x: str) -> str:
    """A result as later nodes read it: quantised, more often than not."""
    if not d.quantized:
        return name
    kind = d.nodes[-1].op_type
    if kind == "DequantizeLinear":
        return name
    if d.whole:
        return d.quantize(name)
    if kind in MOVING:
        return d.quantize(name, x) if d.chance(0.85) else d.quantize(name)
    follows = kind in ("Conv", "Gemm", "MatMul", "Add", "Mul", "ConvTranspose")
    return name if d.chance(0.3 if follows else 0.12) else d.quantize(name)


def _sample(d: Drawing) -> Sample:
    """The model of what nothing reads, and some more; without what leads to no output.

    The second input is left out where something is not a number on it, which ONNX leaves open.
    """
    read = {name for node in d.nodes for name in reads(node)}
    makers = {name: node for node in d.nodes for name in node.output}
    often = d.random.choice((0.04, 0.08, 0.4))
    ends = [*d.ends, *(name for name in d.floats if name in makers and name not in read)]
    ends += [name for name in d.floats if name in makers and d.chance(often)]
    most = d.random.choice((1, 2, 3, 3, 4))
    if len(ends) > most:
        ends = d.random.sample(ends, most)
    outputs = []
    for name in dict.fromkeys(ends or d.floats[-1:]):
        stored = makers[name].op_type == "DequantizeLinear" if name in makers else False
        outputs.append(makers[name].input[0] if stored and d.chance(0.75) else name)
    outputs = [name for name in dict.fromkeys(outputs) if name in makers] or [d.nodes[-1].output[0]]
    samples = [{name: d.values[name] for name in d.inputs}]
    other = {name: _other(d, d.values[name]) for name in d.inputs}
    if all(np.all(np.isfinite(each)) for each in compute(d.model(list(makers)), other)):
        samples.append(other)
    model = trimmed(d.model(outputs))
    if d.quantized and d.chance(0.2):
        with suppress(*REFUSED):  # what ONNX Runtime writes it does not always read
            written = fused(model)
            fair = not any(map(_counts_beyond, written.graph.node))
            if fair and not any(wraps(written, model, each) for each in samples):
                model = written
    names = {value.name for value in model.graph.input}
    chosen = ({n: a for n, a in each.items() if n in names} for each in samples)
    return Sample(model, tuple(chosen))


def _counts_beyond(node: onnx.NodeProto) -> bool:
    """True for a mean that ONNX Runtime divides by elements beyond the padding, as documented."""
    given = {each.name: each.i for each in node.attribute}
    pads = node.op_type == "QLinearAveragePool" and given.get("ceil_mode")
    return bool(pads and given.get("count_include_pad"))


def wraps(written: onnx.ModelProto, model: onnx.ModelProto, given: dict[str, Array]) -> bool:
    """True if a result or a softmax is off by more than a step: ONNX Runtime's QLinearSoftmax wraps
    where it should saturate, and gives zeros where the scale of its result is small.
    """
    nodes = [each for node in written.graph.node for each in _plain_softmax(node)]
    names = [node.output[0] for node in written.graph.node if node.op_type == "QLinearSoftmax"]
    shown = (onnx.ModelProto(), onnx.ModelProto())
    for each in shown:
        each.CopyFrom(written)
        each.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    del shown[1].graph.node[:]
    shown[1].graph.node.extend(nodes)
    found, plain = (compute(each, given) for each in shown)
    wanted = (*zip(found, plain, strict=True), *zip(found, compute(model, given), strict=False))
    return any(a.itemsize == 1 and np.abs(a.astype(int) - b).max() > 1 for a, b in wanted)


def _plain_softmax(node: onnx.NodeProto) -> tuple[onnx.NodeProto, ...]:
    """A QLinearSoftmax by ONNX's operators; another node as it is."""
    if node.op_type != "QLinearSoftmax":
        return (node,)
    (y,) = node.output
    (axis,) = (each.i for each in node.attribute if each.name == "axis")
    return (
        helper.make_node("DequantizeLinear", node.input[:3], [f"{y}/x"]),
        helper.make_node("Softmax", [f"{y}/x"], [f"{y}/y"], axis=axis),
        helper.make_node("QuantizeLinear", [f"{y}/y", *node.input[3:]], [y]),
    )


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
            needed.update(reads(node))
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
