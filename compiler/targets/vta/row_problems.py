"""Why the accelerator does not compute a softmax of rows, normalise them, or scale their sums."""

import numpy as np

from ...graph.ir import Graph, Node
from ...graph.operators.assembly import Assemble
from ...graph.operators.integer.norm import RowNorm
from ...graph.operators.integer.products import Conv2d, RowProducts
from ...graph.operators.integer.residual import RequantizeAdd
from ...graph.operators.integer.scaled_sum import ScaledSum, ScalesOfWords
from ...graph.operators.integer.softmax import RowSoftmax
from ...graph.operators.integer.tensor_norm import TensorNorm
from ...graph.operators.integer.values import Add, Lookup, Requantize
from ...graph.operators.integer.windows import Upsample2d
from ...graph.operators.movement import Reshape
from .operators import maker_of_sums

__all__ = [
    "ROW_PARTS",
    "STRIP_PARTS",
    "is_softmaxed",
    "lane_fill",
    "longest_row",
    "must_end_low",
    "row_problem",
]

ROW_PARTS = 4
"""Rows of a tile have at most this part of PAR, twice: for the largest of each, and its sum."""

STRIP_PARTS = 8
"""As ``ROW_PARTS``, in a strip: PAR holds the parameters of other layers too."""

IMAGE_WORDS = 12
"""Words of PAR that the normalisation of an image takes."""

NEEDS = {
    RowSoftmax: "softmax needs",
    RowNorm: "normalisations need",
    TensorNorm: "normalisations need",
    ScaledSum: "scaled sums need",
    RequantizeAdd: "sums with a tensor that is not requantised need",
}
"""Operators that PAR holds parameters of rows for, and how a message names them."""

MADE = (Add, Lookup, Requantize)
"""Operators of layers that may make a mask."""

LEAST = -128
"""Held by lanes without a channel, in rows of which the largest is taken."""


