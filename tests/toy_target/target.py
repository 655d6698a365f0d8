"""A target whose modules are NumPy source text: all that a target is, in two files."""

import base64
from collections.abc import Callable, Mapping
from string import ascii_letters
from typing import Any

import numpy as np

from dovetail.compiler.errors import ModelError, UnsupportedOperatorError
from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.front.source import Imported
from dovetail.compiler.graph.ir import Graph, Node
from dovetail.compiler.graph.operators.contractions import Contract, Convolution
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction
from dovetail.compiler.graph.operators.movement import Reshape, Transpose
from dovetail.compiler.graph.operators.quantization import DequantizeLinear, QuantizeLinear
from dovetail.compiler.graph.operators.rows import SoftmaxRows
from dovetail.compiler.graph.operators.windows import WindowFunction, WindowReduce
from dovetail.compiler.graph.partition import Piece, Plan
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.passes import Pipeline
from dovetail.compiler.pipeline.trace import Trace
from dovetail.runtime.parts import Part
from dovetail.runtime.tensors import TensorSignature

from .device import SourcePart

__all__ = ["NumpySource"]

PRELUDE = """
import base64
import numpy as np

def constant(text, dtype, shape):
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape)

def along(values, x, axis):
    shape = [-1 if n == axis else 1 for n in range(x.ndim)]
    return values.reshape(shape) if values.ndim else values

def quantize(x, scale, zero, axis):
    limits = np.iinfo(zero.dtype)
    steps = np.rint(x / along(scale, x, axis)) + along(zero, x, axis)
    return np.clip(steps, limits.min, limits.max).astype(zero.dtype)

def dequantize(x, scale, zero, axis):
    return ((x.astype(np.int32) - along(zero, x, axis)) * along(scale, x, axis)).astype(np.float32)

def windows(x, kernel, strides, pads):
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    found = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
    return found[:, :, :: strides[0], :: strides[1]]

def softmax(x):
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)
"""

SIGNS = {
    BinaryFunction.ADD: "{} + {}",
    BinaryFunction.SUB: "{} - {}",
    BinaryFunction.MUL: "{} * {}",
    BinaryFunction.DIV: "{} / {}",
    BinaryFunction.MAX: "np.maximum({}, {})",
    BinaryFunction.MIN: "np.minimum({}, {})",
}

Emit = Callable[[Any, list[str]], str | None]
"""The expression of an operator on named operands; None for a form that there is none for."""


def _binary(operator: Binary, names: list[str]) -> str | None:
    form = SIGNS.get(operator.function)
    return form.format(*names) if form else None


def _contract(operator: Contract, names: list[str]) -> str | None:
    axes = (*operator.operands, operator.output)
    if any(len(axis) != 1 or axis[0][1] != 1 for each in axes for axis in each):
        return None
    *given, result = ("".join(ascii_letters[axis[0][0]] for axis in each) for each in axes)
    return f"np.einsum('{','.join(given)}->{result}', {', '.join(names)})"


def _convolution(operator: Convolution, names: list[str]) -> str | None:
    plain = {*operator.dilations, *operator.expansions, operator.groups} == {1}
    if not plain or len(operator.strides) != 2:
        return None
    x, w = names
    taken = f"windows({x}, {w}.shape[2:], {operator.strides}, {operator.pads})"
    return f"np.einsum('nchwij,ocij->nohw', {taken}, {w}, optimize=True)"


def _windows(operator: WindowReduce, names: list[str]) -> str | None:
    plain = operator.function is WindowFunction.ADD and operator.axes == (2, 3)
    if not plain or set(operator.dilations) != {1}:
        return None
    taken = f"windows({names[0]}, {operator.kernel}, {operator.strides}, {operator.pads})"
    return f"{taken}.sum((4, 5))"


EMITTERS: dict[type, Emit] = {
    Binary: _binary,
    Contract: _contract,
    Convolution: _convolution,
    DequantizeLinear: lambda o, names: f"dequantize({', '.join(names)}, {o.axis})",
    QuantizeLinear: lambda o, names: f"quantize({', '.join(names)}, {o.axis})",
    Reshape: lambda o, names: f"{names[0]}.reshape({o.shape})",
    SoftmaxRows: lambda o, names: None if o.logarithm else f"softmax({names[0]})",
    Transpose: lambda o, names: f"{names[0]}.transpose({o.permutation})",
    WindowReduce: _windows,
}


class NumpySource:
    """See ``compiler/targets/target.py``."""

    name = "numpy"

    def load(self, model: SourceModel, dims: Mapping[str, int]) -> Imported:
        return model.bind(dims).to_graph(batch=1)

    def plan(self, model: Imported) -> Plan:
        return Plan((Piece(model.graph),), ())

    def compile(
        self, piece: Piece, kinds: Mapping[str, str], options: CompileOptions, trace: Trace
    ) -> Part:
        graph = Pipeline(options.passes, trace.observers).run(piece.graph)
        source = _source(graph)
        trace.step("source", lambda: source)
        inputs, outputs = (
            tuple(
                TensorSignature(name, graph.types[name].shape, str(graph.types[name].dtype))
                for name in names
            )
            for names in (graph.inputs, graph.outputs)
        )
        return SourcePart(inputs, outputs, source)

    def compile_open(
        self, model: SourceModel, dims: Mapping[str, int], options: CompileOptions
    ) -> Part:
        raise ModelError("the source is for fixed sizes")


def _source(graph: Graph) -> str:
    """A function ``run`` of the inputs, in order, that returns the outputs."""
    names: dict[str, str] = {}
    lines = [PRELUDE]
    for name, array in graph.constants.items():
        names[name] = f"c{len(names)}"
        text = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
        lines.append(f"{names[name]} = constant('{text}', '{array.dtype}', {array.shape})")
    for name in graph.inputs:
        names[name] = f"x{len(names)}"
    lines.append(f"\ndef run({', '.join(names[name] for name in graph.inputs)}):")
    for node in graph.nodes:
        names[node.output] = f"v{len(names)}"
        lines.append(f"    {names[node.output]} = {_expression(node, names)}")
    lines.append(f"    return [{', '.join(names[name] for name in graph.outputs)}]")
    return "\n".join(lines) + "\n"


def _expression(node: Node, names: Mapping[str, str]) -> str:
    emit = EMITTERS.get(type(node.operator))
    text = emit(node.operator, [names[name] for name in node.inputs]) if emit else None
    if text is None:
        raise UnsupportedOperatorError(f"node {node.origin!r}: numpy has no {node.operator}")
    return text
