"""Fold what scales and shifts channels into the convolution or dense layer before it.

Conv | ConvTranspose | Gemm, then BatchNormalization, a depthwise 1x1 Conv, or Add, Sub, Mul, Div
with a constant for each channel                    ->  the same with other weights and bias
Such of an image behind anything else, channels differing, or of the model's input
                                                    ->  depthwise 1x1 Conv
"""

from dataclasses import replace

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Array
from ..node import OnnxNode
from .model import FloatModel

__all__ = ["FoldAffine"]

Affine = tuple[Array, Array]
"""Scale and shift, float64[channels]."""


@frozen
class FoldAffine:
    """Removes one node a step.

    shapes: of every tensor.  rest: what does not fold becomes a convolution of its own.
    """

    shapes: dict[str, tuple[int, ...]]
    rest: bool = True
    name: str = "fold_affine"

    def run(self, model: FloatModel) -> FloatModel:
        """The rewritten model."""
        current: dict[str, OnnxNode] = {}
        constants = dict(model.constants)
        nodes: list[OnnxNode] = []
        for node in model.nodes:
            x, affine = self._affine(model, node, current)
            if affine is None:
                current[node.outputs[0]] = node
                nodes.append(node)
                continue
            before = current.get(x)
            if before is not None and _folds(before, constants) and model.only_reader(x):
                new = _folded(before, node.outputs, affine, constants)
                nodes = [new if each is before else each for each in nodes]
            elif (
                self.rest and node.kind != "Conv" and len(self.shapes[node.outputs[0]]) == 4
            ) and (
                node.kind == "BatchNormalization"
                or len(set(zip(*affine, strict=True))) > 1
                or _prepares(model, node, x)
            ):
                new = _depthwise(node, x, affine, constants)
                nodes.append(new)
            else:
                new = node
                nodes.append(node)
            current[node.outputs[0]] = new
        unchanged = nodes == list(model.nodes)
        return model if unchanged else replace(model, nodes=tuple(nodes), constants=constants)

    def _affine(
        self, model: FloatModel, node: OnnxNode, current: dict[str, OnnxNode]
    ) -> tuple[str, Affine | None]:
        """The tensor that ``node`` scales and shifts, and by what; None when it does not.

        current: the node that computes each tensor by now.
        """
        if node.kind == "BatchNormalization":
            return node.inputs[0], _normalization(model, node)
        if node.kind == "Conv":
            return node.inputs[0], _scaling(model, node)
        if node.kind not in ("Add", "Sub", "Mul", "Div"):
            return "", None
        flipped = node.inputs[0] in model.constants
        x, other = reversed(node.inputs) if flipped else node.inputs
        if other not in model.constants or x in model.constants or (flipped and node.kind == "Div"):
            return "", None
        dense = x in current and current[x].kind == "Gemm"
        value = self._by_channel(model.constants[other], x, node.outputs[0], -1 if dense else 1)
        if value is None or (node.kind == "Div" and not value.all()):
            return "", None
        one, zero = np.ones_like(value), np.zeros_like(value)
        match node.kind:
            case "Add":
                return x, (one, value)
            case "Sub":
                return x, (-one, value) if flipped else (one, -value)
            case "Mul":
                return x, (value, zero)
            case _:
                return x, (1 / value, zero)

    def _by_channel(self, value: Array, x: str, output: str, channel: int) -> Array | None:
        """float64[channels] when ``value`` is the same over all of ``x`` but its dimension
        ``channel``.
        """
        shape = self.shapes[output]
        rank = len(shape)
        if (rank not in (2, 4) and channel == 1) or self.shapes.get(x, shape) != shape:
            return None
        spread = value.reshape((1,) * (rank - value.ndim) + value.shape)
        if any(size != 1 for axis, size in enumerate(spread.shape) if axis != channel % rank):
            return None
        return np.broadcast_to(spread.reshape(-1), (shape[channel],)).astype(np.float64)


def _normalization(model: FloatModel, node: OnnxNode) -> Affine | None:
    if any(name not in model.constants for name in node.inputs[1:5]):
        return None
    if node.integer("training_mode", 0):
        return None
    scale, bias, mean, variance = (
        model.constants[name].astype(np.float64) for name in node.inputs[1:5]
    )
    factor = scale / np.sqrt(variance + node.real("epsilon", 1e-5))
    return factor, bias - mean * factor


def _scaling(model: FloatModel, node: OnnxNode) -> Affine | None:
    """Factors and shifts of a depthwise convolution whose window is one element."""
    weights = model.constants.get(node.inputs[1])
    bias = model.constants.get(node.inputs[2]) if node.has(2) else np.zeros(1)
    if weights is None or bias is None or weights.size != node.integer("group", 1):
        return None
    if {1} != {*node.integers("strides", (1,))} or any(node.integers("pads", ())):
        return None
    factors = weights.reshape(-1).astype(np.float64)
    return factors, np.broadcast_to(bias, factors.shape).astype(np.float64)


def _prepares(model: FloatModel, node: OnnxNode, x: str) -> bool:
    """True if ``x`` is an input of the model, channels first."""
    while x in model.producers and model.producers[x].kind == "Transpose":
        x = model.producers[x].inputs[0]
    reader = model.only_reader(node.outputs[0])
    moved = reader is not None and reader.kind == "Transpose"
    return not moved and any(x == signature.name for signature in model.inputs)


def _folds(node: OnnxNode, constants: dict[str, Array]) -> bool:
    if node.kind == "ConvTranspose":
        if node.integer("group", 1) != 1:
            return False
    elif node.kind == "Gemm":
        plain = node.integer("transB", 0) and not node.integer("transA", 0)
        if not plain or node.real("alpha", 1.0) != 1 or node.real("beta", 1.0) != 1:
            return False
    elif node.kind != "Conv":
        return False
    return all(name in constants for name in node.inputs[1:] if name)


def _folded(
    node: OnnxNode, outputs: tuple[str, ...], affine: Affine, constants: dict[str, Array]
) -> OnnxNode:
    """``node`` with the affine function behind it; its weights are added to ``constants``."""
    scale, shift = affine
    weights, axis = constants[node.inputs[1]], int(node.kind == "ConvTranspose")
    bias = np.zeros(weights.shape[axis])
    if node.has(2):
        bias = np.broadcast_to(constants[node.inputs[2]].reshape(-1), bias.shape)
    names = f"{outputs[0]}/weights", f"{outputs[0]}/bias"
    shape = (*(1,) * axis, -1, *(1,) * (weights.ndim - 1 - axis))
    constants[names[0]] = (weights * scale.reshape(shape)).astype(np.float32)
    constants[names[1]] = (bias * scale + shift).astype(np.float32)
    return replace(node, inputs=(node.inputs[0], *names), outputs=outputs)


def _depthwise(node: OnnxNode, x: str, affine: Affine, constants: dict[str, Array]) -> OnnxNode:
    scale, shift = affine
    names = f"{node.outputs[0]}/weights", f"{node.outputs[0]}/bias"
    constants[names[0]] = scale.reshape(-1, 1, 1, 1).astype(np.float32)
    constants[names[1]] = shift.astype(np.float32)
    attributes = {"kernel_shape": [1, 1], "group": len(scale)}
    return OnnxNode("Conv", node.name, (x, *names), node.outputs[:1], attributes)
