"""Quantising, dequantising and transposed convolutions as operators that have loops.

    QuantizeLinear(x, s, z)      ->  saturate(rint(x / s) + z)
    DequantizeLinear(x, s, z)    ->  float32(int32(x) - int32(z)) * s
    TransposedConvolution(x, w)  ->  Convolution(x, w'), with strides 1

Each of them becomes nodes of other kinds, so the pass ends.
"""

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..formulas import Term, saturated
from ..ir import Graph, Node
from ..operators.contractions import Convolution
from ..operators.protocol import TensorOperator
from ..operators.quantization import DequantizeLinear, QuantizeLinear, aligned_shape
from ..operators.transposed import TransposedConvolution
from ..rebuild import Terms, with_formulas

__all__ = ["ExpandQuantization", "aligned", "is_zero"]

EXPANDED = (QuantizeLinear, DequantizeLinear, TransposedConvolution)


@frozen
class ExpandQuantization:
    """See the module's docstring."""

    name: str = "expand_quantization"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when it has none of them."""
        found = {
            node.output: node.operator
            for node in graph.nodes
            if isinstance(node.operator, EXPANDED)
        }
        return with_formulas(graph, found, _expanded)


def _expanded(node: Node, operator: TensorOperator, term: Terms) -> Term:
    operands = [term(name) for name in node.inputs]
    match operator:
        case QuantizeLinear(axis=axis):
            x, scale, zero = operands
            steps = (x / aligned(scale, x, axis)).rint()
            if not is_zero(zero):
                steps = steps + aligned(zero, x, axis).cast(DType.FLOAT32)
            return saturated(steps, zero.dtype)
        case DequantizeLinear(axis=axis):
            x, scale, zero = operands
            steps = x.cast(DType.INT32)
            if not is_zero(zero):
                steps = steps - aligned(zero, x, axis).cast(DType.INT32)
            return steps.cast(DType.FLOAT32) * aligned(scale, x, axis)
        case TransposedConvolution():
            x, w = operands
            spread = set(operator.dilations) != {1} or set(operator.strides) == {1}
            return _spread(operator, x, w) if spread else _interleaved(operator, x, w)
        case other:
            raise AssertionError(other)


def aligned(parameter: Term, x: Term, axis: int) -> Term:
    """A scale or zero point so that it broadcasts to ``x``."""
    return parameter.reshape(*aligned_shape(parameter.shape, x.shape, axis))


def is_zero(value: Term) -> bool:
    """True if all elements are known to be 0."""
    return value.context.known(value.tensor) and not value.context.value(value.tensor).any()


def _spread(operator: TransposedConvolution, x: Term, w: Term) -> Term:
    """The convolution of the input, spread by the strides, with the flipped weights."""
    weights = _outputs_first(w.flip(*range(2, w.rank)), operator.groups)
    convolution = operator.as_convolution(w.shape[2:])
    return Term(x.context, x.context.emit(convolution, x.tensor, weights.tensor))


def _outputs_first(w: Term, groups: int) -> Term:
    """Weights [C, O / groups, ...] as [O, C / groups, ...]."""
    outputs, kernel = w.shape[1], w.shape[2:]
    w = w.reshape(groups, w.shape[0] // groups, outputs, *kernel)
    w = w.transpose(0, 2, 1, *range(3, 3 + len(kernel)))
    return w.reshape(groups * outputs, w.shape[2], *kernel)


def _interleaved(operator: TransposedConvolution, x: Term, w: Term) -> Term:
    """A convolution without strides that computes, as channels, ``stride`` neighbours each.

    Result element ``q * stride + p`` is ``sum(x[q - t] * w[t * stride + p])`` over the taps t.
    """
    strides, groups = operator.strides, operator.groups
    rank, (channels, outputs, *kernel) = len(strides), w.shape
    taps = [-(-k // s) for k, s in zip(kernel, strides, strict=True)]
    filled = [t * s - k for t, s, k in zip(taps, strides, kernel, strict=True)]
    w = w.pad([(0, 0), (0, 0), *((0, more) for more in filled)])
    w = w.reshape(
        channels, outputs, *(n for t, s in zip(taps, strides, strict=True) for n in (t, s))
    )
    phases, places = range(3, 3 + 2 * rank, 2), range(2, 2 + 2 * rank, 2)
    w = w.flip(*places).transpose(0, 1, *phases, *places)
    count = outputs * int(np.prod(strides))
    weights = _outputs_first(w.reshape(channels, count, *taps), groups)
    around = tuple((t - 1, t - 1) for t in taps)
    ones = (1,) * rank
    convolution = Convolution(ones, ones, around, ones, groups, operator.dtype)
    y = Term(x.context, x.context.emit(convolution, x.tensor, weights.tensor))
    sizes = y.shape[2:]
    y = y.reshape(x.shape[0], groups * outputs, *strides, *sizes)
    order = [axis for i in range(rank) for axis in (2 + rank + i, 2 + i)]
    y = y.transpose(0, 1, *order)
    y = y.reshape(
        x.shape[0], groups * outputs, *(n * s for n, s in zip(sizes, strides, strict=True))
    )
    widths = [(0, 0), (0, 0)]
    sides = zip(operator.pads, operator.added, strict=True)
    for axis, ((first, last), extra) in enumerate(sides, 2):
        i = axis - 2
        stop = (x.shape[axis] - 1) * strides[i] + kernel[i] - last + extra
        before, after = max(-first, 0), max(stop - y.shape[axis], 0)
        y = y.slice(axis, max(first, 0), stop - after)
        widths.append((before, after))
    return y.pad(widths)
