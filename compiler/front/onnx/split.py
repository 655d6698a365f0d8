"""A model in two: what can be imported, and the nodes whose shapes depend on data, and after."""

from collections.abc import Iterator, Mapping, Sequence

import onnx
from onnx import helper

from ...graph.types import TensorType

__all__ = ["early_model", "late_model"]


def early_model(model: onnx.ModelProto, roots: set[str]) -> onnx.ModelProto:
    """The model without the nodes whose first outputs are ``roots``, and without what reads their
    results.  What those read of the others are outputs too, except for the model's own inputs.
    """
    late, early = _apart(model, roots)
    made = {name for node in late for name in node.output}
    kept = [value for value in model.graph.output if value.name not in made]
    given = {value.name for value in model.graph.input}
    between = (name for name in _between(model, late, early) if name not in given)
    names = dict.fromkeys([*(value.name for value in kept), *between])
    known = {value.name: value for value in (*model.graph.value_info, *kept)}
    outputs = [known.get(name) or onnx.ValueInfoProto(name=name) for name in names]
    return _model(model, early, list(model.graph.input), outputs)


def late_model(
    model: onnx.ModelProto, roots: set[str], types: Mapping[str, TensorType]
) -> onnx.ModelProto:
    """The other nodes, with constants of their own; ``types``: of what they read."""
    late, early = _apart(model, roots)
    constants = _constant_nodes(model, early)
    made = {name for node in late for name in node.output}
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(types[name].dtype.numpy), types[name].shape
        )
        for name in _between(model, late, early)
    ]
    outputs = [value for value in model.graph.output if value.name in made]
    return _model(model, [*constants, *late], inputs, outputs)


def _model(
    model: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
) -> onnx.ModelProto:
    stored = list(model.graph.initializer)
    graph = helper.make_graph(nodes, str(model.graph.name), inputs, outputs, stored)
    graph.sparse_initializer.extend(model.graph.sparse_initializer)
    found = helper.make_model(graph, opset_imports=model.opset_import)
    found.ir_version = model.ir_version
    found.functions.extend(model.functions)
    return found


def _apart(
    model: onnx.ModelProto, roots: set[str]
) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
    """Nodes that are late, and the others, each in the model's order."""
    late, early, made = [], [], set[str]()
    for node in model.graph.node:
        if roots.intersection(node.output) or made.intersection(_reads(node)):
            late.append(node)
            made.update(name for name in node.output if name)
        else:
            early.append(node)
    return late, early


def _between(
    model: onnx.ModelProto, late: Sequence[onnx.NodeProto], early: Sequence[onnx.NodeProto]
) -> list[str]:
    """Tensors that late nodes read of the others and of the model's inputs, constants aside."""
    constant = {each.name for each in model.graph.initializer}
    constant |= {each.values.name for each in model.graph.sparse_initializer}
    constant |= {name for node in _constant_nodes(model, early) for name in node.output}
    made = {name for node in late for name in node.output} | constant
    return [
        name for name in dict.fromkeys(n for node in late for n in _reads(node)) if name not in made
    ]


def _constant_nodes(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]
) -> list[onnx.NodeProto]:
    """Nodes that depend on no input of the model."""
    known = {each.name for each in model.graph.initializer}
    found = []
    for node in nodes:
        if known.issuperset(_reads(node)):
            known.update(node.output)
            found.append(node)
    return found


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """Tensors that a node and its bodies read."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for body in (attribute.g,) if attribute.HasField("g") else attribute.graphs:
            own = {name for inner in body.node for name in inner.output}
            own |= {value.name for value in body.input} | {each.name for each in body.initializer}
            for inner in body.node:
                yield from (name for name in _reads(inner) if name not in own)
            yield from (value.name for value in body.output if value.name not in own)
