"""Cross-layer equalisation: channels whose ranges differ much get factors, in the weights.

y = f(W x + b), z = V y  ->  y = f(W x / s + b / s), z = V s y, for every f through which factors
pass.  The outputs of the model stay what they are; with a Relu that is cut off, for all values that
are no more than ``1 / REACH`` times those of the samples.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from ....graph.ir import Array
from ....quantize.factors import FIXED, LayerRanges, channel_factors
from ....quantize.signature import Sample
from ..node import OnnxNode
from .channels import Ids, find_channels
from .evaluate import Evaluator
from .model import FloatModel
from .plan import CONTRACTIONS
from .weights import channel_axis, float_weights

__all__ = ["equalize"]

REACH = 0.8
"""The part of a Relu that is cut off which the samples' values may fill."""
EQUALIZED = "/equalized"
"""Behind the name of a layer's output: its weights."""


def equalize(
    model: FloatModel, shapes: Mapping[str, tuple[int, ...]], samples: Iterable[Sample]
) -> FloatModel:
    """The model with channels of like ranges; ``samples`` show those of activations."""
    found = find_channels(model, shapes)
    channels = found.settled()
    layers = [
        node
        for node in model.nodes
        if node.kind in CONTRACTIONS
        and node.inputs[1] in model.constants
        and all(name in model.constants for name in node.inputs[1:] if name)
    ]
    largest, reached = np.zeros(found.count), np.zeros(found.count)
    cuts = dict(found.cuts)
    evaluator = Evaluator(model)
    for sample in samples:
        for name, array in evaluator.run(sample):
            if name in channels:
                ids = channels[name]
                others = tuple(axis for axis in range(ids.ndim) if ids.shape[axis] == 1)
                np.maximum.at(largest, ids, np.abs(array).max(axis=others, keepdims=True))
                if name in cuts:
                    part = array.max(axis=others, keepdims=True) / (REACH * cuts[name])
                    np.maximum.at(reached, ids, part)
    ranges = [_ranges(model, node, channels) for node in layers]
    factors = channel_factors(ranges, largest, reached)
    made: dict[str, Array] = {}
    by_output = {}
    for node, known in zip(layers, ranges, strict=True):
        by_output[node.outputs[0]] = _scaled(model, node, known, factors, made)
    return model.with_nodes([by_output.get(n.outputs[0], n) for n in model.nodes], made)


def _ranges(model: FloatModel, node: OnnxNode, channels: Mapping[str, Ids]) -> LayerRanges:
    grouped = _grouped(node, model.constants[node.inputs[1]])
    groups, outputs, inputs, _ = grouped.shape
    reads = _each(channels[node.inputs[0]], groups * inputs)
    writes = _each(channels[node.outputs[0]], groups * outputs)
    largest = np.abs(grouped).max(axis=3).astype(np.float64)
    return LayerRanges(largest, reads.reshape(groups, -1), writes.reshape(groups, -1))


def _each(ids: Ids, count: int) -> Ids:
    """The class of each of ``count`` channels; no other dimension has classes of its own."""
    fixed = (ids == FIXED).all()
    return np.full(count, FIXED) if fixed else np.broadcast_to(ids.reshape(-1), (count,))


def _grouped(node: OnnxNode, weights: Array) -> Array:
    """Weights as [groups, outputs, inputs, kernel]."""
    if channel_axis(node) == 1:
        weights = weights.swapaxes(0, 1)
    groups = node.integer("group", 1) if node.kind == "Conv" else 1
    return weights.reshape(groups, len(weights) // groups, weights.shape[1], -1)


def _scaled(
    model: FloatModel, node: OnnxNode, known: LayerRanges, factors: Array, made: dict[str, Array]
) -> OnnxNode:
    """The node with weights and bias that take the factors; they are added to ``made``."""
    weights, bias = float_weights(model, node)
    writes = factors[known.writes]
    scale = factors[known.reads][:, None] / writes[:, :, None]
    if (scale == 1).all() and (writes == 1).all():
        return node
    name = node.outputs[0] + EQUALIZED
    scaled = _grouped(node, weights.astype(np.float64)) * scale[..., None]
    turned = channel_axis(node) == 1
    shape = weights.swapaxes(0, 1).shape if turned else weights.shape
    scaled = scaled.reshape(shape)
    made[name] = np.ascontiguousarray(scaled.swapaxes(0, 1) if turned else scaled, np.float32)
    inputs = [node.inputs[0], name]
    if bias is not None:
        made[f"{name}/bias"] = (bias / writes.reshape(-1)).astype(np.float32)
        inputs.append(f"{name}/bias")
    return replace(node, inputs=tuple(inputs))
