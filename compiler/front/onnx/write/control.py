"""Loops, as ONNX's Loop whose body reads nothing from around it.

    Repeat(body)(states, sources, rest)  ->  Loop(states, number, sources, rest)

Sources and the rest are carried along unchanged, so that what rewrites the model around a loop need
not look into its body.
"""

import numpy as np
import onnx

from ....dtypes import DType
from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.elementwise import Binary
from ....graph.operators.functions import BinaryFunction as B
from ....graph.operators.indexing import Gather
from ....graph.operators.movement import Reshape
from ....graph.operators.repetition import Repeat
from ....graph.types import TensorType
from .writing import Names, Writing

__all__ = ["write_repeat"]


def write_repeat(w: Writing, operator: Repeat) -> tuple[str, ...]:
    """Loop, of as many iterations as there are, or as its condition says."""
    inputs, going = list(w.node.inputs), ""
    if operator.guarded:
        going = w.reshaped(inputs.pop(0), ())
    if operator.conditional:
        inputs.insert(operator.states, w.constant(np.asarray(0, np.int64)))
    body = w.body(_body(operator, w.node.origin))
    _rename(body, w.names.fresh(f"{w.node.output}/body"))
    most, backward = np.asarray(operator.count, np.int64), operator.collected_backward
    found = w.emit_many(len(inputs) + len(backward), "Loop", most, going, *inputs, body=body)
    turned = (
        w.emit("Gather", each, np.arange(operator.count)[::-1], axis=0) if back else each
        for each, back in zip(found[len(inputs) :], backward, strict=True)
    )
    return (*found[: operator.states + operator.conditional], *turned)


def _body(operator: Repeat, origin: str) -> Graph:
    """The body as ONNX has it.

    Inputs: the iteration's number, whether it goes on, and what is carried: states, under a
    condition the number of iterations, sources, the rest.
    Outputs: whether it goes on, what is carried, what is collected.
    """
    body, outputs = operator.body, list(operator.body.outputs)
    number, *given = body.inputs
    first, last = operator.states, operator.states + len(operator.backward)
    builder, names = GraphBuilder.over(body), Names(set(body.types))

    def known(value: int) -> str:
        return builder.constant("number", np.asarray(value, np.int64))

    builder.inputs = [number]
    going = builder.input(names.fresh("going"), TensorType((), DType.BOOL))
    builder.inputs += given[:first]
    counted = []
    if operator.conditional:
        before = builder.input(names.fresh("done"), TensorType((), DType.INT64))
        counted = [builder.node(Binary(B.ADD), (before, known(1)), "counted", origin)]
    sources = []
    for name, backward in zip(given[first:last], operator.backward, strict=True):
        kind = body.types[name]
        whole = TensorType((operator.count, *kind.shape), kind.dtype)
        sources.append(builder.input(names.fresh("source"), whole))
        place = number
        if backward:
            place = builder.node(Binary(B.SUB), (known(operator.count - 1), number), "at", origin)
        builder.nodes.append(Node(Gather(0), (sources[-1], place), name, origin))
    builder.inputs += given[last:]
    builder.nodes += body.nodes
    if operator.conditional:
        going = builder.node(Reshape(()), (outputs.pop(0),), "again", origin)
    found = (going, *outputs[:first], *counted, *sources, *given[last:], *outputs[first:])
    return builder.build(
        tuple(
            builder.node(Reshape(builder.types[name].shape), (name,), "carried", origin)
            for name in found
        )
    )


def _rename(graph: onnx.GraphProto, prefix: str) -> None:
    """Put ``prefix`` before all names: those of a body must not be ones from around it."""

    def changed(name: str) -> str:
        return f"{prefix}/{name}" if name else name

    for each in (*graph.input, *graph.output, *graph.initializer):
        each.name = changed(each.name)
    for node in graph.node:
        node.input[:] = map(changed, node.input)
        node.output[:] = map(changed, node.output)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g, prefix)
