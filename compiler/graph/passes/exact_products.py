"""Products of quantised tensors in integers, where they are quantised at once.

    q(convolution(dq(x), dq(w)) + dq(bias))  ->  saturate(rint(f32(sum) * scale) + zero),
    sum = convolution(int32(x) - zx, int32(w) - zw) + bias, scale = sx * sw / s

The same goes for matrix products.  The sum is exact, like that of QLinearConv and QLinearMatMul.
Each QuantizeLinear is visited once, and rewritten ones are gone, so the pass ends.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..formulas import Term, saturated
from ..ir import Graph, Node
from ..operators.contractions import Contract, Convolution
from ..operators.elementwise import Binary, BinaryFunction
from ..operators.movement import Reshape
from ..operators.quantization import DequantizeLinear, QuantizeLinear
from ..rebuild import Terms, with_formulas
from .expand_quantization import aligned, is_zero

__all__ = ["ExactProducts"]

BYTES = (DType.INT8, DType.UINT8)


@frozen
class _Operand:
    """A dequantised tensor, reshaped after that where ``shape`` is given."""

    node: Node
    shape: tuple[int, ...] | None


@frozen
class _Product:
    """Everything that the operand of a QuantizeLinear is computed from, without its dtype."""

    node: Node
    operands: tuple[_Operand, _Operand]
    bias: _Operand | None


@frozen
class ExactProducts:
    """See the module's docstring."""

    name: str = "exact_products"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        matcher = _Matcher(graph)
        products = {
            node.output: found
            for node in graph.nodes
            if isinstance(node.operator, QuantizeLinear) and (found := matcher.product(node))
        }

        def formula(node: Node, product: _Product, term: Terms) -> Term:
            term(node.inputs[0]).context.origin = product.node.origin
            total = _total(product, term)
            scale = _scale(product, graph, term)
            _, y_scale, zero = (term(name) for name in node.inputs)
            factor = scale / y_scale.reshape()
            steps = (total.cast(DType.FLOAT32) * factor).rint()
            offset = zero.reshape().cast(DType.FLOAT32)
            return saturated(steps + offset, zero.dtype)

        return with_formulas(graph, products, formula)


class _Matcher:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readers: dict[str, int] = dict.fromkeys(graph.outputs, 2)
        for node in graph.nodes:
            for name in node.inputs:
                self.readers[name] = self.readers.get(name, 0) + 1

    def product(self, node: Node) -> _Product | None:
        """The product of quantised bytes that the node quantises; None where another reads it."""
        single = all(self.graph.types[name].elements == 1 for name in node.inputs[1:])
        if not single or self.graph.types[node.output].dtype not in BYTES:
            return None
        before = self.only(node.inputs[0])
        bias = None
        if before and isinstance(before.operator, Binary):
            if before.operator.function is not BinaryFunction.ADD:
                return None
            bias = self.operand(before.inputs[1])
            before = self.only(before.inputs[0])
            if bias is None:
                return None
        if not before or not isinstance(before.operator, Convolution | Contract):
            return None
        if before.operator.dtype != DType.FLOAT32 or len(before.inputs) != 2:
            return None
        operands = self.operand(before.inputs[0]), self.operand(before.inputs[1])
        if operands[0] is None or operands[1] is None:
            return None
        found = _Product(before, (operands[0], operands[1]), bias)
        kinds = [self.graph.types[each.node.inputs[0]].dtype for each in found.operands]
        fits = set(kinds) <= set(BYTES) and _axes(found, self.graph) is not None
        return found if fits and self.bias_fits(found) else None

    def only(self, name: str) -> Node | None:
        return self.graph.producer(name) if self.readers.get(name) == 1 else None

    def operand(self, name: str) -> _Operand | None:
        node, shape = self.graph.producer(name), None
        if node and isinstance(node.operator, Reshape):
            shape, node = node.operator.shape, self.graph.producer(node.inputs[0])
        if node is None or not isinstance(node.operator, DequantizeLinear):
            return None
        return _Operand(node, shape)

    def bias_fits(self, product: _Product) -> bool:
        """True if the bias is int32 in units of the sum."""
        if product.bias is None:
            return True
        bias = product.bias.node
        scales = [bias.inputs[1], *(each.node.inputs[1] for each in product.operands)]
        if self.graph.types[bias.inputs[0]].dtype != DType.INT32:
            return False
        if not _is_zero(self.graph.constants, bias.inputs[2]):
            return False
        if all(name in self.graph.constants for name in scales):
            found, a, b = (self.graph.constants[name].reshape(-1) for name in scales)
            return found.size in (1, (a * b).size) and bool(np.array_equal(found, a * b))
        made = self.graph.producer(scales[0])
        if made is None or not isinstance(made.operator, Binary):
            return False
        return made.operator.function is BinaryFunction.MUL and {
            self.source(name) for name in made.inputs
        } == {self.source(name) for name in scales[1:]}

    def source(self, name: str) -> str:
        """The tensor that ``name`` is, perhaps in another shape."""
        node = self.graph.producer(name)
        return self.source(node.inputs[0]) if node and isinstance(node.operator, Reshape) else name


def _is_zero(constants: Mapping[str, np.ndarray], name: str) -> bool:  # type: ignore[type-arg]
    return name in constants and not constants[name].any()


def _axes(product: _Product, graph: Graph) -> tuple[int | None, ...] | None:
    """The dimension of the result that each operand's list of scales belongs to, None for one
    scale; None when one belongs to none.
    """
    operator = product.node.operator
    found: list[int | None] = []
    for place, operand in enumerate(product.operands):
        dequantize = operand.node.operator
        assert isinstance(dequantize, DequantizeLinear)
        if all(graph.types[name].elements == 1 for name in operand.node.inputs[1:]):
            found.append(None)
            continue
        if operand.shape is not None:
            return None
        if isinstance(operator, Convolution):
            if place != 1 or dequantize.axis != 0:
                return None
            found.append(1)
            continue
        assert isinstance(operator, Contract)
        axis = operator.operands[place][dequantize.axis]
        if axis not in operator.output:
            return None
        found.append(operator.output.index(axis))
    return tuple(found)


def _total(product: _Product, term: Terms) -> Term:
    """The sum of products in int32, and the bias."""
    operands = []
    for each in product.operands:
        operator = each.node.operator
        assert isinstance(operator, DequantizeLinear)
        x, zero = term(each.node.inputs[0]), term(each.node.inputs[2])
        steps = x.cast(DType.INT32)
        if not is_zero(zero):
            steps = steps - aligned(zero.cast(DType.INT32), x, operator.axis)
        operands.append(steps if each.shape is None else steps.reshape(*each.shape))
    operator = product.node.operator
    assert isinstance(operator, Convolution | Contract)
    exact = replace(operator, dtype=DType.INT32)
    context = operands[0].context
    total = Term(context, context.emit(exact, *(each.tensor for each in operands)))
    if product.bias is not None:
        bias = term(product.bias.node.inputs[0])
        total = total + (bias if product.bias.shape is None else bias.reshape(*product.bias.shape))
    return total


def _scale(product: _Product, graph: Graph, term: Terms) -> Term:
    """The product of the operands' scales, so that it broadcasts to the result."""
    rank = graph.types[product.node.output].rank
    axes = _axes(product, graph)
    assert axes is not None
    factors = []
    for operand, axis in zip(product.operands, axes, strict=True):
        scale = term(operand.node.inputs[1])
        shape = () if scale.tensor.type.elements == 1 else [1] * rank
        if shape and axis is not None:
            shape[axis] = scale.tensor.type.elements
        factors.append(scale.reshape(*shape))
    return factors[0] * factors[1]
