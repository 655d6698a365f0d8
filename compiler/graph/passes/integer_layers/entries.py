"""Tensors that enter integer layers: inputs, constants, and what stays outside them."""

import numpy as np

from ....dtypes import DType
from ...folding import is_worth_folding
from ...ir import Node
from ...operators.elementwise import Binary, BinaryFunction
from ...operators.indexing import Gather
from ...operators.integer.conversions import Shift128
from ...operators.movement import Concatenate, Reshape, Transpose
from ...operators.quantization import DequantizeLinear
from ...types import TensorType
from .state import State, UnrecognisedError
from .values import F32, Floating, Foreign, Integer, RealConstant, Value, identity_order

__all__ = ["folded", "input_value", "outside_value"]

ROWS_RANK = 2
"""Dimensions of rows of channels."""
MATRICES_RANK = 3
"""Dimensions of matrices of several heads."""
BYTES = (DType.INT8, DType.UINT8)


def input_value(state: State, name: str, kind: TensorType) -> Value:
    """An input of the graph, which stays one of the new graph."""
    state.plain[name] = state.builder.input(name, kind)
    if kind.dtype not in (*BYTES, DType.FLOAT32):
        return Foreign(f"input {name!r} is {kind.dtype}; required int8, uint8 or float32")
    if not kind.rank or 0 in kind.shape:
        return Foreign(f"input {name!r} has shape {list(kind.shape)}; required some elements")
    if kind.shape[0] != 1:
        return Foreign(
            f"input {name!r} has batch {kind.shape[0]}; required 1; compile the model for one "
            "image with --batch"
        )
    if kind.dtype == DType.FLOAT32:
        return Floating(name, identity_order(kind.rank))
    return _stored(state, name, name, kind)


def _stored(state: State, name: str, stem: str, kind: TensorType) -> Integer:
    unsigned = kind.dtype == DType.UINT8
    if unsigned:
        name = state.builder.node(Shift128("int8"), (name,), stem, stem)
    return Integer(name, identity_order(kind.rank), unsigned)


def outside_value(state: State, name: str, node: Node) -> Value:
    """The result of a node that is part of no integer layer: bytes may be read by one.

    Those of one image may, and rows of channels, of which there may be any number.
    """
    kind = state.source.types[name]
    single = kind.rank > 0 and (kind.shape[0] == 1 or max(kind.shape[1:-1], default=1) == 1)
    single = single or _is_stack(state, name) or _is_added(state, name)
    if kind.dtype in BYTES and kind.elements and single:
        return _stored(state, state.plain[name], name, kind)
    return Foreign(f"it reads the {kind.dtype} result of node {node.origin!r}")


def _is_stack(state: State, name: str) -> bool:
    """True if single indices of a tensor's first dimension are all that is read of it, as layers of
    a cache of keys are.
    """
    readers = list(state.source.consumers(name))
    found = name not in state.source.outputs and bool(readers)
    for node in readers:
        if isinstance(node.operator, DequantizeLinear):
            found = found and _is_stack(state, node.output)
        else:
            index = state.array(node.inputs[1]) if node.operator == Gather(0) else None
            found = found and index is not None and index.ndim == 0
    return found


def _is_added(state: State, name: str) -> bool:
    """True if a tensor is a cache, read only as dequantised rows that others are joined to, or a
    bias, read only as dequantised matrices that are added to others, as to the scores of heads.
    """
    source = state.source
    kind, found = source.types[name], source.consumers(name)
    readers = [(each, node) for each in found for node in source.consumers(each.output)]
    joins, adds = Concatenate(kind.rank - ROWS_RANK), Binary(BinaryFunction.ADD)
    matrices = kind.rank == MATRICES_RANK
    return (
        name not in source.outputs
        and bool(readers)
        and all(isinstance(each.operator, DequantizeLinear) for each in found)
        and all(
            (node.operator == joins and node.inputs[0] == each.output)
            or (
                node.operator == adds
                and matrices
                and source.types[node.output] == source.types[each.output]
            )
            for each, node in readers
        )
    )


def folded(state: State, node: Node) -> bool:
    """True if the node's inputs are constants; then its results are."""
    known = [name in state.arrays for name in node.inputs]
    real = [isinstance(state.values.get(name), RealConstant) for name in node.inputs]
    if not all(a or b for a, b in zip(known, real, strict=True)):
        return False
    operator = node.operator
    if isinstance(operator, DequantizeLinear):
        x, scale, zero = (state.arrays[name] for name in node.inputs)
        scales = scale.astype(F32).reshape(-1)
        if not np.all(np.isfinite(scales)) or np.any(scales <= 0):
            raise UnrecognisedError("scales must be finite and above 0")
        zeros = np.broadcast_to(zero.astype(np.int64).reshape(-1), scales.shape)
        state.values[node.output] = RealConstant(x, scales, zeros, operator.axis)
        return True
    if any(real) and isinstance(operator, Transpose | Reshape):
        return False
    given = [state.source.types[name] for name in node.inputs]
    results = [state.source.types[name] for name in node.outputs]
    if not is_worth_folding(operator, results, given):
        raise UnrecognisedError("a large constant")
    arrays = [state.constant(name, "operand") for name in node.inputs]
    state.arrays.update(zip(node.outputs, operator.evaluate(arrays), strict=True))
    return True
