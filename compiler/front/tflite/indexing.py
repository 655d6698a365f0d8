"""Converters that read and write where integers say, and that make sequences."""

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term, concatenate
from ...graph.operators.indexing import Gather, GatherNd, ScatterFunction, ScatterNd
from ...graph.operators.movement import Iota
from ...graph.operators.sorting import Sort
from .node import Converter, Node

__all__ = ["INDEXING"]


def convert_gather(node: Node) -> Term:
    """Slices of one dimension, for each of some leading ones."""
    x, indices = node.term(0), node.term(1)
    batch = node.attribute("batch_dims")
    batch += indices.rank if batch < 0 else 0
    axis = node.axis(node.attribute("axis"), x.rank)
    if not batch:
        return x.take(indices.cast(DType.INT64), axis)
    fits = 0 < batch <= min(axis, indices.rank) and x.shape[:batch] == indices.shape[:batch]
    node.require(fits, "leading dimensions in common")
    moved = x.move_axis(axis, batch)
    rest, inner = moved.shape[batch + 1 :], x.shape[batch:axis]
    places = concatenate(
        [
            *(
                Term(node.context, node.context.emit(Iota((*indices.shape, 1), each)))
                for each in range(batch)
            ),
            indices.cast(DType.INT64).reshape(*indices.shape, 1),
        ],
        indices.rank,
    )
    found = node.emit(GatherNd(), moved, places)
    front = indices.rank - batch
    order = (
        *range(batch), *range(batch + front, batch + front + len(inner)),
        *range(batch, batch + front), *range(batch + front + len(inner), found.rank),
    )  # fmt: skip
    assert len(order) == indices.rank + len(rest)
    return found.transpose(*order)


def convert_scatter_nd(node: Node) -> Term:
    """Zeros to which blocks are added where rows of indices say."""
    indices, updates, shape = node.term(0), node.term(1), node.integers(2)
    empty = node.constant(0, updates.dtype).expand(*shape)
    operator = ScatterNd(ScatterFunction.ADD)
    return node.emit(operator, empty, indices.cast(DType.INT64), updates)


def convert_embedding_lookup(node: Node) -> Term:
    """Rows of a table."""
    table = node.term(1)
    if table.dtype != node.result().dtype:
        raise node.unsupported(f"a table of {table.dtype}")
    return node.emit(Gather(0), table, node.term(0).cast(DType.INT64))


def convert_one_hot(node: Node) -> Term:
    """One value where an index is that of a new dimension, another elsewhere."""
    indices, depth = node.term(0), node.integers(1)[0]
    on, off = node.term(2).reshape(), node.term(3).reshape()
    place = node.attribute("axis", -1)
    axis = indices.rank if place == -1 else node.axis(place, indices.rank + 1)
    node.require(depth >= 0, "a depth of 0 or more")
    shape = [1] * (indices.rank + 1)
    shape[axis] = depth
    node.context.require_room(depth)
    steps = node.constant(np.arange(depth).reshape(shape), DType.INT64)
    return indices.cast(DType.INT64).unsqueeze(axis).equal(steps).where(on, off, on.dtype)


def convert_top_k(node: Node) -> tuple[Term, ...]:
    """The largest elements of rows and where they are, the first of equal ones first."""
    x, count = node.term(0), node.integers(1)[0]
    node.require(x.rank > 0 and 0 <= count <= x.shape[-1], f"rows of at least {count}")
    values, places = node.context.emit_many(Sort(count, True), x.tensor)
    dtype = node.result(1).dtype
    return Term(node.context, values), Term(node.context, places).cast(dtype)


