"""Contractions of bytes whose sums run over four neighbours at a time, by dot products of the CPU.

Of words of 16 bits over two.

    c[..., i] += sum(x[..., 4 k + j] * w[..., k, i, j] over j)

becomes ``dot_uint8_int8_16`` where ``w`` is packed so; the four neighbours of ``x`` are broadcast.

    c[..., i] += sum(x[..., 4 k + j, i] * w[..., k, i, j] over j)

becomes ``columns_uint8_int8_16``: each of 16 neighbours in ``x`` is multiplied by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from ..define.operand import Operand, index
from ..dtypes import DType
from ..graph.operators.contractions import Axis, Contract
from ..loops.expressions import Buffer, Expr
from ..loops.ir import Invoke, Region, Stmt

__all__ = ["LANES", "Dots", "find_dots"]

LANES = 16
KINDS = (
    (DType.UINT8, DType.INT8),
    (DType.INT8, DType.INT8),
    (DType.INT16, DType.INT16),
)
MOST_STEPS = 24


@dataclass(frozen=True, slots=True)
class Dots:
    """x, w: places of the operands.  packs: the contraction without the neighbours.

    Its last label of ``w`` is the one that lies in lanes.  columns: and that of ``x`` too.
    """

    x: int
    w: int
    packs: Contract
    lane: int
    columns: bool
    neighbours: int

    @property
    def unrolled(self) -> bool:
        """Whether all steps are written out, so that neighbouring windows share their vectors."""
        steps = prod(self.packs.sizes[label] for label in self.packs.summed)
        return self.columns and steps <= MOST_STEPS

    def update(
        self,
        operands: Sequence[Operand],
        starts: Sequence[tuple[Expr, ...]],
        register: Buffer,
        at: tuple[Expr, ...],
    ) -> Stmt:
        """Add the products of one step to 16 accumulators."""
        x, w = operands[self.x].buffer, operands[self.w].buffer
        assert x is not None
        assert w is not None
        near = (self.neighbours, LANES) if self.columns else (self.neighbours,)
        ones, own = (1,) * (len(x.shape) - len(near)), starts[self.x]
        if operands[self.x].start:
            moved = zip(own, operands[self.x].start, strict=True)
            own = tuple(each + before if before else each for each, before in moved)
        one_weight = (1,) * (len(w.shape) - 2)
        return Invoke(
            f"{'columns' if self.columns else 'dot'}_{x.dtype}_{w.dtype}_{LANES}",
            (
                Region(x, own, (*ones, *near)),
                Region(w, (*starts[self.w], index(0)), (*one_weight, LANES, self.neighbours)),
                Region(register, at, (*(1,) * (len(register.shape) - 1), LANES)),
            ),
        )


def find_dots(operator: Contract, operands: Sequence[Operand]) -> Dots | None:
    """How a contraction is one of dot products; None when it is not."""
    if operator.dtype != DType.INT32 or len(operands) != 2:
        return None
    for w in (0, 1):
        found = _dots(operator, operands, 1 - w, w)
        if found is not None:
            return found
    return None


def _dots(operator: Contract, operands: Sequence[Operand], x: int, w: int) -> Dots | None:
    kinds = operands[x].type.dtype, operands[w].type.dtype
    if kinds not in KINDS:
        return None
    neighbours = 4 // kinds[1].bytes
    if operands[x].buffer is None or operands[w].buffer is None or operands[w].start:
        return None
    x_axes, w_axes = operator.operands[x], operator.operands[w]
    if len(w_axes) < 2 or not x_axes or len(w_axes[-1]) != 1 or len(w_axes[-2]) != 1:
        return None
    ((near, near_step),), ((lane, lane_step),) = w_axes[-1], w_axes[-2]
    columns = x_axes[-1] == ((lane, 1),) and kinds[0] is DType.UINT8 and len(x_axes) > 1
    axis = len(x_axes) - (2 if columns else 1)
    if (near_step, lane_step) != (1, 1) or (near, 1) not in x_axes[axis]:
        return None
    labels = [label for axes in operator.operands for axis in axes for label, _ in axis]
    if labels.count(near) != 2 or labels.count(lane) != 1 + columns or near in operator.kept:
        return None
    if columns and operands[x].type.shape[-1] != LANES:
        return None
    if operator.sizes[near] != neighbours or operator.sizes[lane] % LANES:
        return None
    if operands[w].type.shape[-2] != operator.sizes[lane]:
        return None
    rest: Axis = tuple(each for each in x_axes[axis] if each[0] != near)
    axes = [(*x_axes[:axis], rest, *x_axes[axis + 1 :]), w_axes[:-1]]
    ordered = tuple(axes) if x == 0 else tuple(reversed(axes))
    sizes = tuple(1 if label == near else size for label, size in enumerate(operator.sizes))
    return Dots(x, w, replace(operator, sizes=sizes, operands=ordered), lane, columns, neighbours)
