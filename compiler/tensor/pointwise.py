"""Sums, averages, repeated pixels and tables: layers of the vector unit, and ends of others."""

from dataclasses import replace

import numpy as np

from ..errors import UnsupportedOperatorError
from ..graph.fuse import Layer
from ..graph.ir import Graph
from ..graph.ops import Add, AveragePool2d, Lookup
from .activation import Activation
from .fixed_point_add import FixedPointAdd, find_fixed_point
from .ir import (
    Affine,
    Buffer,
    Fold,
    Kernel,
    Loop,
    Ref,
    Requantized,
    Scaled,
    Scope,
    Stage,
    Total,
    var,
)
from .stages import Array, LoweredLayer, finish_of, outer_loops, window_of, windowed

__all__ = ["ADDEND", "lower_add", "lower_average", "lower_upsample", "with_sum", "with_table"]

ADDEND = "addend"
"""The buffer between a convolution and the residual sum in its layer."""


def lower_upsample(
    layer: Layer, factors: tuple[int, int], x: Activation, output: Activation
) -> LoweredLayer:
    """Each word again and again; the loops are those over ``x``, and ``d`` over its repetitions.

    Raises UnsupportedOperatorError for factors in both directions: one instruction has not levels
    enough.
    """
    down, across = factors
    if down > 1 and across > 1:
        raise UnsupportedOperatorError(
            f"node {layer.name!r}: pixels repeated down and across at once; required one of both"
        )
    *outer, lane = outer_loops(replace(output, height=x.height, width=x.width))
    row = var("y") * down + (var("d") if down > 1 else 0)
    column = var("x") * across + (var("d") if across > 1 else 0)
    target = output.at(var("c"), row, column, var("l"))
    source = x.at(var("c"), var("y"), var("x"), var("l"))
    loops = (*outer, Loop("d", max(factors)), lane)
    stage = Stage("finish", loops, frozenset(), target, Fold.NONE, source)
    return LoweredLayer(Kernel(layer.name, (stage,)), {}, (x,), output)


def lower_average(
    layer: Layer, pool: AveragePool2d, x: Activation, output: Activation
) -> LoweredLayer:
    count = pool.kernel[0] * pool.kernel[1]
    constants: dict[str, Array] = {
        "bias": np.full((1, x.lanes), -count * pool.x_zero_point, np.int32),
        "scale": np.full((1, x.lanes), pool.scale, np.float32),
    }
    finish = finish_of(constants, "c", "l", pool.zero_point, -128, 127)
    value = window_of(x, pool.strides, (-pool.start[0], -pool.start[1]))
    return windowed(layer, x, output, pool.kernel, Fold.SUM, value, finish, constants)


def lower_add(
    layer: Layer, add: Add, inputs: tuple[Activation, Activation], output: Activation
) -> LoweredLayer:
    place = (var("c"), var("y"), var("x"), var("l"))
    operands = (inputs[0].at(*place), inputs[1].at(*place))
    stage, constants, pairs = _sum_stage("add", add, operands, output)
    return LoweredLayer(Kernel(layer.name, (stage,)), constants, inputs, output, pairs)


def with_sum(layer: Layer, inputs: tuple[Activation, ...], lowered: LoweredLayer) -> LoweredLayer:
    """With a last stage that adds the layer's second input, when the layer ends in a sum.

    What the convolution leaves is a buffer of its own, laid out like the result.
    """
    node = next((n for n in layer.nodes[1:] if isinstance(n.operator, Add)), None)
    if node is None:
        return lowered
    operator, output, other = node.operator, lowered.output, inputs[1]
    assert isinstance(operator, Add)
    *first, finish = lowered.kernel.stages
    left = Ref(replace(output.buffer, name=ADDEND), finish.target.indices)
    first.append(replace(finish, target=left))
    terms = (left, other.at(var("c"), var("y"), var("x"), var("l")))
    if node.inputs[0] == other.name:
        terms = (terms[1], terms[0])
    stage, constants, pairs = _sum_stage("add", operator, terms, output)
    kernel = replace(lowered.kernel, stages=(*first, stage))
    return replace(
        lowered,
        kernel=kernel,
        constants=lowered.constants | constants,
        inputs=(*lowered.inputs, other),
        inexact_pairs=pairs,
    )


def _sum_stage(
    name: str, add: Add, operands: tuple[Ref, Ref], output: Activation
) -> tuple[Stage, dict[str, Array], int]:
    """A stage that adds ``operands``, its constants, and how many pairs are inexact."""
    form: FixedPointAdd = find_fixed_point(add)
    constants: dict[str, Array] = {
        f"{name}_bias": np.full((1, output.lanes), form.offset, np.int32),
        f"{name}_scale": np.full((1, output.lanes), 2.0**-form.shift, np.float32),
    }
    index = (Affine(), var("l"))
    shape = (1, output.lanes)
    finish = Requantized(
        Ref(Buffer(f"{name}_bias", shape, "int32", Scope.PAR), index),
        Ref(Buffer(f"{name}_scale", shape, "float32", Scope.PAR), index),
        form.zero_point,
        add.low,
        add.high,
    )
    target = output.at(var("c"), var("y"), var("x"), var("l"))
    value = Total(Scaled(operands[0], form.m0), Scaled(operands[1], form.m1))
    stage = Stage(name, outer_loops(output), frozenset(), target, Fold.NONE, value, finish)
    return stage, constants, form.inexact_pairs


def with_table(graph: Graph, layer: Layer, lowered: LoweredLayer) -> LoweredLayer:
    node = next((n for n in layer.nodes if isinstance(n.operator, Lookup)), None)
    if node is None:
        return lowered
    lanes = lowered.output.lanes
    table = np.repeat(graph.constants[node.inputs[1]].reshape(256, 1), lanes, axis=1)
    buffer = Buffer("table", (256, lanes), "int8", Scope.TAB)
    last = replace(lowered.kernel.stages[-1], table=buffer)
    kernel = replace(lowered.kernel, stages=(*lowered.kernel.stages[:-1], last))
    return replace(lowered, kernel=kernel, constants={**lowered.constants, "table": table})
