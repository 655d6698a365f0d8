"""Integer operators that the accelerator runs, and reasons why not, node by node."""

from collections.abc import Mapping
from math import prod

import numpy as np

from ...dtypes import DType
from ...graph.ir import Graph, Node
from ...graph.operators.assembly import Append, Assemble, Halves
from ...graph.operators.integer.conversions import Dequantize, Quantize, Shift128
from ...graph.operators.integer.fixed_point import AddFixed, MultiplyFixed, RequantizeFixed
from ...graph.operators.integer.norm import RowNorm
from ...graph.operators.integer.products import Conv2d, RowProducts
from ...graph.operators.integer.scaled_sum import ScaledSum, ScalesOfWords
from ...graph.operators.integer.softmax import RowSoftmax
from ...graph.operators.integer.tensor_norm import TensorNorm
from ...graph.operators.integer.values import Add, Lookup, Multiply, Softmax
from ...graph.operators.integer.windows import AveragePool2d, MaxPool2d, Upsample2d
from ...graph.operators.movement import Concatenate, Reshape, Slice, Transpose
from ...graph.partition import Refusal
from .appended import append_problem
from .fixed_problems import finish_problem, product_problem, sum_problem
from .layers.fixed_point_add import is_exact
from .layers.fixed_point_product import find_scale
from .operators import AnyAdd, AnyFinish, AnyMultiply, AnyRequantize, maker_of_sums
from .passes.own_parts import is_channel_concatenation, is_channel_slice
from .passes.split_groups import is_depthwise
from .row_problems import row_problem

__all__ = [
    "ON_ACCELERATOR",
    "ON_HOST",
    "RUNS_ON_HOST",
    "image_size",
    "is_alias",
    "node_refusals",
]

ON_ACCELERATOR = (
    *(Conv2d, RowProducts, AnyRequantize, AnyAdd, AnyMultiply),
    *(MaxPool2d, AveragePool2d, Upsample2d, Lookup, RowNorm, RowSoftmax),
    *(TensorNorm, ScaledSum, ScalesOfWords),
)
"""Operators that layers are made of."""

ON_HOST = (Quantize, Dequantize, Softmax, Shift128, Reshape, Transpose, Halves)
"""Operators that the host runs before the first layer and after the last."""

RUNS_ON_HOST = "runs on the host"
"""The reason given for a node with one of these."""

MOST_WORDS = 4096
"""Words of PAR that an instruction can address."""

SUMS = (Conv2d, RowProducts)
"""Operators that the matrix core sums up."""

MARGIN = 1
"""Pixels around a tensor that is all on chip, for those that read it with padding."""

MASK_VALUES = 2
"""Different bytes in a constant that is a mask, at most."""

JOINS = (AnyAdd, AnyMultiply, RowProducts, Assemble, Concatenate)
"""Operators whose operands are all activations."""


def node_refusals(
    graph: Graph,
    lanes: int = 1,
    fixed_rounding: bool = True,
    row_words: int = MOST_WORDS,
    depths: tuple[int, int, int] | None = None,
) -> Mapping[int, Refusal]:
    """Why the accelerator cannot run a node as a layer, or part of one, or as a name for what is
    in its memory already; by the node's number in a graph that ``prepare_graph`` made.

    lanes: of a block; without them, what depends on them counts as suitable.
    Each is judged only by its own attributes, the types of its tensors, and its neighbours.
    fixed_rounding: as ``HardwareConfig`` has it.  row_words: of PAR, for parameters of rows.
    depths: words of ACT, TAP and WGT; None for as many as any window has.
    """
    found: dict[int, Refusal] = {}
    for number, node in enumerate(graph.nodes):
        reason = (
            _reason(graph, node, lanes)
            or _fixed_problem(graph, node, fixed_rounding)
            or (depths and _window_problem(graph, node, lanes, *depths))
            or row_problem(graph, node, lanes, row_words)
        )
        if reason is not None:
            found[number] = Refusal(reason, node.origin)
    return found


