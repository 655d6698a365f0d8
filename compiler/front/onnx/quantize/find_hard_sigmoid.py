"""Find hard sigmoids that exporters write as arithmetic.

Clip(x + 3, 0, 6) / 6  ->  HardSigmoid(x, alpha 1/6, beta 1/2), so x times it is one function too.
In general Clip(x * a + b, 0, c) followed by a constant factor that makes the result end at 1.
"""

from dataclasses import replace

import numpy as np

from dovetail.isa.frozen import frozen

from ..node import OnnxNode
from .model import FloatModel

__all__ = ["FindHardSigmoid"]

TOLERANCE = 1e-4


@frozen
class FindHardSigmoid:
    """Replaces the Clip; the nodes around it become Identity, or are left to nobody."""

    name: str = "find_hard_sigmoid"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        rewritten: dict[str, OnnxNode] = {}
        for node in model.nodes:
            for old, new in self._hard_sigmoid(model, node):
                rewritten[old] = new
        if not rewritten:
            return model
        return model.with_nodes([rewritten.get(n.outputs[0], n) for n in model.nodes])

    def _hard_sigmoid(self, model: FloatModel, clip: OnnxNode) -> list[tuple[str, OnnxNode]]:
        """New nodes by the outputs of the old ones; empty when ``clip`` is none."""
        limits = [_scalar(model, clip, place) for place in (1, 2)]
        if clip.kind != "Clip" or limits[0] != 0 or limits[1] is None or limits[1] <= 0:
            return []
        shift = model.producers.get(clip.inputs[0])
        if shift is None or shift.kind != "Add" or model.only_reader(shift.outputs[0]) is None:
            return []
        x, offset = _operands(model, shift)
        scale = model.only_reader(clip.outputs[0])
        if offset is None or scale is None:
            return []
        gate = scale
        if scale.kind == "Mul" and _operands(model, scale)[1] is None:
            # x * Clip(x + 3, 0, 6) / 6: the factor comes after the product.
            after = model.only_reader(scale.outputs[0])
            if after is None:
                return []
            gate = after
        factor = _operands(model, gate)[1]
        if gate.kind not in ("Mul", "Div") or factor is None or factor == 0:
            return []
        factor = 1 / factor if gate.kind == "Div" else factor
        if gate.kind == "Div" and gate.inputs[0] in model.constants:
            return []
        if abs(limits[1] * factor - 1) > TOLERANCE:
            return []
        attributes = {"alpha": float(factor), "beta": float(offset * factor)}
        function = replace(clip, kind="HardSigmoid", inputs=(x,), attributes=attributes)
        source = _operands(model, gate)[0]
        identity = replace(gate, kind="Identity", inputs=(source,), attributes={})
        return [(clip.outputs[0], function), (gate.outputs[0], identity)]


def _operands(model: FloatModel, node: OnnxNode) -> tuple[str, float | None]:
    """The computed operand of a node of two, and the constant one if it is a number."""
    if len(node.inputs) != 2:
        return node.inputs[0], None
    first, second = node.inputs
    if first in model.constants:
        first, second = second, first
    if second not in model.constants or model.constants[second].size != 1:
        return first, None
    return first, float(model.constants[second].reshape(-1)[0])


def _scalar(model: FloatModel, node: OnnxNode, place: int) -> float | None:
    if not node.has(place) or node.inputs[place] not in model.constants:
        return None
    value = model.constants[node.inputs[place]]
    return float(np.reshape(value, -1)[0]) if value.size == 1 else None
