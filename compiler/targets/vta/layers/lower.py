"""Layers to loop programs: what an operator computes, then the sum and the table that the layer
has.
"""

from collections.abc import Mapping

import numpy as np

from dovetail.isa.finishes import SHIFTS, OwnFinish
from dovetail.isa.frozen import frozen, replace

from ....dtypes import DType
from ....errors import UnsupportedOperatorError
from ....graph.ir import Graph
from ....graph.operators.integer.fixed_point import AddFixed, MultiplyFixed
from ....graph.operators.integer.norm import RowNorm
from ....graph.operators.integer.products import Conv2d, RowProducts
from ....graph.operators.integer.residual import RequantizeAdd
from ....graph.operators.integer.scaled_sum import ScaledSum
from ....graph.operators.integer.softmax import RowSoftmax
from ....graph.operators.integer.tensor_norm import TensorNorm
from ....graph.operators.integer.values import Add, Lookup, Multiply, WeightedAdd
from ....graph.operators.integer.windows import AveragePool2d, MaxPool2d, Upsample2d
from ....graph.operators.movement import Reshape
from ....loops.expressions import Buffer, Cast, Expr, Load, Scope, Variable
from ....loops.ir import Allocate, Function, Stmt, block, loops
from ..nest import OWN_FINISH
from ..operators import AnyAdd
from ..passes.fuse import Layer
from ..passes.split_groups import is_depthwise
from .activation import Activation
from .contraction import define_conv, define_depthwise
from .definition import (
    Array,
    Definition,
    FinishOf,
    LoweredLayer,
    Place,
    constant_buffer,
    nest,
    place_of,
    unfinished,
    write,
)
from .fixed_point_add import find_fixed_point
from .product import define_product
from .residual import added as added_to_sums
from .residual import with_terms
from .row_norm import lower_row_norm
from .row_products import define_row_products
from .row_softmax import lower_row_softmax
from .scaled_sum import lower_scaled_sum
from .tap_row import WINDOW
from .tensor_norm import lower_tensor_norm
from .windows import define_average, define_max, finish_of

__all__ = ["ADDEND", "lower"]

ADDEND = "addend"
"""The buffer between a convolution and the residual sum in its layer."""