def _reason(graph: Graph, node: Node, lanes: int) -> str | None:
    """Why the accelerator does not run ``node``; None if it does."""
    operator = node.operator
    if _is_between(graph, node):
        return None
    if isinstance(operator, SUMS) and not _requantizes(node.output, graph):
        return f"node {node.origin!r}: its int32 result must be requantised, by one node"
    if isinstance(operator, AnyFinish) and not _sums(graph, node):
        return f"node {node.origin!r} requantises what no convolution or dense layer sums up"
    if not _is_for_accelerator(graph, node):
        if isinstance(operator, ON_HOST) or _is_image(graph, node):
            return RUNS_ON_HOST
        made, called = graph.types[node.output], type(operator).__name__
        found = graph.types[node.inputs[0]] if node.inputs else "nothing"
        if made.dtype is not DType.INT8 and not made.dtype.is_float:
            return f"node {node.origin!r}: it computes in {made.dtype}; required int8"
        return f"node {node.origin!r}: the accelerator has no {called} that makes {made} of {found}"
    if isinstance(operator, Append):
        return append_problem(graph, node, lanes, ON_ACCELERATOR)
    if isinstance(operator, JOINS) and not isinstance(operator, AnyAdd) and not _picks(graph, node):
        # A constant first operand of products is in DRAM as an activation is, and so are factors.
        factors = isinstance(operator, AnyMultiply)
        for name in node.inputs[isinstance(operator, RowProducts) :]:
            whole = factors and graph.types[name] == graph.types[node.output]
            if name in graph.constants and not whole:
                return f"node {node.origin!r} reads {name!r}, a constant; required what is computed"
    if isinstance(operator, Add) and _has_mask(graph, node) and not is_exact(operator):
        return f"node {node.origin!r}: no sum of the vector unit gives all its bytes with a mask"
    if isinstance(operator, Multiply) and (problem := _factor_problem(graph, node)):
        return problem
    if isinstance(operator, RowProducts) and (problem := _rows_problem(graph, node, lanes)):
        return problem
    for name in (*node.inputs[:1], node.output):
        kind = graph.types[name]
        if image_size(kind.shape) is None:
            several = "the accelerator runs one image at a time"
            rows = "rows run behind a layer that makes them, such as a product of matrices"
            return (
                f"node {node.origin!r}: tensor {name!r} is {kind}; required int8[1, H, W, C] or "
                f"int8[1, C]: {rows if kind.shape[:1] == (1,) else several}"
            )
    return None


def _window_problem(
    graph: Graph, node: Node, lanes: int, act: int, tap: int, wgt: int
) -> str | None:
    """Why a window and its result are not in ACT at a time, its taps in TAP, or its weights for one
    block of channels in WGT; None if they are, or there is none.
    """
    match node.operator:
        case TensorNorm():
            return _whole_problem(graph, node, lanes, act)
        case MaxPool2d(kernel=(height, width)) | AveragePool2d(kernel=(height, width)):
            memory, depth, words = "act", act, height * width + 1
        case Conv2d() as conv:
            _, height, width, channels = graph.types[node.inputs[1]].shape
            memory, depth, words = "wgt", wgt, height * width
            if is_depthwise(conv, graph.types[node.inputs[1]].shape):
                memory, depth = "tap", tap
            elif graph.producer(node.inputs[0]) is None and channels < lanes:
                # As windows of rows of an image it takes no more than this.
                words = min(height, width)
        case _:
            return None
    if words <= depth:
        return None
    return (
        f"node {node.origin!r}: {memory} scratchpad: {words} words required for a window of "
        f"{height}x{width} pixels, {depth} available; use a configuration with a deeper "
        f"{memory.upper()}"
    )


