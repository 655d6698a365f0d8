"""Converters of functions of two tensors, element by element."""

import numpy as np

from ...graph.formulas import Term
from ...graph.operators.integer.fixed_point import AddFixed, MultiplyFixed
from .node import Converter, Node
from .products import is_bytes
from .quantized import activated, quantize_multiplier, signed_limits, signed_zero

__all__ = ["ELEMENTWISE"]

LEFT_SHIFT = 20


def aligned(node: Node, a: Term, b: Term) -> tuple[Term, Term, bool]:
    """Operands of one rank, the first of the result's shape, and whether they changed places."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    rank = len(shape)
    a, b = (x.reshape(*(1,) * (rank - x.rank), *x.shape) for x in (a, b))
    if a.shape != shape and b.shape == shape:
        return b, a, True
    return a.expand(*shape), b, False


def _sum_of_bytes(node: Node, sign: int) -> Term:
    scales = [node.scale(0), node.scale(1)]
    dtype = node.result().dtype
    operands = [node.signed(node.term(place)) for place in range(2)]
    twice = 2.0 * max(scale.scale for scale in scales)
    zeros = [signed_zero(scale, dtype) for scale in scales]
    factors = [quantize_multiplier(scale.scale / twice) for scale in scales]
    factors[1] = (sign * factors[1][0], factors[1][1])
    result = node.result_scale()
    output = quantize_multiplier(twice / ((1 << LEFT_SHIFT) * np.float32(result.scale).item()))
    a, b, swapped = aligned(node, *operands)
    if swapped:
        zeros, factors = zeros[::-1], factors[::-1]
    operator = AddFixed(
        *(zeros[0], *factors[0], zeros[1], *factors[1], *output),
        signed_zero(result, dtype),
        *signed_limits(node),
    )
    return node.stored(node.emit(operator, a, b), dtype)


def convert_add(node: Node) -> Term:
    """``a + b``."""
    if is_bytes(node):
        return _sum_of_bytes(node, 1)
    return activated(node, node.term(0) + node.term(1))


def convert_sub(node: Node) -> Term:
    """``a - b``."""
    if is_bytes(node):
        return _sum_of_bytes(node, -1)
    return activated(node, node.term(0) - node.term(1))


def convert_mul(node: Node) -> Term:
    """``a * b``."""
    if not is_bytes(node):
        return activated(node, node.term(0) * node.term(1))
    scales, dtype = [node.scale(0), node.scale(1)], node.result().dtype
    zeros = [signed_zero(scale, dtype) for scale in scales]
    result = node.result_scale()
    factors = quantize_multiplier(scales[0].scale * scales[1].scale / result.scale)
    a, b, swapped = aligned(node, *(node.signed(node.term(place)) for place in range(2)))
    first, second = zeros[::-1] if swapped else zeros
    low, high = signed_limits(node)
    operator = MultiplyFixed(first, second, *factors, signed_zero(result, dtype), low, high)
    return node.stored(node.emit(operator, a, b), dtype)


ELEMENTWISE: dict[str, Converter] = {
    "ADD": convert_add,
    "MUL": convert_mul,
    "SUB": convert_sub,
}