def lower(
    graph: Graph,
    layer: Layer,
    activations: dict[str, Activation],
    own: OwnFinish | None = None,
    raises: bool = False,
    depth: int = 0,
) -> LoweredLayer:
    """The loop program of ``layer``.

    own: the finish of the configuration, which stands for tables that it computes.  raises: whether
    VECTOR takes zero points from what it multiplies with taps.  depth: words of TAP.
    Raises UnsupportedOperatorError when the accelerator cannot run its operator.
    """
    inputs = tuple(activations[name] for name in layer.inputs)
    stored: Activation | None = None
    x, output = inputs[0], activations[layer.output]
    pairs = 0
    tables: tuple[Buffer, ...] = ()
    operator = layer.nodes[0].operator
    if isinstance(operator, RowSoftmax):
        return lower_row_softmax(layer.name, operator, x, output)
    if isinstance(operator, RowNorm):
        parameters = (graph.constants[name] for name in layer.nodes[0].inputs[1:])
        return lower_row_norm(layer.name, operator, x, output, *parameters)
    if isinstance(operator, TensorNorm):
        return lower_tensor_norm(layer.name, operator, x, output)
    if isinstance(layer.nodes[-1].operator, ScaledSum):
        return lower_scaled_sum(graph, layer, x, inputs[1], output)
    match operator:
        case Conv2d() if _by_taps(graph, layer, operator, x, output):
            definition = define_depthwise(graph, layer, x, output, raises, depth)
        case Conv2d():
            definition = define_conv(graph, layer, x, output)
        case RowProducts():
            stored = inputs[1]
            definition = define_row_products(graph, layer, x, stored, output)
            # Of what it reads, all pixels are there.
            inputs = (x.all_pixels,)
        case Add() | AddFixed() | WeightedAdd():
            added = _sum(operator, (x, inputs[1]), output)
            definition, pairs = added.definition, added.inexact_pairs
        case Multiply() | MultiplyFixed():
            definition, pairs = define_product(operator, x, inputs[1])
        case MaxPool2d():
            definition = define_max(operator, x)
        case AveragePool2d():
            definition = define_average(operator, x)
        case Upsample2d() | Lookup():
            definition = Definition(lambda place: x.at(*place.indices))
        case other:
            raise UnsupportedOperatorError(
                f"node {layer.name!r}: {type(other).__name__} has no kernel for the accelerator"
            )
    addition = next((n for n in layer.nodes[1:] if isinstance(n.operator, AnyAdd)), None)
    before: Definition | None = None
    if addition is not None:
        addend = Buffer(ADDEND, _inner_shape(output), DType.INT8, Scope.ACT)
        operands: tuple[Buffer | Activation, ...] = (addend, inputs[1])
        if not _is_own(graph, layer, addition.inputs[0]):
            operands = operands[::-1]
        assert isinstance(addition.operator, AnyAdd)
        added = _sum(addition.operator, operands, output)
        before, definition, pairs = definition, added.definition, added.inexact_pairs
    residual = next(
        (n.operator for n in layer.nodes if isinstance(n.operator, RequantizeAdd)), None
    )
    if isinstance(residual, RequantizeAdd):
        before, definition = definition, added_to_sums(residual, output)
    table = next((n for n in layer.nodes if isinstance(n.operator, Lookup)), None)
    if table is not None:
        definition, tables = _looked_up(
            definition, graph.constants[table.inputs[1]], output.lanes, own
        )
    if isinstance(operator, Upsample2d):
        last = _repeated(layer.name, operator.factors, definition, x, output)
    else:
        place = place_of()
        target = output.place(*place.indices)
        last = nest(output, write(definition, place, output.buffer, target))
    constants = {**(before.constants if before else {}), **definition.constants}
    body = _body(last, before or definition, output if before and addition else None)
    if isinstance(residual, RequantizeAdd) and before is not None:
        body = _with_sums(with_terms(last, before, residual, inputs[1], output), before)
    return LoweredLayer(
        Function(
            layer.name,
            (*_inputs(inputs, output, constants), *tables),
            (output.buffer,),
            body,
        ),
        constants,
        inputs,
        output,
        (before or definition).macs,
        pairs,
        stored,
    )


def _by_taps(graph: Graph, layer: Layer, conv: Conv2d, x: Activation, output: Activation) -> bool:
    """True if VECTOR runs a convolution: a depthwise one, or one of a single channel where it has a
    row of taps in a cycle, and GEMM would take a cycle for each.
    """
    shape = graph.types[layer.nodes[0].inputs[1]].shape
    if is_depthwise(conv, shape):
        return True
    single = shape[0] == shape[3] == x.blocks == output.blocks == 1 and not x.image
    small = shape[1] <= WINDOW and 1 < shape[2] <= WINDOW
    return single and small and np.array_equal(x.channel_places, output.channel_places)


def _is_own(graph: Graph, layer: Layer, name: str) -> bool:
    """True if ``name`` is, perhaps by another name, what a node of the layer makes."""
    while (maker := graph.producer(name)) is not None and isinstance(maker.operator, Reshape):
        (name,) = maker.inputs
    return maker in layer.nodes


def _inner_shape(output: Activation) -> tuple[int, ...]:
    return (output.blocks, output.height, output.width, output.lanes)


def _inputs(
    inputs: tuple[Activation, ...], output: Activation, constants: Mapping[str, Array]
) -> tuple[Buffer, ...]:
    """The parameters that are read only; what is part of the tensor written is not."""
    read = {x.name: x.buffer for x in inputs if x.name != output.name}
    read |= {name: constant_buffer(name, array) for name, array in constants.items()}
    return tuple(read.values())