def row_problem(graph: Graph, node: Node, lanes: int, row_words: int) -> str | None:
    """Why it does not compute ``node``; None if it does, or the node is none of these.

    lanes: of a block.  row_words: of PAR, 0 in a configuration without row_parameters.
    """
    where, operator = f"node {node.origin!r}", node.operator
    if isinstance(operator, ScalesOfWords):
        alone = [isinstance(each.operator, ScaledSum) for each in graph.consumers(node.output)]
        if alone != [True] or operator.lanes != lanes > 1:
            return f"{where}: words of parameters that no layer reads as its own"
        return None
    needs = NEEDS.get(type(operator))
    if needs and not row_words:
        return (
            f"{where}: the configuration has no row_parameters, which {needs}; set row_parameters "
            "= true in a configuration file"
        )
    if needs and row_words < ROW_PARTS:
        return (
            f"{where}: par scratchpad: {ROW_PARTS} words required for parameters of rows, "
            f"{row_words} available; use a configuration with a deeper PAR"
        )
    match operator:
        case RowSoftmax():
            return _softmax_problem(graph, node, lanes)
        case RowNorm():
            words = -(-graph.types[node.inputs[0]].shape[-1] // lanes)
            return _par_problem(where, words, "scales and biases of channels", row_words)
        case TensorNorm():
            found = _par_problem(where, IMAGE_WORDS, "sums of an image", row_words)
            return _image_problem(graph, node, lanes) or found
        case ScaledSum():
            return _sum_problem(graph, node, row_words)
        case RequantizeAdd():
            return _residual_problem(graph, node)
    return None


def longest_row(lanes: int, row_words: int) -> int:
    """Channels of a row that may be normalised, at most."""
    return lanes * (row_words // 2 - 1)


def _softmax_problem(graph: Graph, node: Node, lanes: int) -> str | None:
    where, x = f"node {node.origin!r}", node.inputs[0]
    if len(graph.consumers(x)) > 1 or x in graph.outputs or x in graph.constants:
        return f"{where}: {x!r} is read elsewhere too; required a tensor for softmax alone"
    channels = graph.types[x].shape[-1]
    if channels % lanes and not _ends_low(graph, graph.producer(x)):
        return (
            f"{where}: rows of {channels} elements; required a multiple of {lanes}, or a product "
            "of two tensors: what is beyond the last in its block is not known"
        )
    return None


def is_softmaxed(graph: Graph, name: str) -> bool:
    """True if a softmax reads ``name``, or its sum with another tensor."""
    return any(
        isinstance(reader.operator, RowSoftmax)
        or (isinstance(reader.operator, Add | Assemble) and is_softmaxed(graph, reader.output))
        for reader in graph.consumers(name)
    )


def must_end_low(graph: Graph, name: str) -> bool:
    """True if lanes of ``name`` without a channel must hold ``LEAST``.

    A softmax reads them, or their sum with another tensor; but what the host gives may leave
    nothing else there, whatever it is added to.
    """
    for reader in graph.consumers(name):
        if isinstance(reader.operator, RowSoftmax):
            return True
        if isinstance(reader.operator, Assemble) and must_end_low(graph, reader.output):
            return True
        if isinstance(reader.operator, Add) and must_end_low(graph, reader.output):
            side = reader.inputs.index(name)
            pair = [np.arange(-128, 128, dtype=np.int8), np.full(256, LEAST, np.int8)]
            (total,) = reader.operator.evaluate(tuple(pair if side == 0 else pair[::-1]))
            if not (_is_given(graph, reader.inputs[1 - side]) and (total == LEAST).all()):
                return True
    return False


def lane_fill(graph: Graph, name: str) -> int:
    """The value that the host puts in lanes of a tensor without a channel."""
    for reader in graph.consumers(name):
        if isinstance(reader.operator, Upsample2d | Reshape) and lane_fill(graph, reader.output):
            return LEAST
        if isinstance(reader.operator, Add) and is_softmaxed(graph, reader.output):
            return LEAST
    return 0


def _sum_problem(graph: Graph, node: Node, row_words: int) -> str | None:
    where = f"node {node.origin!r}"
    assert isinstance(node.operator, ScaledSum)
    total, factors = map(graph.producer, node.inputs)
    if (
        total is None
        or not isinstance(total.operator, Conv2d)
        or factors is None
        or not isinstance(factors.operator, ScalesOfWords)
    ):
        return f"{where}: sums or factors in another form; required a convolution, and words of PAR"
    lanes, channels = factors.operator.lanes, graph.types[node.output].shape[-1]
    if channels % lanes or node.operator.repeats not in (1, channels // lanes):
        return f"{where}: sums of {channels} channels; required whole blocks of {lanes}"
    words = graph.types[node.inputs[1]].elements // lanes
    return _par_problem(where, words, "factors", row_words)


def _image_problem(graph: Graph, node: Node, lanes: int) -> str | None:
    channels = graph.types[node.output].shape[-1]
    if channels % lanes == 0:
        return None
    return (
        f"node {node.origin!r}: normalises all of an image of {channels} channels; required whole "
        f"blocks of {lanes}"
    )


def _residual_problem(graph: Graph, node: Node) -> str | None:
    where, total = f"node {node.origin!r}", maker_of_sums(graph, node)
    if total is None or not isinstance(total.operator, Conv2d):
        return f"{where}: adds a tensor to sums that no convolution or dense layer makes"
    if total.operator.groups > 1:
        return f"{where}: adds a tensor to sums of a convolution of groups; required quantised ones"
    if node.inputs[2] in graph.constants:
        return f"{where} adds {node.inputs[2]!r}, a constant; required what is computed"
    return None


def _par_problem(where: str, words: int, content: str, row_words: int) -> str | None:
    """Why so many words do not fit in half of PAR, less the word of a row's own."""
    available = row_words // 2 - 1
    if words <= available:
        return None
    return (
        f"{where}: par scratchpad: {words} words required for {content}, {available} available; "
        "use a configuration with a deeper PAR"
    )


def _ends_low(graph: Graph, maker: Node | None) -> bool:
    """True if lanes without a channel can be made the least of all.

    A sum with what the host gives, ``LEAST`` in these lanes, leaves them the least.
    """
    if maker is not None and isinstance(maker.operator, Assemble):
        return all(_ends_low(graph, graph.producer(name)) for name in maker.inputs)
    while maker is not None and isinstance(maker.operator, Lookup | Requantize | Reshape | Add):
        if isinstance(maker.operator, Add):
            masks = [_is_given(graph, name) for name in maker.inputs]
            if sum(masks) != 1:
                return False
            maker = graph.producer(maker.inputs[masks.index(False)])
            continue
        if isinstance(maker.operator, Lookup):
            table = graph.constants[maker.inputs[1]].reshape(-1, 256)
            if (np.diff(table.astype(np.int16), axis=1) < 0).any():
                return False
        maker = graph.producer(maker.inputs[0])
    return maker is not None and isinstance(maker.operator, RowProducts)


def _is_given(graph: Graph, name: str) -> bool:
    """True if the host makes a tensor, or the row that it repeats."""
    maker = graph.producer(name)
    if maker is not None and isinstance(maker.operator, Upsample2d):
        maker = graph.producer(maker.inputs[0])
    return maker is None or not isinstance(maker.operator, MADE)
