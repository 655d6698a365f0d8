"""Checks of every model before its nodes are converted: opsets, names, single assignment.

Source: ONNX IR specification, "Names Within a Graph" and "Operator Sets".
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from unicodedata import category

import onnx

from ...errors import ModelError

__all__ = ["bodies", "require_wellformed"]

NEWEST = onnx.defs.onnx_opset_version()
LARGEST_OPSET = (1 << 31) - 1
"""The largest version of a domain other than ONNX's own."""


def require_wellformed(model: onnx.ModelProto) -> None:
    """Raise ModelError for an unknown opset, a name that is not text, and a name that is defined
    twice in one graph.
    """
    _require_opsets("the model", model.opset_import)
    _require_graph(model.graph)
    for function in model.functions:
        where = f"function {function.name!r}"
        _require_opsets(where, function.opset_import)
        _require_nodes(where, function.node, [*function.input])


def _require_opsets(where: str, imports: Iterable[onnx.OperatorSetIdProto]) -> None:
    found: dict[str, int] = {}
    for each in imports:
        domain = each.domain or "ai.onnx"
        most = NEWEST if domain == "ai.onnx" else LARGEST_OPSET
        if not 1 <= each.version <= most:
            raise ModelError(
                f"{where} is of opset {each.version} of {domain}; required 1 to {most}; export it "
                "for another opset"
            )
        if found.setdefault(domain, each.version) != each.version:
            raise ModelError(
                f"{where} is of two opsets of {domain}, {found[domain]} and {each.version}; "
                "required one"
            )


def _require_graph(graph: onnx.GraphProto) -> None:
    where = f"graph {graph.name!r}"
    inputs = [each.name for each in graph.input]
    constants = [each.name for each in graph.initializer]
    constants += [each.values.name for each in graph.sparse_initializer]
    for names in (inputs, constants):
        _require_single(where, names)
    _require_text([*(each.name for each in graph.output), *constants])
    _require_nodes(where, graph.node, list(dict.fromkeys([*inputs, *constants])))


def _require_nodes(where: str, nodes: Sequence[onnx.NodeProto], given: Sequence[str]) -> None:
    made = [name for node in nodes for name in node.output if name]
    _require_text(chain(given, made, *((n.op_type, n.domain, n.name, *n.input) for n in nodes)))
    _require_single(where, [*given, *made])
    for graph in bodies(nodes):
        _require_graph(graph)


def bodies(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    """Graphs that nodes hold, as those of If and Loop."""
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield attribute.g
            yield from attribute.graphs


def _require_single(where: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ModelError(f"{where} defines {name!r} twice; required different names")
        seen.add(name)


def _require_text(names: Iterable[str]) -> None:
    """Protobuf gives names that are no UTF-8 as bytes."""
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"name {name!r} is not UTF-8 text")
        if not name.isprintable() and any(category(each) == "Cc" for each in name):
            raise ModelError(f"name {name!r} has control characters; required none")