def convert_range(node: Node) -> Term:
    """Numbers from a start to a limit in steps, all known."""
    start, limit, step = (node.value(place).reshape(-1)[0] for place in range(3))
    if not step:
        raise ValueError("a step of 0")
    dtype = node.term(0).dtype
    if dtype.is_float:
        count = int(np.ceil(abs((limit - start) / step)))
    else:
        count = -(-abs(int(limit) - int(start)) // abs(int(step)))
    if (limit - start) * step <= 0:
        count = 0
    node.context.require_room(count)
    steps = np.arange(count).astype(dtype.numpy)
    return node.constant(start + steps * step, dtype)


def convert_broadcast_args(node: Node) -> Term:
    """The shape that two shapes broadcast to."""
    found = np.broadcast_shapes(node.integers(0), node.integers(1))
    return node.constant(found, node.result().dtype)


def convert_dynamic_update(node: Node) -> Term:
    """A tensor with a block written where indices say, moved to fit."""
    x, update, starts = node.term(0), node.term(1), node.term(2).cast(DType.INT64)
    room = np.asarray(x.shape) - np.asarray(update.shape)
    node.require(x.rank == update.rank and room.min(initial=0) >= 0, "an update that fits")
    first = starts.maximum(0).minimum(node.constant(room, DType.INT64))
    if not x.rank:
        return update
    node.context.require_room(*update.shape, x.rank)
    grid = np.indices(update.shape).transpose(*range(1, x.rank + 1), 0)
    places = node.constant(grid, DType.INT64) + first
    return node.emit(ScatterNd(), x, places, update)


def convert_reverse_sequence(node: Node) -> Term:
    """Each batch's first elements in reverse order, as many as its length says."""
    x, lengths = node.term(0), node.term(1).cast(DType.INT64)
    axis = node.axis(node.attribute("seq_dim"), x.rank)
    batch = node.axis(node.attribute("batch_dim"), x.rank)
    shape = [1] * x.rank
    shape[batch] = x.shape[batch]
    own = lengths.reshape(*shape)
    steps = Term(node.context, node.context.emit(Iota(x.shape, axis)))
    turned = own - 1 - steps
    places = (steps < own).where(turned, steps, DType.INT64)
    return x.take_elements(places, axis)


def convert_matrix_diag(node: Node) -> Term:
    """Rows on the diagonals of matrices of zeros."""
    x = node.term(0)
    size = x.shape[-1]
    node.context.require_room(size, size)
    return _on_diagonal(node, node.constant(0, x.dtype).expand(*x.shape, size), x)


def _on_diagonal(node: Node, x: Term, diagonal: Term) -> Term:
    rows, columns = x.shape[-2:]
    node.context.require_room(rows, columns)
    chosen = node.constant(np.eye(rows, columns), DType.BOOL)
    short = diagonal.pad([*((0, 0),) * (diagonal.rank - 1), (0, rows - diagonal.shape[-1])])
    return chosen.where(short.unsqueeze(diagonal.rank).expand(*x.shape), x, x.dtype)


def convert_sparse_to_dense(node: Node) -> Term:
    """One value everywhere, others where indices say."""
    indices, values, other = node.term(0), node.term(2), node.term(3)
    shape = node.integers(1)
    whole = other.reshape().expand(*shape)
    count = indices.shape[0] if indices.rank else 1
    places = indices.cast(DType.INT64).reshape(count, len(shape))
    return node.emit(ScatterNd(), whole, places, values.reshape(-1).expand(count))


def convert_bucketize(node: Node) -> Term:
    """Number of boundaries that are not above each element."""
    x = node.term(0)
    result = node.constant(0, DType.INT32).expand(*x.shape)
    for limit in node.attribute("boundaries", ()):
        bound = node.constant(np.float32(limit), DType.FLOAT32)
        result = result + (x.cast(DType.FLOAT32) >= bound).cast(DType.INT32)
    return result


INDEXING: dict[str, Converter] = {
    "BROADCAST_ARGS": convert_broadcast_args,
    "BUCKETIZE": convert_bucketize,
    "DYNAMIC_UPDATE_SLICE": convert_dynamic_update,
    "EMBEDDING_LOOKUP": convert_embedding_lookup,
    "GATHER": convert_gather,
    "GATHER_ND": lambda node: node.emit(GatherNd(), node.term(0), node.term(1).cast(DType.INT64)),
    "MATRIX_DIAG": convert_matrix_diag,
    "MATRIX_SET_DIAG": lambda node: _on_diagonal(node, node.term(0), node.term(1)),
    "ONE_HOT": convert_one_hot,
    "RANGE": convert_range,
    "RANK": lambda node: node.constant(node.term(0).rank, DType.INT32),
    "REVERSE_SEQUENCE": convert_reverse_sequence,
    "SCATTER_ND": convert_scatter_nd,
    "SHAPE": lambda node: node.constant(node.term(0).shape, node.result().dtype),
    "SPARSE_TO_DENSE": convert_sparse_to_dense,
    "TOPK_V2": convert_top_k,
}
