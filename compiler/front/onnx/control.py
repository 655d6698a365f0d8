"""Converters of control flow: branches are chosen as the model is imported.

Loops become one operator where every iteration does the same, and are written out where not.
"""

from collections.abc import Mapping

import numpy as np
import onnx

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term, concatenate
from .context import Converter, ImportContext, Tensor, TensorSequence, Value, optional, required
from .element_types import element_type
from .inputs import normalise_axis, terms
from .node import OnnxNode
from .rolled import FOREVER, VaryingValueError, roll_if, roll_loop, roll_scan

__all__ = ["CONTROL", "stack"]

Values = tuple[Value | None, ...]

MOST_ITERATIONS = 10_000
"""Iterations of a loop that is written out, at most."""


def stack(ctx: ImportContext, elements: list[Tensor], axis: int) -> Tensor:
    """Tensors of one type along a new dimension."""
    return concatenate([Term(ctx, each).unsqueeze(axis) for each in elements], axis).tensor


def convert_if(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """The branch that the condition's value chooses; in a loop, while the code runs."""
    (condition,) = required(inputs, 1)
    try:
        holds = bool(ctx.value(condition).reshape(-1)[0])
    except VaryingValueError:
        branches = _graph(node, "then_branch"), _graph(node, "else_branch")
        rolled = roll_if(ctx, condition, *branches)
        if rolled is None:
            raise
        return rolled
    return _body(ctx, _graph(node, "then_branch" if holds else "else_branch"), ())


def convert_loop(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """As many iterations as the count allows and the condition's values say."""
    count, condition = optional(inputs, 0), optional(inputs, 1)
    body = _graph(node, "body")
    limit = FOREVER if count is None else int(ctx.value(count).reshape(-1)[0])
    if condition is not None and not bool(ctx.value(condition).reshape(-1)[0]):
        limit = 0
    if limit > 1:
        rolled = roll_loop(ctx, body, limit, inputs[2:])
        if rolled is not None:
            return rolled
    return _unrolled_loop(ctx, node, body, limit, inputs[2:])


def _unrolled_loop(
    ctx: ImportContext, node: OnnxNode, body: onnx.GraphProto, limit: int, carried: Values
) -> Values:
    """One iteration after the other; the condition holds at first."""
    collected: list[list[Tensor]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    going = ctx.constant(np.asarray(True))
    step = 0
    while step < limit and bool(ctx.value(going).reshape(-1)[0]):
        if step == MOST_ITERATIONS:
            raise UnsupportedOperatorError(
                f"{node}: more than {MOST_ITERATIONS} iterations of a body whose shapes depend on "
                "the iteration; required at most as many"
            )
        number = ctx.constant(np.asarray(step, np.int64))
        results = _body(ctx, body, (number, going, *carried))
        (going,) = required(results, 1)
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
    if not 1 <= scanned <= len(inputs):
        raise ValueError(f"num_scan_inputs is {scanned}; required 1 to {len(inputs)}, its inputs")
    if ctx.opset < 9:
        return _batched_scan(ctx, node, inputs[1:], body, scanned)
    states = len(inputs) - scanned
    outputs = len(body.output) - states
    axes = node.integers("scan_input_axes", (0,) * scanned)
    backward = node.integers("scan_input_directions", (0,) * scanned)
    places = node.integers("scan_output_axes", (0,) * outputs)
    reversed_ = node.integers("scan_output_directions", (0,) * outputs)
    sources = tuple(
        each.move_axis(normalise_axis(axis, each.rank), 0).tensor
        for each, axis in zip(terms(ctx, inputs[states:], scanned), axes, strict=True)
    )
    carried, collected = _scan(ctx, body, inputs[:states], sources, backward, reversed_)
    results = (
        Term(ctx, each).move_axis(0, normalise_axis(place, each.type.rank)).tensor
        for each, place in zip(collected, places, strict=True)
    )
    return (*carried, *results)


def _scan(
    ctx: ImportContext,
    body: onnx.GraphProto,
    carried: Values,
    sources: tuple[Tensor, ...],
    backward: tuple[int, ...],
    reversed_: tuple[int, ...],
) -> tuple[Values, tuple[Tensor, ...]]:
    """Last states, and what is collected, both along first dimensions."""
    size, states = sources[0].type.shape[0], len(carried)
    if size > 1 and all(each.type.shape[0] == size for each in sources):
        directions = tuple(map(bool, backward)), tuple(map(bool, reversed_))
        rolled = roll_scan(ctx, body, carried, sources, *directions)
        if rolled is not None:
            return rolled[:states], rolled[states:]
    if size > MOST_ITERATIONS:
        raise UnsupportedOperatorError(
            f"node {ctx.origin!r}: {size} iterations of a body whose shapes depend on the "
            f"iteration; required at most {MOST_ITERATIONS}"
        )
    collected: list[list[Tensor]] = [[] for _ in range(len(body.output) - states)]
    for step in range(size):
        slices = [
            _slice(ctx, x, size - 1 - step if back else step)
            for x, back in zip(sources, backward, strict=True)
        ]
        results = _body(ctx, body, (*carried, *slices))
        carried = results[:states]
        for place, each in enumerate(required(results[states:], len(collected))):
            collected[place].append(each)
    stacked = [
        stack(ctx, each[::-1] if back else each, 0)
        for each, back in zip(collected, reversed_, strict=True)
    ]
    return carried, tuple(stacked)


def _batched_scan(
    ctx: ImportContext, node: OnnxNode, inputs: Values, body: onnx.GraphProto, scanned: int
) -> Values:
    """Before opset 9 the first dimension is a batch, each with a scan of its own."""
    states = len(inputs) - scanned
    tensors = required(inputs, len(inputs))
    backward = node.integers("directions", (0,) * scanned)
    straight = (0,) * (len(body.output) - states)
    batches = []
    for number in range(tensors[0].type.shape[0]):
        own = tuple(_slice(ctx, x, number) for x in tensors)
        carried, stacked = _scan(ctx, body, own[:states], own[states:], backward, straight)
        batches.append((*required(carried, states), *stacked))
    return tuple(stack(ctx, list(each), 0) for each in zip(*batches, strict=True))


def convert_sequence_map(ctx: ImportContext, node: OnnxNode, inputs: Values) -> Values:
    """The body on the elements of the sequences, one after the other."""
    first = inputs[0]
    if not isinstance(first, TensorSequence):
        raise ValueError("input 0 is not a sequence")
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
        raise ValueError(f"attribute {name} is not a graph")
    return found


def _slice(ctx: ImportContext, x: Tensor, place: int) -> Tensor:
    return Term(ctx, x).slice(0, place, place + 1).reshape(*x.type.shape[1:]).tensor


def _empty(ctx: ImportContext, kind: onnx.ValueInfoProto) -> Tensor:
    """Collected result of a loop without iterations."""
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
