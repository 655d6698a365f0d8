"""Stored tensors in the order of dimensions that an operator takes."""

from collections.abc import Sequence

from ...ir import GraphBuilder
from ...operators.movement import Concatenate, Reshape, Transpose
from .values import NCHW_TO_NHWC, Floating, Integer, identity_order

__all__ = ["join_tensors", "model_shape", "permuted", "to_model_order", "to_nhwc"]


def join_tensors(
    graph: GraphBuilder, tensors: Sequence[Integer], axis: int, stem: str, origin: str
) -> Integer:
    """Tensors one after the other along dimension ``axis`` of the model."""
    rank = len(tensors[0].permutation)
    order = NCHW_TO_NHWC if rank == len(NCHW_TO_NHWC) else identity_order(rank)
    names = tuple(permuted(graph, tensor, order, origin) for tensor in tensors)
    name = graph.node(Concatenate(order.index(axis)), names, stem, origin)
    return Integer(name, order, all(tensor.unsigned for tensor in tensors))


def to_nhwc(graph: GraphBuilder, tensor: Integer, origin: str) -> str:
    """The model's NCHW tensor, stored as NHWC."""
    return permuted(graph, tensor, NCHW_TO_NHWC, origin)


def to_model_order(graph: GraphBuilder, tensor: Integer | Floating, origin: str) -> str:
    """The tensor in the model's own order of dimensions."""
    return permuted(graph, tensor, identity_order(len(tensor.permutation)), origin)


def permuted(
    graph: GraphBuilder, tensor: Integer | Floating, wanted: tuple[int, ...], origin: str
) -> str:
    """The tensor stored in the order ``wanted``; a reshape when only dimensions of size 1 move."""
    if tensor.permutation == wanted:
        return tensor.name
    step = tuple(tensor.permutation.index(axis) for axis in wanted)
    shape = graph.types[tensor.name].shape
    moved = [axis for axis in step if shape[axis] != 1]
    if moved == sorted(moved):
        target = tuple(shape[axis] for axis in step)
        if target == shape:
            return tensor.name
        return _moved(graph, Reshape(target), tensor.name, origin)
    return _moved(graph, Transpose(step), tensor.name, origin)


def model_shape(graph: GraphBuilder, tensor: Integer | Floating) -> tuple[int, ...]:
    """The tensor's shape in the model."""
    shape = graph.types[tensor.name].shape
    return tuple(shape[tensor.permutation.index(axis)] for axis in range(len(shape)))


def _moved(graph: GraphBuilder, operator: Reshape | Transpose, name: str, origin: str) -> str:
    """``operator`` of the tensor ``name``; the one that is there, if there is one."""
    for node in graph.nodes:
        if node.inputs == (name,) and node.operator == operator:
            return node.output
    return graph.node(operator, (name,), name, origin)