def _whole_problem(graph: Graph, node: Node, lanes: int, act: int) -> str | None:
    """Why an image and its result, with padding, are not in ACT at a time; None if they are."""
    size = image_size(graph.types[node.output].shape)
    if size is None:
        return None
    height, width, channels = size
    words = 2 * -(-channels // lanes) * (height + 2 * MARGIN) * (width + 2 * MARGIN)
    if words <= act:
        return None
    return (
        f"node {node.origin!r}: act scratchpad: {words} words required for an image of "
        f"{height}x{width} pixels and its normalisation, {act} available; use a configuration with "
        "a deeper ACT"
    )


def _fixed_problem(graph: Graph, node: Node, fixed_rounding: bool) -> str | None:
    """Why the accelerator does not give TensorFlow Lite's bytes of ``node``; None if it does."""
    problem: str | None = None
    total, finish = node, node
    match node.operator:
        case AddFixed() as add:
            problem = sum_problem(add, *(graph.types[name] for name in node.inputs))
        case MultiplyFixed() as product:
            problem = product_problem(product, fixed_rounding)
        case Conv2d() | RowProducts():
            finish = _finish_of(graph, node)
        case RequantizeFixed():
            total = graph.producer(node.inputs[0]) or node
            if isinstance(total.operator, Reshape):
                total = graph.producer(total.inputs[0]) or node
    if isinstance(finish.operator, RequantizeFixed):
        problem = finish_problem(graph, total, finish, fixed_rounding)
    return f"node {node.origin!r}: {problem}" if problem else None


def _finish_of(graph: Graph, node: Node) -> Node:
    """The node that requantises the sums of a convolution, which ``_requantizes`` has found."""
    (reader,) = graph.consumers(node.output)
    return graph.consumers(reader.output)[0] if isinstance(reader.operator, Reshape) else reader


def _has_mask(graph: Graph, node: Node) -> bool:
    """True if one of a few bytes is added to all others, so that a wrong pair comes often."""
    given = (graph.constants.get(name) for name in node.inputs)
    return any(mask is not None and len(np.unique(mask)) <= MASK_VALUES for mask in given)


def _picks(graph: Graph, node: Node) -> bool:
    """True if a product with zeros and ones keeps some elements of a tensor."""
    given = graph.constants.get(node.inputs[0])
    if given is None or not isinstance(node.operator, Multiply):
        return False
    kept = node.operator.ratio == 1 and node.operator.a_zero_point == 0
    return kept and bool(np.isin(given, (0, 1)).all())


def _factor_problem(graph: Graph, node: Node) -> str | None:
    """Why the accelerator does not multiply these tensors; None if it does."""
    assert isinstance(node.operator, Multiply)
    channels = [graph.types[name].shape[-1] for name in node.inputs]
    if channels[0] != channels[1]:
        return (
            f"node {node.origin!r} multiplies {channels[0]} channels by {channels[1]}; required as "
            "many: a word holds a block of channels"
        )
    if wrong := find_scale(node.operator).inexact_pairs:
        return (
            f"node {node.origin!r}: no scale of the vector unit gives its bytes for {wrong} of "
            "65,536 operand pairs"
        )
    return None


def _rows_problem(graph: Graph, node: Node, lanes: int) -> str | None:
    """Why the accelerator does not multiply the rows of these tensors; None if it does."""
    sizes = [image_size(graph.types[name].shape) for name in node.inputs]
    if None in sizes:
        return (
            f"node {node.origin!r}: multiplies the rows of {graph.types[node.inputs[0]]} and "
            f"{graph.types[node.inputs[1]]}; required int8[1, H, W, C] for both"
        )
    *outer, rows, channels = graph.types[node.inputs[1]].shape
    if prod(outer) > 1:
        return (
            f"node {node.origin!r}: multiplies {prod(outer)} matrices of {rows} rows of {channels} "
            f"elements; required multiples of {lanes}, or one matrix"
        )
    x, y = map(graph.producer, node.inputs)
    if y is not None and isinstance(y.operator, Append):
        # What is added ends as any result; so the whole does, in its last block.
        y = graph.producer(y.inputs[1])
    filled = (x is None and y is None) or (y is not None and _sums(graph, y, RowProducts))
    if channels % lanes and not filled:
        return (
            f"node {node.origin!r}: multiplies rows of {channels} elements; required a multiple of "
            f"{lanes}: what is beyond the last in its block is not known"
        )
    return None


def _is_between(graph: Graph, node: Node) -> bool:
    """True if ``node`` reshapes sums of a convolution on their way to be requantised."""
    if not isinstance(node.operator, Reshape) or not _keeps_places(graph, node):
        return False
    maker = graph.producer(node.inputs[0])
    sums = maker is not None and isinstance(maker.operator, SUMS)
    return sums and _requantizes(node.inputs[0], graph)


def _requantizes(sums: str, graph: Graph) -> bool:
    """True if one node alone reads ``sums`` and requantises them, perhaps after a Reshape."""
    for _ in range(2):
        readers = graph.consumers(sums)
        if sums in graph.outputs or len(readers) != 1:
            return False
        (reader,) = readers
        if not isinstance(reader.operator, Reshape):
            return isinstance(reader.operator, AnyFinish)
        sums = reader.output
    return False


def _sums(graph: Graph, node: Node, kinds: tuple[type, ...] | type = SUMS) -> bool:
    """True if one of ``kinds`` makes what ``node`` reads, perhaps with a Reshape between."""
    maker = maker_of_sums(graph, node)
    return maker is not None and isinstance(maker.operator, kinds)


def _is_for_accelerator(graph: Graph, node: Node) -> bool:
    """True if ``node`` is of a kind that the accelerator has."""
    if isinstance(node.operator, (*SUMS, AnyFinish, ScalesOfWords)):
        return True
    after = graph.types[node.output]
    if {graph.types[name].dtype for name in (*node.inputs[:1], node.output)} != {DType.INT8}:
        return False
    return (
        isinstance(node.operator, (*ON_ACCELERATOR, Append, Assemble))
        or is_alias(graph, node)
        or is_channel_concatenation(node, after)
        or is_channel_slice(node, graph.types)
    )


def _is_image(graph: Graph, node: Node) -> bool:
    """True if ``node`` takes one image of a batch."""
    if not isinstance(node.operator, Slice):
        return False
    before, after = (graph.types[name].shape for name in (node.inputs[0], node.output))
    return before[1:] == after[1:] and before[0] > after[0] == 1


def is_alias(graph: Graph, node: Node) -> bool:
    """True if every byte keeps its row, column and channel: only 1s are added or dropped.

    Or if all pixels become one row that is weights of products: in DRAM they are one.
    """
    return (
        isinstance(node.operator, Reshape)
        and graph.types[node.output].dtype is DType.INT8
        and (_keeps_places(graph, node) or _are_weights(graph, node))
    )


def _are_weights(graph: Graph, node: Node) -> bool:
    """True if only products of rows read the pixels of an image, as one row of weights."""
    before, after = (graph.types[name].shape for name in (node.inputs[0], node.output))
    readers = graph.consumers(node.output)
    return (
        image_size(before) is not None
        and after == (1, 1, prod(before[:-1]), before[-1])
        and bool(readers)
        and node.output not in graph.outputs
        and all(isinstance(n.operator, RowProducts) for n in readers)
        and all(n.inputs[0] != node.output for n in readers)
    )


def _keeps_places(graph: Graph, node: Node) -> bool:
    before, after = (image_size(graph.types[name].shape) for name in (node.inputs[0], node.output))
    return before is not None and before == after


def image_size(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Height, width and channels of int8[1, H, W, C] or [1, C]; None for another shape."""
    match shape:
        case (1, height, width, channels):
            return height, width, channels
        case (*ones, channels) if all(size == 1 for size in ones):
            return 1, 1, channels
    return None
