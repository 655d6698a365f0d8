"""int8 weights and biases that make up for what rounding changes, layer after layer.

Each layer is fitted to the outputs of the float model, from inputs as the layers before, rounded
already, leave them.  Source of the bias correction: M. Nagel et al., "Data-Free Quantization
through Weight Equalization and Bias Correction", 2019, section 4.2, with samples.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....graph.ir import Array
from ....quantize.rounding import Moments, round_together
from ..node import OnnxNode
from .calibrate import Calibrated, Decision
from .evaluate import Evaluator
from .four_bits import LIMITS
from .options import QuantizeOptions
from .scales import BIAS_LIMIT, Weights
from .weights import (
    channel_axis,
    contractions,
    dequantized,
    float_weights,
    integer_weights,
    shared_inputs,
)
from .windows import columns, is_rounded_together, rows_of, weights_of

__all__ = ["corrected_weights"]

Values = dict[str, Array]
WEIGHTS, BIAS = "/weights", "/bias"
"""Names of a layer's constants as it runs."""
WIDEST = 1024
"""Inputs whose weights are rounded together: time grows with their cube, memory with their square.
"""


def corrected_weights(
    calibrated: Calibrated, decision: Decision, options: QuantizeOptions
) -> dict[str, Weights]:
    """The weights of each contraction, by its output.

    The float model and the rounded one run on all samples side by side, node by node.
    """
    model, constants, samples = calibrated.model, calibrated.model.constants, calibrated.held
    evaluator, own = Evaluator(model), Evaluator(model)
    layers = {node.outputs[0] for node in contractions(model, decision.plan)}
    last = {name: place for place, node in enumerate(model.nodes) for name in node.inputs}
    exact: list[Values] = [dict(sample) for sample in samples]
    rounded: list[Values] = [
        {name: _rounded(decision, name, array) for name, array in sample.items()}
        for sample in samples
    ]
    found: dict[str, Weights] = {}
    for place, node in enumerate(model.nodes):
        wanted = [evaluator.node(node, {**constants, **values}) for values in exact]
        if node.outputs[0] in layers:
            group = shared_inputs(model, calibrated.shapes, node)
            layer = _Layer(node, own, decision.scales[node.inputs[0]].scale, options, group)
            weights = layer.chosen(*float_weights(model, node), rounded, wanted)
            found[node.outputs[0]] = weights
            made = layer.run(weights, rounded)
        else:
            made = [own.node(node, {**constants, **values}) for values in rounded]
        for before, after, first, second in zip(exact, rounded, wanted, made, strict=True):
            before.update(zip(node.outputs, first, strict=False))
            for name, array in zip(node.outputs, second, strict=False):
                after[name] = _rounded(decision, name, array)
            for name in node.inputs:
                if last[name] == place:
                    before.pop(name, None)
                    after.pop(name, None)
    return found


def _rounded(decision: Decision, name: str, array: Array) -> Array:
    scale = decision.scales.get(name)
    return array if scale is None else scale.rounded(array)


class _Layer:
    """A contraction whose weights are being chosen."""

    def __init__(
        self,
        node: OnnxNode,
        evaluator: Evaluator,
        x_scale: np.float32,
        options: QuantizeOptions,
        group: int,
    ) -> None:
        self._node, self._evaluator, self._group = node, evaluator, group
        self._x_scale, self._options = x_scale, options
        self._shifts = options.correct_bias and node.kind != "MatMul"

    def chosen(
        self,
        weights: Array,
        bias: Array | None,
        rounded: Sequence[Values],
        wanted: Sequence[Sequence[Array]],
    ) -> Weights:
        """int8 weights and bias for ``weights`` and ``bias``, by inputs and by outputs wanted."""
        axis = channel_axis(self._node)
        if self._shifts and bias is None:
            bias = np.zeros(weights.shape[axis], np.float32)
        found = integer_weights(
            self._node, weights, bias, self._x_scale, self._options, self._group
        )
        if self._options.adaptive and is_rounded_together(self._node):
            found = self._together(found, weights, rounded)
        if self._shifts and bias is not None:
            made = self.run(found, rounded)
            axes = (0, 2, 3) if wanted[0][0].ndim == 4 else (0,)
            differences = [(w[0] - m[0]).mean(axis=axes) for w, m in zip(wanted, made, strict=True)]
            units = found.scales.astype(np.float64) * float(self._x_scale)
            steps = np.rint((bias + np.mean(differences, axis=0)) / units)
            steps = np.clip(steps, -BIAS_LIMIT, BIAS_LIMIT)
            found = found._replace(bias=steps.astype(np.int32))
        return found

    def run(self, weights: Weights, samples: Sequence[Values]) -> list[list[Array]]:
        """The layer's outputs with int8 weights, for each sample."""
        real, bias = dequantized(weights, self._node, self._x_scale)
        given = {WEIGHTS: real} if bias is None else {WEIGHTS: real, BIAS: bias}
        node = replace(self._node, inputs=(self._node.inputs[0], *given))
        return [self._evaluator.node(node, {**values, **given}) for values in samples]

    def _together(self, nearest: Weights, weights: Array, rounded: Sequence[Values]) -> Weights:
        rows = rows_of(self._node, weights)
        groups, _, width = rows.shape
        scales = nearest.scales.reshape(rows.shape[:2]).astype(np.float64)
        seen = [columns(self._node, values[self._node.inputs[0]], weights) for values in rounded]
        integers = np.empty(rows.shape, np.int8)
        factors = None if nearest.factors is None else rows_of(self._node, nearest.factors)
        for start in range(0, width, WIDEST):
            part = slice(start, min(start + WIDEST, width))
            moments = Moments(groups, part.stop - start)
            for each in seen:
                moments.see(each[:, part])
            covariance = moments.covariance(centred=self._shifts)
            if factors is None:
                integers[:, :, part] = round_together(rows[:, :, part], scales, covariance)
            else:
                integers[:, :, part] = round_together(
                    rows[:, :, part], scales, covariance, factors[:, :, part], LIMITS
                )
        return nearest._replace(integers=weights_of(self._node, integers, weights.shape))
