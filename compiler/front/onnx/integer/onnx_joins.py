"""Operators that join and part tensors: Concat, QLinearConcat, Slice, Split."""

from dataclasses import replace

from ....errors import UnsupportedOperatorError
from ....graph.operators.movement import Slice
from .onnx_state import ImportState, OnnxNode
from .values import (
    Integer,
    Joined,
    Real,
    Value,
    join_tensors,
)

__all__ = ["convert_concat", "convert_qlinear_concat", "convert_slice", "convert_split"]


def convert_concat(state: ImportState, node: OnnxNode) -> None:
    """Concat of dequantised tensors, which the quantisation after it brings to one scale; or of
    integer tensors.
    """
    values = [state.value(node, place) for place in range(len(node.inputs))]
    reals = [value for value in values if isinstance(value, Real)]
    if len(reals) == len(values):
        rank = len(reals[0].tensor.permutation)
        joined = Joined(tuple(reals), node.integer("axis", 1) % rank)
        state.values[node.outputs[0]] = joined
        return
    tensors = [value for value in values if isinstance(value, Integer)]
    if len(tensors) < len(values):
        raise UnsupportedOperatorError(
            f"{node}: joins {', '.join(type(value).__name__ for value in values)}; required "
            "quantised tensors"
        )
    axis = node.integer("axis", 1) % len(tensors[0].permutation)
    state.values[node.outputs[0]] = join_tensors(
        state.graph, tensors, axis, node.outputs[0], node.name
    )


def convert_qlinear_concat(state: ImportState, node: OnnxNode) -> None:
    """com.microsoft QLinearConcat: y's scale and zero point, then each x and its."""
    places = range(2, len(node.inputs), 3)
    reals = tuple(state.operand(node, place) for place in places)
    axis = node.integer("axis", 1) % len(reals[0].tensor.permutation)
    state.store(node, Joined(reals, axis), 0)


def convert_slice(state: ImportState, node: OnnxNode) -> None:
    """Slice of a tensor, its limits given as attributes or as constants."""
    value = state.value(node, 0)
    tensor = _integer(node, value)
    rank = len(tensor.permutation)
    sizes = _sizes(state, tensor)
    starts, ends, axes, steps = _limits(state, node, rank)
    windows = [(0, 1, size) for size in sizes]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis %= rank
        if step == 0:
            raise UnsupportedOperatorError(f"{node}: a step of 0; required another")
        places = range(sizes[axis])[slice(start, end, step)]
        windows[axis] = (places.start, places.step, len(places))
    state.values[node.outputs[0]] = _sliced(state, node, value, windows, node.outputs[0])


def convert_split(state: ImportState, node: OnnxNode) -> None:
    """Split of a tensor into parts, equal ones where no sizes are given."""
    value = state.value(node, 0)
    tensor = _integer(node, value)
    sizes = _sizes(state, tensor)
    axis = node.integer("axis", 0) % len(sizes)
    parts = list(node.integers("split", ()))
    if node.has(1):
        parts = [int(size) for size in state.array(node, 1).reshape(-1)]
    if not parts:
        each = -(-sizes[axis] // len(node.outputs))
        parts = [min(each, sizes[axis] - each * i) for i in range(len(node.outputs))]
    start = 0
    for name, size in zip(node.outputs, parts, strict=True):
        windows = [(0, 1, each) for each in sizes]
        windows[axis] = (start, 1, size)
        if name:
            state.values[name] = _sliced(state, node, value, windows, name)
        start += size


def _limits(
    state: ImportState, node: OnnxNode, rank: int
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Starts, ends, axes, steps."""

    def listed(place: int, name: str, default: list[int]) -> list[int]:
        if node.has(place):
            return [int(each) for each in state.array(node, place).reshape(-1)]
        return list(node.integers(name, tuple(default)))

    starts, ends = listed(1, "starts", []), listed(2, "ends", [])
    axes = listed(3, "axes", list(range(len(starts))))
    return starts, ends, axes, listed(4, "steps", [1] * len(starts))


def _integer(node: OnnxNode, value: Value) -> Integer:
    tensor = value.tensor if isinstance(value, Real) else value
    if not isinstance(tensor, Integer):
        raise UnsupportedOperatorError(
            f"{node}: parts a {type(value).__name__}; required a quantised tensor; put "
            "QuantizeLinear and DequantizeLinear in front of it"
        )
    return tensor


def _sizes(state: ImportState, tensor: Integer) -> list[int]:
    """The model's dimensions."""
    shape = state.graph.types[tensor.name].shape
    return [shape[tensor.permutation.index(axis)] for axis in range(len(shape))]


def _sliced(
    state: ImportState,
    node: OnnxNode,
    value: Value,
    windows: list[tuple[int, int, int]],
    stem: str,
) -> Value:
    """``value`` cut to first, step and count along each dimension of the model."""
    tensor = _integer(node, value)
    ordered = [windows[axis] for axis in tensor.permutation]
    shape = tuple(count for _, _, count in ordered)
    if 0 in shape:
        raise UnsupportedOperatorError(f"{node}: nothing is left; required some elements")
    part = tensor
    if shape != state.graph.types[tensor.name].shape or any(step < 0 for _, step, _ in ordered):
        operator = Slice(
            tuple(first for first, _, _ in ordered), tuple(step for _, step, _ in ordered), shape
        )
        part = replace(tensor, name=state.graph.node(operator, (tensor.name,), stem, node.name))
    return replace(value, tensor=part) if isinstance(value, Real) else part
