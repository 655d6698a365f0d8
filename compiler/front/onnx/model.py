"""From an ONNX model and the shapes of its inputs to a graph.

Source: ONNX IR and operator specifications.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import numpy_helper

from ...errors import ModelError, UnsupportedOperatorError
from ...graph.ir import Array, GraphBuilder
from ...pipeline.limits import Budget
from ..faults import faults_of
from ..source import NeedsValueError
from .context import ImportContext, Tensor, Value
from .element_types import element_type
from .functions import bind_attributes, function_of
from .narrow import NARROW_TYPES
from .node import OnnxNode
from .order import in_order
from .outside import converter_outside
from .schemas import require_schema
from .table import CONVERTERS
from .wellformed import require_wellformed

__all__ = ["ImportRecord", "import_model", "read_constant"]


@dataclass(slots=True)
class ImportRecord:
    """Names that the model gives the tensors of the graph, and the operators of its nodes by
    name.
    """

    tensors: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)


def import_model(
    model: onnx.ModelProto,
    inputs: Mapping[str, Value],
    builder: GraphBuilder,
    resolve: Callable[[str], Array] | None = None,
    record: ImportRecord | None = None,
    budget: Budget | None = None,
) -> tuple[tuple[str, Value], ...]:
    """Add the model's nodes to ``builder``; its outputs by name, in the model's order.

    inputs: the model's inputs as tensors of ``builder``, sequences or optionals of them.
    resolve: computes the value of a tensor that a shape depends on.  record: to be filled.
    budget: what the import may take.
    Raises ModelError for a malformed model, UnsupportedOperatorError for an operator or a type
    that there is no code for, NeedsValueError when a value is needed and ``resolve`` is None; each
    names the node.  Raises CompileLimitError when it takes more than ``budget`` has.
    """
    require_wellformed(model)
    context = ImportContext(builder, resolve=resolve, budget=budget or Budget())
    context.budget.grant(model.ByteSize())
    opsets = {each.domain or "ai.onnx": each.version for each in model.opset_import}
    functions = {(each.domain, each.name): each for each in model.functions}
    walker = _Walker(context, opsets, functions, [])
    context.body, context.nested = walker.body, walker.nested
    required = [each.name for each in model.graph.input]
    constants = {each.name for each in model.graph.initializer}
    constants |= {each.values.name for each in model.graph.sparse_initializer}
    missing = [name for name in required if name not in inputs and name not in constants]
    if missing:
        raise ModelError(f"input {missing[0]!r} is not given; required are {required}")
    walker.scopes.append(dict(inputs))
    results = walker.graph(model.graph)
    if record is not None:
        for name, value in walker.scopes[0].items():
            if isinstance(value, Tensor):
                record.tensors.setdefault(value.name, name)
        for position, proto in enumerate(in_order(model.graph.node)):
            record.kinds[_node(proto, position).name] = proto.op_type
    names = [each.name for each in model.graph.output]
    return tuple(zip(names, results, strict=True))


@dataclass(slots=True)
class _Walker:
    """Converts nodes in order; ``scopes`` maps names to values, the innermost scope last."""

    context: ImportContext
    opsets: dict[str, int]
    functions: dict[tuple[str, str], onnx.FunctionProto]
    scopes: list[dict[str, Value]]
    depth: int = field(default=0)
    outer: "_Walker | None" = field(default=None)
    """The walker of what is around a body that becomes a graph of its own."""

    def body(self, graph: onnx.GraphProto, arguments: tuple[Value, ...]) -> tuple[Value, ...]:
        """The results of a body; its inputs are ``arguments``."""
        self.scopes.append(self._bound(graph, arguments))
        origin, opset = self.context.origin, self.context.opset
        results = self.graph(graph)
        self.context.origin, self.context.opset = origin, opset
        self.scopes.pop()
        return results

    def nested(
        self, context: ImportContext, graph: onnx.GraphProto, arguments: tuple[Value, ...]
    ) -> tuple[Value, ...]:
        """The results of a body that becomes a graph of its own, that of ``context``."""
        scopes = [self._bound(graph, arguments)]
        walker = _Walker(context, self.opsets, self.functions, scopes, self.depth, self)
        context.body, context.nested = walker.body, walker.nested
        return walker.graph(graph)

    def _bound(self, graph: onnx.GraphProto, arguments: tuple[Value, ...]) -> dict[str, Value]:
        names = [each.name for each in graph.input]
        if len(names) != len(arguments):
            raise ModelError(
                f"node {self.context.origin!r}: its body has {len(names)} inputs; "
                f"it is given {len(arguments)}"
            )
        return dict(zip(names, arguments, strict=True))

    def graph(self, graph: onnx.GraphProto) -> tuple[Value, ...]:
        """Convert every node in the innermost scope; the values of the graph's outputs."""
        scope = self.scopes[-1]
        for tensor in graph.initializer:
            if tensor.name not in scope:
                scope[tensor.name] = self.context.constant(read_constant(tensor))
        for sparse in graph.sparse_initializer:
            self.context.require_room(*sparse.dims)
            scope[sparse.values.name] = self.context.constant(_dense(sparse))
        for position, proto in enumerate(in_order(graph.node)):
            try:
                self.node(proto, position)
            except NeedsValueError as error:
                error.output = next(filter(None, proto.output), "")
                raise
        return tuple(self.lookup(each.name, f"output {each.name!r}") for each in graph.output)

    def lookup(self, name: str, reader: str) -> Value:
        """The value that ``name`` stands for."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if self.outer is not None:
            return self.context.capture(self.outer.lookup(name, reader))
        raise ModelError(f"{reader} reads {name!r}, which no node before it computes")

    def node(self, proto: onnx.NodeProto, position: int) -> None:
        """Convert one node; its outputs become names of the innermost scope."""
        node = _node(proto, position)
        context = self.context
        outer = context.origin, context.opset
        context.origin = node.name
        context.budget.step(str(node))
        domain = proto.domain or "ai.onnx"
        context.opset = self.opsets.get(domain, 0)
        inputs = tuple(self.lookup(name, str(node)) if name else None for name in proto.input)
        with faults_of(node, node.name):
            outputs = self.convert(proto, node, inputs)
        for name, value in zip(proto.output, outputs, strict=False):
            if name and value is not None:
                self.scopes[-1][name] = value
        context.origin, context.opset = outer

    def convert(
        self, proto: onnx.NodeProto, node: OnnxNode, inputs: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        """The node's outputs: by its converter, by the function that defines it, or by another
        package's converter.
        """
        local = self.functions.get((proto.domain, proto.op_type))
        if local is not None:
            return self.call(local, proto, inputs)
        require_schema(node, self.context.opset, inputs)
        name = node.kind if proto.domain in ("", "ai.onnx") else f"{proto.domain}.{node.kind}"
        converter = CONVERTERS.get(name)
        if converter is not None:
            return converter(self.context, node, inputs)
        function = None
        if all(each is None or isinstance(each, Tensor) for each in inputs):
            types = [each.type if isinstance(each, Tensor) else None for each in inputs]
            function = function_of(proto, self.context.opset, types)
        if function is not None:
            return self.call(function, proto, inputs)
        outside = converter_outside(name)
        if outside is None:
            raise UnsupportedOperatorError(f"{node}: operator {name} is not supported")
        return outside(self.context, node, inputs)

    def call(
        self, function: onnx.FunctionProto, proto: onnx.NodeProto, inputs: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        """The outputs of a function's body."""
        arguments = {
            name: value
            for name, value in zip(function.input, inputs, strict=False)
            if value is not None
        }
        if self.depth > 50:
            raise ModelError(f"node {self.context.origin!r}: {function.name!r} calls itself")
        opsets = {each.domain or "ai.onnx": each.version for each in function.opset_import}
        inner = _Walker(
            self.context, {**self.opsets, **opsets}, self.functions, [arguments], self.depth + 1
        )
        outer = self.context.body, self.context.nested
        self.context.body, self.context.nested = inner.body, inner.nested
        absent = set(function.input) - set(arguments)
        for position, each in enumerate(in_order(bind_attributes(function, proto))):
            for place, name in enumerate(each.input):
                if name in absent:
                    each.input[place] = ""
            inner.node(each, position)
        self.context.body, self.context.nested = outer
        return tuple(arguments.get(name) for name in function.output)


def _node(proto: onnx.NodeProto, position: int) -> OnnxNode:
    attributes: Mapping[str, object] = {
        each.name: onnx.helper.get_attribute_value(each) for each in proto.attribute
    }
    name = proto.name or next((each for each in proto.output if each), f"#{position}")
    inputs, outputs = tuple(proto.input), tuple(proto.output)
    return OnnxNode(proto.op_type, name, inputs, outputs, attributes, proto.domain)


def read_constant(tensor: onnx.TensorProto) -> Array:
    """The value of a constant.

    Raises ModelError for one that cannot be read, UnsupportedOperatorError for an element type that
    there is no code for.
    """
    if tensor.data_type not in NARROW_TYPES:
        element_type(tensor.data_type)
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise ModelError(f"constant {tensor.name!r} cannot be read: {error}") from None


def _dense(sparse: onnx.SparseTensorProto) -> Array:
    values, indices = read_constant(sparse.values), read_constant(sparse.indices)
    result = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        result.reshape(-1)[indices] = values
    else:
        result[tuple(indices.T)] = values
    return result
