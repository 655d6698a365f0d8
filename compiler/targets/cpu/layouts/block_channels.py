"""Keep activations of convolutions in blocks of channels, so that neighbours fill a vector.

    [N, C, *spatial]  ->  [N, C / B, *spatial, B]

A convolution with constant weights computes blocked activations (``blocked_convolutions``).  What
follows stays blocked as long as it works element by element, over spatial windows, or joins whole
blocks; other operators get plain tensors.  Each tensor is converted at most once each way
(``blocked_tensors``).

Channels are filled up with lanes that hold one value, tracked through the graph: weights for them
are 0, so any finite value will do; an operator that would make them infinite or NaN gets plain
tensors.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, Node
from ....graph.operators.contractions import Convolution
from ....graph.operators.elementwise import Binary, Bitcast, Cast, MultiplyAdd, Unary, Where
from ....graph.operators.indexing import Gather
from ....graph.operators.movement import Concatenate, PadMode, PadTensor, Reshape
from ....graph.operators.reductions import Reduce
from ....graph.operators.windows import WindowFunction, WindowReduce
from ....graph.rebuild import Rebuilding
from .blocked_convolutions import ConvolutionChoices, block_convolution
from .blocked_products import blocked_array
from .blocked_tensors import Blocked, BlockedTensors

__all__ = ["BlockChannels"]

Array = NDArray[Any]


@frozen
class BlockChannels:
    """See the module's docstring.  Every node is visited once, so the pass ends."""

    block: int = 16
    waste: float = 2.0
    """Channels after filling up, over channels before: a convolution with more stays plain."""
    winograd: bool = True
    """True if float convolutions may be computed by Winograd's tiles, where that is faster."""
    tiles: Mapping[str, int] = field(default_factory=dict)
    """The tile that measurements chose, by the key of a convolution; 0 for direct products."""

    name: str = "block_channels"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when no convolution is blocked."""
        if not any(isinstance(node.operator, Convolution) for node in graph.nodes):
            return graph
        tensors = BlockedTensors(graph, self.block, Rebuilding(graph))
        choices = ConvolutionChoices(self.waste, self.winograd, self.tiles)
        for node in graph.nodes:
            blocked = _blocked(tensors, node, choices)
            if blocked is not None:
                tensors.blocked[node.output] = blocked
                continue
            for name in node.inputs:
                tensors.plain(name)
            tensors.new.copy(node)
        for name in graph.outputs:
            tensors.plain(name)
        return tensors.new.build()


def _blocked(tensors: BlockedTensors, node: Node, choices: ConvolutionChoices) -> Blocked | None:
    """The node in the new graph, on blocks; None where it needs plain tensors."""
    match node.operator:
        case Convolution():
            return block_convolution(tensors, node, node.operator, choices)
        case Unary() | Binary() | Where() | MultiplyAdd() | Cast() | Bitcast():
            return _elementwise(tensors, node)
        case WindowReduce() | Gather() | PadTensor() | Reduce():
            return _spatial(tensors, node)
        case Concatenate(axis=1):
            return _concatenate(tensors, node)
        case _:
            return None


def _elementwise(tensors: BlockedTensors, node: Node) -> Blocked | None:
    """On blocks, when an operand of the result's shape has only them."""
    shape = tensors.shape(node.output)
    if not any(tensors.is_blocked(n) and tensors.shape(n) == shape for n in node.inputs):
        return None
    filler = _filler(tensors, node, shape)
    if filler is None:
        return None
    operands = []
    for name in node.inputs:
        given, array = tensors.shape(name), tensors.graph.constants.get(name)
        own = (1,) * (len(shape) - len(given)) + given
        if own[1] == shape[1] and array is not None and own != given:
            array = blocked_array(array.reshape(own), 1, tensors.block)
            operands.append(tensors.builder.constant(f"{name}.blocked", array))
        elif own[1] == shape[1] and own == given:
            operands.append(tensors.to_blocked(name).name)
        elif own[1] == 1:
            plain = tensors.plain(name)
            if prod(own) != 1:
                plain = tensors.emit(Reshape((*own, 1)), (plain,), node)
            operands.append(plain)
        else:
            return None
    return Blocked(tensors.emit(node.operator, tuple(operands), node), filler)


def _filler(tensors: BlockedTensors, node: Node, shape: tuple[int, ...]) -> float | None:
    """The operator's result in the lanes beyond the channels; None if it is not finite."""
    values: list[Array] = []
    whole = shape[1] % tensors.block == 0
    for name in node.inputs:
        kind, array = tensors.graph.types[name], tensors.graph.constants.get(name)
        if name in tensors.blocked:
            value: Any = tensors.blocked[name].filler
        elif array is not None and array.size == 1:
            value = array.reshape(()).item()
        elif len(kind.shape) < len(shape) - 1 or kind.shape[1 - len(shape)] == 1:
            return 0.0 if whole else None
        else:
            value = 0
        values.append(np.asarray(value, kind.dtype.numpy))
    if whole:
        return 0.0
    result = node.operator.evaluate(values)[0].item()  # type: ignore[union-attr]
    return float(result) if isfinite(result) else None


def _spatial(tensors: BlockedTensors, node: Node) -> Blocked | None:
    """Windows, indices, pads and reductions of spatial dimensions only."""
    name, operator = node.inputs[0], node.operator
    if not tensors.is_blocked(name):
        return None
    own = tensors.blocked[name]
    whole = tensors.shape(name)[1] % tensors.block == 0
    rest = tuple(tensors.plain(each) for each in node.inputs[1:])
    match operator:
        case WindowReduce(axes=axes, function=function):
            if min(axes) < 2 or (function != WindowFunction.MAX and own.filler != 0):
                return None
        case Gather(axis=axis):
            if axis < 2 or len(tensors.shape(node.inputs[1])) != 1:
                return None
        case PadTensor(before=before, after=after, mode=mode):
            value = tensors.graph.constants.get(node.inputs[1])
            same = whole or (value is not None and value == own.filler)
            if any((*before[:2], *after[:2])) or not (same or mode != PadMode.CONSTANT):
                return None
            operator = PadTensor((*before, 0), (*after, 0), mode)
        case Reduce(axes=axes, keep=keep):
            if not keep or not axes or min(axes) < 2 or not (whole or own.filler == 0):
                return None
        case _:
            return None
    return replace(own, name=tensors.emit(operator, (own.name, *rest), node))


def _concatenate(tensors: BlockedTensors, node: Node) -> Blocked | None:
    """A concatenation of whole blocks, when one operand has only them."""
    whole = all(tensors.shape(name)[1] % tensors.block == 0 for name in node.inputs)
    if not whole or not any(tensors.is_blocked(name) for name in node.inputs):
        return None
    operands = tuple(tensors.to_blocked(name).name for name in node.inputs)
    return Blocked(tensors.emit(node.operator, operands, node), 0.0)
