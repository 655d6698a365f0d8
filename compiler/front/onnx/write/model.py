"""A graph as an ONNX model."""

from collections.abc import Sequence
from dataclasses import replace

import onnx
from onnx import helper, numpy_helper

from ....errors import ModelError, UnsupportedOperatorError
from ....graph.ir import Array, Graph
from ....graph.passes.channels_first import ChannelsFirst
from ...source import Source
from ..source import SourceModel
from .composites import composite
from .table import WRITERS
from .writing import NUMBERS, Names, Writing

__all__ = ["onnx_model", "write_model"]

OPSET, IR_VERSION = 21, 10
"""The first opset with quantised tensors of 16 bits."""
LIMIT_BYTES = (1 << 31) - (1 << 20)
"""Largest size of constants in a file of protocol buffers, with a margin for everything else."""
PRODUCTS = ("Conv", "ConvTranspose", "Einsum", "MatMul")
MOVING = ("Cast", "Gather", "Identity", "Pad", "Reshape", "Slice", "Transpose")


def onnx_model(source: Source, batch: int | None = None) -> onnx.ModelProto:
    """A model of any front end, as ONNX; ONNX models are returned unchanged.

    batch: the size of an open first dimension of inputs.
    Raises what ``Source.to_graph`` and ``write_model`` raise.
    """
    if isinstance(source, SourceModel):
        return source.proto
    graph = source.to_graph(batch).graph
    try:
        return write_model(graph, str(getattr(source, "name", "") or "model"))
    except UnsupportedOperatorError as error:
        if not source.quantizes:
            raise
        raise UnsupportedOperatorError(
            f"{error}: the model is quantised in a way that ONNX cannot express; dovetail compile "
            "takes it as it is"
        ) from None


def write_model(graph: Graph, name: str = "model") -> onnx.ModelProto:
    """The graph as ONNX: inputs and outputs have their names, images their channels first.

    Raises UnsupportedOperatorError for an operator that ONNX does not have, with the node's name,
    ModelError for constants of more than 2 GiB.
    """
    return helper.make_model(
        _graph(graph, name),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )


def _graph(graph: Graph, name: str = "body") -> onnx.GraphProto:
    graph = ChannelsFirst().run(graph)
    nodes, constants = _nodes(graph)
    size = sum(each.nbytes for each in constants.values())
    if size > LIMIT_BYTES:
        raise ModelError(f"constants of {size:,} bytes; an ONNX file holds at most {LIMIT_BYTES:,}")
    inputs, outputs = (_values(graph, names) for names in (graph.inputs, graph.outputs))
    initializers = [numpy_helper.from_array(each, own) for own, each in constants.items()]
    return helper.make_graph(nodes, name, inputs, outputs, initializers)


def _nodes(graph: Graph) -> tuple[list[onnx.NodeProto], dict[str, Array]]:
    """ONNX's nodes in order, and the constants that they read; what nothing reads is left out."""
    names, made = Names(set(graph.types)), dict[str, Array]()
    needed, groups = set(graph.outputs), list[tuple[str, list[onnx.NodeProto]]]()
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue
        writing = Writing(graph, node, names, made, _graph)
        found = composite(writing)
        if found is None:
            writer = WRITERS.get(type(node.operator))
            if writer is None:
                kind = type(node.operator).__name__
                raise UnsupportedOperatorError(
                    f"node {node.origin!r}: {kind} cannot be written as ONNX; dovetail compile "
                    "takes the model as it is"
                )
            writing = replace(writing, read=set(), nodes=[])
            writing.close(writer(writing, node.operator))
        else:
            writing.close(found)
        needed |= writing.read
        groups.append((node.origin, writing.nodes))
    groups.reverse()
    _name(groups)
    nodes = [each for _, own in groups for each in own]
    read = {name for each in nodes for name in each.input}
    known = {**graph.constants, **made}
    return nodes, {name: known[name] for name in known if name in read}


def _name(groups: Sequence[tuple[str, list[onnx.NodeProto]]]) -> None:
    """Call each of ONNX's nodes by the model's node that it comes from.

    The last product of it has the name alone, or else the last that does more than move elements;
    the others have their kind too.
    """
    plain: dict[str, onnx.NodeProto] = {}
    for origin, nodes in groups:
        for node in nodes:
            if origin not in plain or _weight(node) >= _weight(plain[origin]):
                plain[origin] = node
    names = Names(set(plain))
    for origin, nodes in groups:
        for node in nodes:
            own = plain[origin] is node
            node.name = origin if own else names.fresh(f"{origin}:{node.op_type}")


def _weight(node: onnx.NodeProto) -> int:
    return 2 if node.op_type in PRODUCTS else int(node.op_type not in MOVING)


def _values(graph: Graph, names: Sequence[str]) -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info(name, NUMBERS[kind.dtype], kind.shape)
        for name, kind in ((name, graph.types[name]) for name in names)
    ]