def _body(last: Stmt, first: Definition, summed: Activation | None) -> Stmt:
    """``last``, after what it reads: sums, and what is added in a layer that ends in a sum."""
    if summed is not None:
        addend = Buffer(ADDEND, _inner_shape(summed), DType.INT8, Scope.ACT)
        place = place_of(f"{ADDEND}.")
        before = nest(summed, write(first, place, addend, place.indices), f"{ADDEND}.")
        last = Allocate(addend, block(before, last))
    return _with_sums(last, first)


def _with_sums(last: Stmt, first: Definition) -> Stmt:
    """``last``, after the sums that ``first`` reads, if there are any."""
    if first.sums is None:
        return last
    return Allocate(first.sums.buffer, block(*first.sums.statements, last))


@frozen
class _Sum:
    definition: Definition
    inexact_pairs: int


def _sum(add: AnyAdd, operands: tuple[Buffer | Activation, ...], output: Activation) -> _Sum:
    """The sum of two operands, each an activation or a buffer as large as ``output`` inside."""
    form = find_fixed_point(add)
    constants: dict[str, Array] = {
        "add_bias": np.full((1, output.lanes), form.offset, np.int32),
        "add_scale": np.full((1, output.lanes), form.scale, np.float32),
    }
    finish = finish_of(constants, "add_", form.zero_point, add.low, add.high)

    def scaled(operand: Buffer | Activation, factor: int, place: Place) -> Expr:
        element = (
            Load(operand, place.indices)
            if isinstance(operand, Buffer)
            else operand.at(*place.indices)
        )
        return Cast(DType.INT32, element) * factor

    def value(place: Place) -> Expr:
        return scaled(operands[0], form.m0, place) + scaled(operands[1], form.m1, place)

    return _Sum(Definition(value, finish, constants=constants), form.inexact_pairs)


def _looked_up(
    definition: Definition, table: Array, lanes: int, own: OwnFinish | None
) -> tuple[Definition, tuple[Buffer, ...]]:
    """With an element of ``table``, int8[256], or int8[C, 256] of at most ``lanes`` channels, in
    place of each result; and the table that it reads besides the definition's constants.

    The own finish takes the place of a table that it computes, behind no other finish.
    """
    if own and table.ndim == 1 and definition.finish is unfinished:
        shift = own.shift_of(table.astype(np.int8))
        if shift is not None:
            rows = Buffer(OWN_FINISH, (256 * SHIFTS, lanes), DType.INT8, Scope.GLOBAL)
            return replace(definition, finish=_row_of(rows, 256 * shift)), (rows,)
    columns = np.repeat(table.reshape(-1, 256)[:1].T, lanes, axis=1)
    if table.ndim == 2:
        columns[:, : len(table)] = table.T
    buffer = constant_buffer("table", columns)

    constants = {**definition.constants, "table": columns}
    finish = _row_of(buffer, 0, definition.finish)
    return replace(definition, finish=finish, constants=constants), ()


def _row_of(table: Buffer, first: int, before: FinishOf = unfinished) -> FinishOf:
    """The element of ``table``, from row ``first`` on, for what ``before`` makes of a value."""

    def finish(value: Expr, place: Place) -> Expr:
        row = Cast(DType.INT64, before(value, place)) + (first + 128)
        return Load(table, (row, place.l))

    return finish


def _repeated(
    name: str,
    factors: tuple[int, int],
    definition: Definition,
    x: Activation,
    output: Activation,
) -> Stmt:
    """Each word again and again; the loops are those over ``x``, and ``d`` over its repetitions.

    Raises UnsupportedOperatorError for factors in both directions: one instruction has not levels
    enough.
    """
    down, across = factors
    if down > 1 and across > 1:
        raise UnsupportedOperatorError(
            f"node {name!r}: pixels repeated down and across at once; required one of both"
        )
    place, again = place_of(), Variable("d")
    row = place.y * down + (again if down > 1 else 0)
    column = place.x * across + (again if across > 1 else 0)
    target = output.place(place.c, row, column, place.l)
    sizes = (("c", output.blocks), ("y", x.height), ("x", x.width))
    store = write(definition, place, output.buffer, target)
    return loops((*sizes, ("d", max(factors)), ("l", output.lanes)), store)
