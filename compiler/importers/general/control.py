"""Converters of control flow: branches are chosen, and loops unrolled, as the model is imported."""

from collections.abc import Mapping

import numpy as np
import onnx

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.operators.movement import Concatenate
from ..onnx_state import OnnxNode
from .build import normalise_axis, reshape, slice_axis
from .context import Converter, ImportContext, Tensor, TensorSequence, Value, optional, required
from .element_types import element_type

__all__ = ["CONTROL", "stack"]

Values = tuple[Value | None, ...]

MOST_ITERATIONS = 10_000
"""Of one loop, as each becomes code of its own."""


def stack(ctx: ImportContext, elements: list[Tensor], axis: int) -> Tensor:
    """Tensors of one type along a new dimension."""
    shape = elements[0].type.shape
    grown = [reshape(ctx, each, (*shape[:axis], 1, *shape[axis:])) for each in elements]
    return grown[0] if len(grown) == 1 else ctx.emit(Concatenate(axis), *grown)


def convert_if(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """The branch that the condition's value chooses."""
    (condition,) = required(inputs, 1)
    holds = bool(ctx.value(condition).reshape(-1)[0])
    return _body(ctx, _graph(node, "then_branch" if holds else "else_branch"), ())


def convert_loop(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """As many iterations as the count allows and the condition's values say."""
    count, condition = optional(inputs, 0), optional(inputs, 1)
    body = _graph(node, "body")
    limit = MOST_ITERATIONS if count is None else int(ctx.value(count).reshape(-1)[0])
    carried: Values = inputs[2:]
    collected: list[list[Tensor]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    going = ctx.constant(np.asarray(True)) if condition is None else condition
    tested = condition is not None
    step = 0
    while step < limit and (not tested or bool(ctx.value(going).reshape(-1)[0])):
        if step == MOST_ITERATIONS:
            raise UnsupportedOperatorError(
                f"{node}: more than {MOST_ITERATIONS} iterations; required at most as many"
            )
        number = ctx.constant(np.asarray(step, np.int64))
        results = _body(ctx, body, (number, going, *carried))
        (going,) = required(results, 1)
        tested = True
        carried = results[1 : 1 + len(carried)]
        for place, each in enumerate(required(results[1 + len(carried) :], len(collected))):
            collected[place].append(each)
        step += 1
    declared = body.output[1 + len(carried) :]
    stacked = [
        stack(ctx, each, 0) if each else _empty(ctx, kind)
        for each, kind in zip(collected, declared, strict=True)
    ]
    return (*carried, *stacked)


def convert_scan(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """One iteration for each slice of the scanned inputs."""
    body = _graph(node, "body")
    scanned = node.integer("num_scan_inputs", 1)
    if ctx.opset < 9:
        return _batched_scan(ctx, node, inputs[1:], body, scanned)
    states = len(inputs) - scanned
    outputs = len(body.output) - states
    axes = node.integers("scan_input_axes", (0,) * scanned)
    backwards = node.integers("scan_input_directions", (0,) * scanned)
    places = node.integers("scan_output_axes", (0,) * outputs)
    reversed_ = node.integers("scan_output_directions", (0,) * outputs)
    sources = required(inputs[states:], scanned)
    collected, carried = _scan(ctx, body, inputs[:states], sources, axes, backwards)
    results = []
    for each, place, backward in zip(collected, places, reversed_, strict=True):
        ordered = each[::-1] if backward else each
        results.append(stack(ctx, ordered, normalise_axis(place, ordered[0].type.rank + 1)))
    return (*carried, *results)


def _scan(
    ctx: ImportContext,
    body: onnx.GraphProto,
    carried: Values,
    sources: tuple[Tensor, ...],
    axes: tuple[int, ...],
    backwards: tuple[int, ...],
) -> tuple[list[list[Tensor]], Values]:
    own = [normalise_axis(axis, x.type.rank) for axis, x in zip(axes, sources, strict=True)]
    size = sources[0].type.shape[own[0]]
    if size > MOST_ITERATIONS:
        raise UnsupportedOperatorError(
            f"node {ctx.origin!r}: {size} iterations; required at most {MOST_ITERATIONS}"
        )
    states = len(carried)
    collected: list[list[Tensor]] = [[] for _ in range(len(body.output) - states)]
    for step in range(size):
        slices = [
            _drop(ctx, slice_axis(ctx, x, axis, size - 1 - step if backward else step, 1), axis)
            for x, axis, backward in zip(sources, own, backwards, strict=True)
        ]
        results = _body(ctx, body, (*carried, *slices))
        carried = results[:states]
        for place, each in enumerate(required(results[states:], len(collected))):
            collected[place].append(each)
    return collected, carried


def _batched_scan(
    ctx: ImportContext, node: OnnxNode, inputs: Values, body: onnx.GraphProto, scanned: int
) -> Values:
    """Before opset 9 the first dimension is a batch, each with a scan of its own."""
    states = len(inputs) - scanned
    tensors = required(inputs, len(inputs))
    backwards = node.integers("directions", (0,) * scanned)
    batches = []
    for number in range(tensors[0].type.shape[0]):
        own = tuple(_drop(ctx, slice_axis(ctx, x, 0, number, 1), 0) for x in tensors)
        collected, carried = _scan(ctx, body, own[:states], own[states:], (0,) * scanned, backwards)
        stacked = [stack(ctx, each, 0) for each in collected]
        batches.append((*required(carried, states), *stacked))
    return tuple(stack(ctx, list(each), 0) for each in zip(*batches, strict=True))


def convert_sequence_map(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """The body on the elements of the sequences, one after the other."""
    first = inputs[0]
    if not isinstance(first, TensorSequence):
        raise ValueError("input 0 is no sequence")
    body = _graph(node, "body")
    collected: list[list[Value]] = [[] for _ in body.output]
    for place in range(len(first.elements)):
        arguments = [
            each.elements[place] if isinstance(each, TensorSequence) else each for each in inputs
        ]
        for out, each in zip(collected, _body(ctx, body, tuple(arguments)), strict=True):
            if each is not None:
                out.append(each)
    return tuple(TensorSequence(tuple(each)) for each in collected)


def _body(ctx: ImportContext, graph: onnx.GraphProto, arguments: Values) -> Values:
    if ctx.body is None:
        raise ValueError("no body can be imported here")
    present = tuple(each for each in arguments if each is not None)
    return ctx.body(graph, present)


def _graph(node: OnnxNode, name: str) -> onnx.GraphProto:
    found = node.attributes.get(name)
    if not isinstance(found, onnx.GraphProto):
        raise ValueError(f"attribute {name} is no graph")
    return found


def _drop(ctx: ImportContext, x: Tensor, axis: int) -> Tensor:
    return reshape(ctx, x, (*x.type.shape[:axis], *x.type.shape[axis + 1 :]))


def _empty(ctx: ImportContext, kind: onnx.ValueInfoProto) -> Tensor:
    """What a loop without iterations collects."""
    tensor = kind.type.tensor_type
    dtype = element_type(tensor.elem_type) if tensor.elem_type else DType.FLOAT32
    sizes = [each.dim_value for each in tensor.shape.dim]
    return ctx.constant(np.zeros((0, *sizes), dtype.numpy))


CONTROL: Mapping[str, Converter] = {
    "If": convert_if,
    "Loop": convert_loop,
    "Scan": convert_scan,
    "SequenceMap": convert_sequence_map,
}
