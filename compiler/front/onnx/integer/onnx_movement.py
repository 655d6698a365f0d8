"""Operators that move elements: Transpose, Reshape, Flatten, Squeeze, Unsqueeze, Pad, Identity."""

from dataclasses import replace

import numpy as np

from ....errors import UnsupportedOperatorError
from ....graph.operators.integer.windows import Pad
from ....graph.operators.movement import Reshape
from .onnx_state import ImportState, OnnxNode
from .values import (
    NCHW_TO_NHWC,
    Floating,
    Integer,
    Real,
    RealConstant,
    Value,
    identity_order,
    to_model_order,
    to_nhwc,
)

__all__ = ["convert_identity", "convert_pad", "convert_reshape", "convert_transpose"]


def convert_identity(state: ImportState, node: OnnxNode) -> None:
    """Another name for a tensor."""
    if node.inputs[0] in state.arrays:
        state.arrays[node.outputs[0]] = state.arrays[node.inputs[0]]
    else:
        state.values[node.outputs[0]] = state.value(node, 0)


def convert_transpose(state: ImportState, node: OnnxNode) -> None:
    """Kept as a permutation of the tensor's dimensions; nothing moves yet."""
    value = state.value(node, 0)
    if isinstance(value, RealConstant):
        rank = value.values.ndim
        order = node.integers("perm", tuple(reversed(range(rank))))
        axis = order.index(value.axis % rank) if value.scales.size > 1 else 0
        moved = replace(value, values=value.values.transpose(order), axis=axis)
        state.values[node.outputs[0]] = moved
        return
    tensor = _stored(node, value)
    order = node.integers("perm", tuple(reversed(range(len(tensor.permutation)))))
    permutation = tuple(order.index(axis) for axis in tensor.permutation)
    state.values[node.outputs[0]] = _with(value, replace(tensor, permutation=permutation))


def convert_reshape(state: ImportState, node: OnnxNode) -> None:
    """Reshape, Flatten, Squeeze and Unsqueeze of a tensor in the model's order of dimensions."""
    value = state.value(node, 0)
    tensor = _stored(node, value)
    name = to_model_order(state.graph, tensor, node.name)
    old = state.graph.types[name].shape
    shape = np.empty(old, np.bool_).reshape(_wanted(state, node, old)).shape
    out = name
    if shape != old:
        out = state.graph.node(Reshape(shape), (name,), node.outputs[0], node.name)
    moved = replace(tensor, name=out, permutation=identity_order(len(shape)))
    state.values[node.outputs[0]] = _with(value, moved)


def convert_pad(state: ImportState, node: OnnxNode) -> None:
    """A border of one value around the image."""
    value = state.value(node, 0)
    tensor = _stored(node, value)
    if isinstance(tensor, Floating) or len(tensor.permutation) != 4:
        raise UnsupportedOperatorError(f"{node}: required a quantised tensor of 4 dimensions")
    sides = node.integers("pads", ())
    if node.has(1):
        sides = tuple(int(side) for side in state.array(node, 1).reshape(-1))
    if node.has(3) or len(sides) != 8 or any(sides[i] for i in (0, 1, 4, 5)) or min(sides) < 0:
        raise UnsupportedOperatorError(
            f"{node}: pads {list(sides)}; required borders of height and width only"
        )
    if node.text("mode", "constant") != "constant":
        raise UnsupportedOperatorError(
            f"{node}: mode {node.text('mode', '')!r}; required 'constant'"
        )
    operator = Pad((sides[2], sides[3], sides[6], sides[7]), _border(state, node, value, tensor))
    name = to_nhwc(state.graph, tensor, node.name)
    out = state.graph.node(operator, (name,), node.outputs[0], node.name)
    padded = replace(tensor, name=out, permutation=NCHW_TO_NHWC)
    state.values[node.outputs[0]] = _with(value, padded)


def _border(state: ImportState, node: OnnxNode, value: Value, tensor: Integer) -> int:
    """The int8 value of the border."""
    given = node.real("value", 0.0)
    if node.has(2):
        constant = state.values.get(node.inputs[2])
        if isinstance(constant, RealConstant):
            steps = constant.values.reshape(-1) - constant.zero_points
            given = float((steps * constant.scales)[0])
        else:
            given = float(state.array(node, 2).reshape(-1)[0])
    if isinstance(value, Real):
        exact = given / float(value.scale)
        nearest = round(exact) + value.zero_point
        if abs(exact - round(exact)) > 1e-3 or not -128 <= nearest <= 127:
            raise UnsupportedOperatorError(
                f"{node}: the border {given!r} is not a value of its input's "
                f"quantisation (scale {float(value.scale)!r}, zero point {value.zero_point})"
            )
        return nearest
    return int(given) - 128 * tensor.unsigned


def _stored(node: OnnxNode, value: Value) -> Integer | Floating:
    match value:
        case Integer() | Floating():
            return value
        case Real(tensor=tensor):
            return tensor
        case _:
            raise UnsupportedOperatorError(
                f"{node}: moves a {type(value).__name__}; required a "
                "quantised tensor; put QuantizeLinear and DequantizeLinear in front of it"
            )


def _with(value: Value, tensor: Integer | Floating) -> Value:
    if isinstance(value, Real) and isinstance(tensor, Integer):
        return replace(value, tensor=tensor)
    return tensor


def _wanted(state: ImportState, node: OnnxNode, old: tuple[int, ...]) -> list[int]:
    """The new shape; one size may be -1."""
    match node.kind:
        case "Flatten":
            axis = node.integer("axis", 1)
            return [int(np.prod(old[: axis % (len(old) + 1)], dtype=int)), -1]
        case "Squeeze" | "Unsqueeze":
            return _squeezed(state, node, old)
        case _:
            wanted = [int(size) for size in state.array(node, 1)]
            if node.integer("allowzero", 0):
                return wanted
            return [old[place] if size == 0 else size for place, size in enumerate(wanted)]


def _squeezed(state: ImportState, node: OnnxNode, old: tuple[int, ...]) -> list[int]:
    axes = node.integers("axes", ())
    if node.has(1):
        axes = tuple(int(axis) for axis in state.array(node, 1).reshape(-1))
    if node.kind == "Squeeze":
        dropped = {axis % len(old) for axis in axes} or {i for i, n in enumerate(old) if n == 1}
        return [size for axis, size in enumerate(old) if axis not in dropped]
    rank = len(old) + len(axes)
    sizes, places = iter(old), {axis % rank for axis in axes}
    return [1 if axis in places else next(sizes) for axis in range(rank)]
