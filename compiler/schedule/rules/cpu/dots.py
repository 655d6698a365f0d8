"""Sums of products of bytes, four neighbours at a time, or of 16-bit words, two at a time, by dot
products of the CPU.

    c[..., i] += sum(x[..., 4 k + j] * w[..., k, i, j] over j)

becomes ``dot_uint8_int8_16`` where ``w`` is packed like that; the four neighbours of ``x`` are
broadcast.

    c[..., i] += sum(x[..., 4 k + j, i] * w[..., k, i, j] over j)

becomes ``columns_uint8_int8_16``: each of 16 neighbours in ``x`` is multiplied separately.
"""

from math import prod

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ....loops.expressions import Binary, BinaryFunction, Cast, Expr, Load
from ...steps.reduction import Reduction
from .products import Operand, Products

__all__ = ["LANES", "Dots", "find_dots"]

LANES = 16
KINDS = ((DType.UINT8, DType.INT8), (DType.INT8, DType.INT8), (DType.INT16, DType.INT16))
MOST_STEPS = 24


@frozen
class Dots:
    """near: the loop over neighbours.  lane: the loop whose values are in lanes.

    packs: the products without the neighbours.  intrinsic: the one that multiplies and adds.
    """

    near: str
    lane: str
    packs: Products
    intrinsic: str
    columns: bool

    @property
    def unrolled(self) -> bool:
        """True if all steps are written out, so that neighbouring windows share their vectors."""
        steps = prod(self.packs.sizes[name] for name in self.packs.summed)
        return self.columns and steps <= MOST_STEPS


def find_dots(nest: Reduction, products: Products) -> Dots | None:
    """How a sum is one of dot products; None when it is not."""
    value = nest.update.value
    plain = isinstance(value, Binary) and value.function is BinaryFunction.MUL
    if products.dtype != DType.INT32 or len(products.reads) != 2 or not plain:
        return None
    assert isinstance(value, Binary)
    if nest.update.function is not BinaryFunction.ADD:
        return None
    if not all(_is_read(side) for side in (value.left, value.right)):
        return None
    for w in (0, 1):
        found = _dots(products, products.reads[1 - w], products.reads[w])
        if found is not None:
            return found
    return None


def _is_read(factor: Expr) -> bool:
    return isinstance(factor, Cast) and isinstance(factor.operand, Load)


def _dots(products: Products, x: Operand, w: Operand) -> Dots | None:
    kinds, sizes = (x.buffer.dtype, w.buffer.dtype), products.sizes
    if kinds not in KINDS or any(w.shifts):
        return None
    neighbours = 4 // kinds[1].bytes
    if len(w.axes) < 2 or not x.axes or len(w.axes[-1]) != 1 or len(w.axes[-2]) != 1:
        return None
    ((near, near_step),), ((lane, lane_step),) = w.axes[-1], w.axes[-2]
    columns = x.axes[-1] == ((lane, 1),) and kinds[0] is DType.UINT8 and len(x.axes) > 1
    axis = x.axes[-2 if columns else -1]
    if (near_step, lane_step) != (1, 1) or (near, 1) not in axis:
        return None
    names = [name for axes in products.operands for each in axes for name, _ in each]
    if names.count(near) != 2 or names.count(lane) != 1 + columns or near in products.kept:
        return None
    if columns and x.buffer.shape[-1] != LANES:
        return None
    if sizes[near] != neighbours or sizes[lane] % LANES or w.buffer.shape[-2] != sizes[lane]:
        return None
    intrinsic = f"{'columns' if columns else 'dot'}_{kinds[0]}_{kinds[1]}_{LANES}"
    return Dots(near, lane, products.without(near, w), intrinsic, columns)
