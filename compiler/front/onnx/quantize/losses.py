"""Losses of each quantised tensor and each layer's weights alone, on samples."""

from collections.abc import Iterable, Mapping

import numpy as np

from ....graph.ir import Array
from ....quantize.loss import Kind, Loss
from ....quantize.signature import Sample
from ..node import OnnxNode
from .calibrate import Calibrated, Decision
from .evaluate import Evaluator
from .model import FloatModel
from .plan import Plan, Role, activations
from .scales import Weights
from .weights import contractions, dequantized

__all__ = ["measure_losses"]


def measure_losses(
    calibrated: Calibrated,
    decision: Decision,
    weights: Mapping[str, Weights],
    samples: Iterable[Sample],
) -> tuple[Loss, ...]:
    """One for each tensor that decides a range and each contraction, in the order of the model.

    Each is computed from the change on: half of the network on average, for each sample.
    """
    model, decided = calibrated.model, decision.plan
    tensors = [name for name in decided.calibrated(model) if name in decision.scales]
    layers = contractions(model, decided)
    evaluator = Evaluator(model)
    own, output = _Ratio(), _Ratio()
    for sample in samples:
        values = {**model.constants, **dict(evaluator.run(sample))}
        for name in tensors:
            rounded = decision.scales[name].rounded(values[name])
            _see(evaluator, values, (Kind.TENSOR, name), name, rounded, own, output)
        for node in layers:
            out = node.outputs[0]
            real, bias = dequantized(weights[out], node, decision.scales[node.inputs[0]].scale)
            given = {node.inputs[1]: real}
            if bias is not None and node.has(2):
                given[node.inputs[2]] = bias
            (rounded,) = evaluator.node(node, {**values, **given})
            if bias is not None and not node.has(2):
                # It comes from a correction.
                rounded = rounded + _by_channel(bias, node, rounded.ndim)
            _see(evaluator, values, (Kind.WEIGHTS, out), out, rounded, own, output)
    touching = _touching(model, decided)
    names = {node.outputs[0]: node.name for node in model.nodes}
    found = []
    for kind, name in own.seen():
        layers_of = touching[name] if kind is Kind.TENSOR else frozenset([names[name]])
        shown = name if kind is Kind.TENSOR else names[name]
        key = (kind, name)
        found.append(Loss(kind, shown, layers_of, own.value(key), output.value(key)))
    return tuple(found)


def _by_channel(bias: Array, node: OnnxNode, rank: int) -> Array:
    """A bias as it is added to the layer's results."""
    after = 0 if node.kind in ("Gemm", "MatMul") else rank - 2
    return bias.reshape(-1, *(1,) * after)


class _Ratio:
    """Square sums of changes and of what changed, by key."""

    def __init__(self) -> None:
        self._sums: dict[tuple[Kind, str], Array] = {}

    def see(self, key: tuple[Kind, str], exact: Array, changed: Array) -> None:
        difference, exact = (changed - exact).astype(np.float64), exact.astype(np.float64)
        self._sums.setdefault(key, np.zeros(2))
        self._sums[key] += [np.vdot(difference, difference), np.vdot(exact, exact)]

    def seen(self) -> tuple[tuple[Kind, str], ...]:
        return tuple(self._sums)

    def value(self, key: tuple[Kind, str]) -> float:
        noise, signal = self._sums[key]
        return float(np.sqrt(noise / signal)) if signal else 0.0


def _see(
    evaluator: Evaluator,
    values: Mapping[str, Array],
    key: tuple[Kind, str],
    name: str,
    changed: Array,
    own: _Ratio,
    output: _Ratio,
) -> None:
    own.see(key, values[name], changed)
    for out, array in evaluator.again(values, {name: changed}).items():
        output.see(key, values[out], array)


def _touching(model: FloatModel, decided: Plan) -> dict[str, frozenset[str]]:
    """The names of the nodes that quantise each tensor: that which computes it, those that read it,
    past what only moves elements.
    """
    clipped = {clip.outputs[0]: name for name, clip in decided.clips.items()}

    def producer(name: str) -> OnnxNode | None:
        node = model.producers.get(clipped.get(name, name))
        if node is not None and decided.roles.get(node.outputs[0]) is Role.PASS:
            return producer(activations(model, node)[0])
        return node

    def readers(name: str) -> list[OnnxNode]:
        found = []
        for node in model.readers.get(name, ()):
            passes = decided.roles.get(node.outputs[0]) is Role.PASS
            found += [n for o in node.outputs for n in readers(o)] if passes else [node]
        return found

    result = {}
    for name in decided.calibrated(model):
        nodes = [each for each in (producer(name), *readers(name)) if each is not None]
        result[name] = frozenset(n.name for n in nodes if n.outputs[0] in decided.roles)
    return result
