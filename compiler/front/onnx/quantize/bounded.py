"""Single nodes whose results' sizes and work are known before they are evaluated."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ....errors import CompileLimitError, UnsupportedOperatorError
from ....graph.folding import evaluation_work
from ....graph.ir import Array, Graph
from ....pipeline.limits import Budget, Limits, Watch
from ...source import NeedsValueError
from ..node import OnnxNode
from ..source import SourceModel

__all__ = ["Bounds", "node_model", "to_node_proto"]

SIZES = 64
"""Elements of an operand that says how large a result is, at most."""

SIZED_BY_REALS = ("Range", "Resize", "Upsample")
"""Operators whose results' sizes follow from real numbers."""

PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
PRODUCTS_ALLOWED = 32
"""So many times as much work may products take, which are soon computed."""

COPIES = 4
"""So many times the memory of its results may a node take while it is evaluated."""


@dataclass
class Bounds:
    """Limits of evaluating a float model: ``watch.limits``, of each node.

    Each node is imported alone, with the operands that sizes may follow from, before it is
    evaluated: that gives the sizes of its results, and the work.  An operator that only ONNX knows
    has sizes by ONNX's rules.
    """

    watch: Watch = field(default_factory=Watch)
    _known: dict[tuple[object, ...], tuple[OnnxNode, Graph | None]] = field(default_factory=dict)

    def graph(self, node: OnnxNode, arguments: Sequence[Array | None], opset: int) -> Graph | None:
        """The graph of a node for arguments like these; None where its shapes depend on data, and
        are no larger than what it reads, or the importer does not know it.

        Raises CompileLimitError when the node would take too much, or all have by now.
        """
        self.watch.check(f"calibration, {node}")
        if any(isinstance(each, list) for each in arguments):
            return None  # A sequence: what is in it was bounded when it was made.
        fixed = [_is_fixed(node, each) for each in arguments]
        key = (id(node), *(_key(*each) for each in zip(arguments, fixed, strict=True)))
        if key not in self._known:
            proto = node_model(node, arguments, fixed, opset)
            self._known[key] = node, self._imported(node, proto)  # Its node keeps its id.
        return self._known[key][1]

    def _imported(self, node: OnnxNode, proto: onnx.ModelProto) -> Graph | None:
        limits = self.watch.limits
        try:
            graph = SourceModel(proto, Budget(Watch(limits))).to_graph().graph
        except NeedsValueError:
            return None
        except UnsupportedOperatorError:
            _require_memory(_inferred_bytes(proto), limits, node)
            return None
        _require(graph, limits, node)
        return graph


def node_model(
    node: OnnxNode, arguments: Sequence[Array | None], fixed: Sequence[bool], opset: int
) -> onnx.ModelProto:
    """A model of one node: what it reads are inputs, or constants where they are ``fixed``."""
    known = {
        name: (each, is_fixed)
        for name, each, is_fixed in zip(node.inputs, arguments, fixed, strict=True)
        if each is not None
    }
    graph = helper.make_graph(
        [to_node_proto(node)],
        "node",
        [_info(name, each) for name, (each, is_fixed) in known.items() if not is_fixed],
        [helper.make_empty_tensor_value_info(name) for name in node.outputs if name],
        [
            numpy_helper.from_array(np.asarray(each), name)
            for name, (each, is_fixed) in known.items()
            if is_fixed
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _info(name: str, value: Array) -> onnx.ValueInfoProto:
    """An input's element type and shape; nothing of a sequence."""
    if isinstance(value, list):
        return helper.make_empty_tensor_value_info(name)
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
    )


def to_node_proto(node: OnnxNode) -> onnx.NodeProto:
    """The node as ONNX."""
    attributes: dict[str, Any] = dict(node.attributes)
    return helper.make_node(node.kind, node.inputs, node.outputs, name=node.name, **attributes)


def _require(graph: Graph, limits: Limits, node: OnnxNode) -> None:
    work = made = 0
    for each in graph.nodes:
        results, given = ([graph.types[n] for n in names] for names in (each.outputs, each.inputs))
        work += evaluation_work(each.operator, results, given)
        made += sum(kind.elements * kind.dtype.numpy.itemsize for kind in results)
    allowed = limits.work * (PRODUCTS_ALLOWED if node.kind in PRODUCTS else 1)
    if work > allowed:
        raise CompileLimitError(
            f"calibration, {node}: it takes {work:,} operations; allowed are {allowed:,}; give the "
            "model smaller sizes, or allow more (QuantizeOptions.limits.work)"
        )
    _require_memory(made, limits, node)


def _require_memory(made: int, limits: Limits, node: OnnxNode) -> None:
    if limits.memory_bytes is not None and made * COPIES > limits.memory_bytes:
        raise CompileLimitError(
            f"calibration, {node}: it takes about {made * COPIES >> 20:,} MiB; allowed are "
            f"{limits.memory_bytes >> 20:,} MiB; allow more (--most-memory) or check the model's "
            "sizes"
        )


def _inferred_bytes(proto: onnx.ModelProto) -> int:
    """Bytes of results whose sizes ONNX's own rules know; 8 an element."""
    sizes = [
        [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in onnx.shape_inference.infer_shapes(proto, data_prop=True).graph.output
    ]
    return sum(8 * prod(each) for each in sizes if each)


def _is_fixed(node: OnnxNode, argument: Array | None) -> bool:
    """True for what a size may follow from."""
    if argument is None or argument.size > SIZES:
        return False
    return argument.dtype.kind in "iu" or node.kind in SIZED_BY_REALS


def _key(argument: Array | None, fixed: bool) -> tuple[object, ...]:
    if argument is None:
        return ()
    return (argument.shape, argument.dtype.str, argument.tobytes() if fixed else b"")
