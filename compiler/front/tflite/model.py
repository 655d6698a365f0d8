"""From subgraphs of a file to a graph, node by node."""

from collections.abc import Sequence

import numpy as np

from ...errors import ModelError, UnsupportedOperatorError
from ...graph.formulas import Term
from ..faults import faults_of
from .context import ImportContext
from .node import Node
from .schema import Operation, Subgraph, TensorInfo

__all__ = ["convert_subgraph"]


def convert_subgraph(
    context: ImportContext, subgraph: Subgraph, arguments: Sequence[Term]
) -> tuple[tuple[Term, ...], dict[int, Term]]:
    """Add the nodes of a subgraph whose inputs are ``arguments``: its outputs, and all its tensors
    by their numbers.

    Raises ModelError for a malformed node, UnsupportedOperatorError for an operator that there is
    no converter of, NeedsValueError when a shape depends on data.
    """
    if len(arguments) != len(subgraph.inputs):
        raise ModelError(
            f"{context.where}: a subgraph of {len(subgraph.inputs)} inputs is given "
            f"{len(arguments)}"
        )
    values = dict(zip(subgraph.inputs, arguments, strict=True))
    outer = context.origin
    for operation in subgraph.operations:
        context.origin = operation.name
        context.budget.step(str(operation))
        inputs = tuple(
            None if number < 0 else _value(context, subgraph, values, number, str(operation))
            for number in operation.inputs
        )
        node = Node(context, operation, inputs, subgraph.tensors)
        results = _convert(node)
        for number, result in zip(operation.outputs, results, strict=False):
            if number >= 0:
                values[number] = _typed(node, subgraph.tensors[number], result)
    context.origin = outer
    outputs = tuple(
        _value(context, subgraph, values, number, "an output") for number in subgraph.outputs
    )
    return outputs, values


def _value(
    context: ImportContext, subgraph: Subgraph, values: dict[int, Term], number: int, reader: str
) -> Term:
    """A tensor from an earlier node, or a constant of the file."""
    if number not in values:
        tensor = subgraph.tensors[number]
        if (
            not context.file.is_constant(tensor)
            and 0 not in tensor.shape
            and not tensor.is_variable
        ):
            raise ModelError(f"{reader} reads {tensor.name!r}, which no node before it computes")
        if tensor.is_variable:
            context.require_room(*tensor.shape)
            zero = tensor.quantization.zero_point if tensor.quantization else 0
            array = np.full(tensor.shape, zero).astype(tensor.dtype.numpy)
        else:
            array = context.file.constant(tensor)
        values[number] = Term(context, context.constant(array))
    return values[number]


def _convert(node: Node) -> tuple[Term, ...]:
    operation: Operation = node.operation
    converter = node.context.converters.get(operation.kind)
    if converter is None:
        raise UnsupportedOperatorError(f"{operation}: operator {operation.kind} is not supported")
    with faults_of(operation, operation.name), np.errstate(all="ignore"):
        results = converter(node)
    return results if isinstance(results, tuple) else (results,)


def _typed(node: Node, tensor: TensorInfo, result: Term) -> Term:
    """The result, if it has the element type that the file says."""
    if result.dtype != tensor.dtype:
        raise ModelError(
            f"{node}: its result {tensor.name!r} is {tensor.dtype} in the file; it computes "
            f"{result.dtype}"
        )
    return result
