"""Perfect nests of loop programs, as instructions see them.

    Kernel := name Nest*
    Nest   := Loop* target "=" table [ finish ( fold over some of the loops ( value ) ) ]
    Value  := Ref | (Ref + integer) * (Ref + integer) | Ref * integer + Ref * integer

A kernel is read from a loop program by ``read_nests``; nothing else makes one.  Every int8
operand stands for its value as int32.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from math import prod

from dovetail.isa.frozen import frozen, replace
from dovetail.isa.instructions import Row
from dovetail.isa.requantize import WIDE_LIMIT

from ...dtypes import DType
from ...loops.affine import Linear
from ...loops.expressions import Buffer, Scope
from ...loops.ir import LoopKind
from ...loops.text import expr_to_text

__all__ = [
    "ADDED",
    "SECOND_STEP",
    "Fold",
    "Kernel",
    "Loop",
    "Nest",
    "Product",
    "Ref",
    "Requantized",
    "RowFinish",
    "Scaled",
    "Total",
    "Value",
    "map_refs",
    "operands",
    "without",
]


ADDED = "added"
"""The loop over a sum in ACC and what is added to it there."""

SECOND_STEP = 1 << 11
"""Words that the second factor of a product of activations may move a step: less than these."""


class Fold(Enum):
    """How reduction loops combine values."""

    NONE = "none"
    SUM = "sum"
    MAX = "max"


@frozen
class Loop:
    """``extent`` iterations of ``name``.

    SERIAL: each becomes instructions of its own.  HARDWARE: inside one instruction.  VECTOR: inside
    one vector or tile.
    """

    name: str
    extent: int
    kind: LoopKind

    def __str__(self) -> str:
        return f"for {self.name} in {self.extent} {self.kind.value}"


@frozen
class Ref:
    """An element of a buffer; indices are sums of loop variables."""

    buffer: Buffer
    indices: tuple[Linear, ...]

    @property
    def offset(self) -> Linear:
        """Its place in the buffer, in elements."""
        total, stride = Linear(0, {}), 1
        for index, size in zip(reversed(self.indices), reversed(self.buffer.shape), strict=True):
            total = total + index * stride
            stride *= size
        return total

    def __str__(self) -> str:
        indices = ", ".join(expr_to_text(index.to_expr()) for index in self.indices)
        return f"{self.buffer.name}[{indices}]"


@frozen
class Product:
    """``(left + left_offset) * (right + offset)``, exact in int32."""

    left: Ref
    right: Ref
    offset: int = 0
    left_offset: int = 0

    @property
    def is_far(self) -> bool:
        """True if the second factor moves farther from block to block than an instruction can."""
        step = self.right.offset.coefficient("c") // self.right.buffer.shape[-1]
        return self.right.buffer.scope is Scope.ACT and step >= SECOND_STEP

    @property
    def is_pair(self) -> bool:
        """True if neither factor is a constant."""
        return self.right.buffer.scope in (Scope.ACT, Scope.ACC)

    def __str__(self) -> str:
        terms = (self.left, self.left_offset), (self.right, self.offset)
        return " * ".join(f"({ref} + {offset})" if offset else str(ref) for ref, offset in terms)


@frozen
class Scaled:
    """``ref * factor``, exact in int32; is_low: of the element's lowest 16 bits, signed."""

    ref: Ref
    factor: int
    is_low: bool = False

    def __str__(self) -> str:
        return f"{self.ref} * {self.factor}"


@frozen
class Total:
    """``left + right``, in int32."""

    left: Scaled
    right: Scaled

    def __str__(self) -> str:
        return f"{self.left} + {self.right}"


Value = Ref | Product | Scaled | Total


@frozen
class Requantized:
    """``clip(rint(float32(x + bias) * scale) + zero_point, low, high)``: an int8 result.

    A scale of int32 is a multiplier in fixed point.  Of parameters that a nest before made, one is
    None: it is the other half of its word.  With 20 bits, and no zero point, the result is int32.
    """

    bias: Ref | None
    scale: Ref | None
    zero_point: int
    low: int
    high: int

    @property
    def is_wide(self) -> bool:
        """True if it has 20 bits."""
        return self.high == WIDE_LIMIT

    @property
    def is_fixed(self) -> bool:
        """True if it is in fixed point."""
        return self.scale is not None and self.scale.buffer.dtype is DType.INT32


@frozen
class RowFinish:
    """The finish that makes a row's parameter of a fold over all of it.

    LESS: ``-x``, int32.  OVER: ``scale / float32(max(x + bias, 1))``, float32.  ROOT: ``scale *
    2^shift / sqrt(max(x + epsilon, 1))``, float32.
    bias, scale: of the word of PAR that it reads, if it does.  The word that it writes has the
    scale, or with ROOT the bias, of that one beside its own result.
    """

    row: Row
    bias: Ref | None = None
    scale: Ref | None = None
    epsilon: int = 0
    shift: int = 0


OWN_FINISH = "own_finish"
"""The buffer, int8[32 * 256, lanes], of what the configuration's own finish makes of every int8
value by every shift.  Programs of loops look up in it; it is in no memory.
"""


@frozen
class OwnTable:
    """The rows of ``OWN_FINISH`` for one shift."""

    shift: int


@frozen
class Nest:
    """``target = table[finish(fold over the reduction loops(value))]`` for every iteration of the
    other loops, which are listed from the outermost.

    table: int8[256, lanes], or that of the own finish, or None.  adds: the result is added to what
    the target holds.
    """

    loops: tuple[Loop, ...]
    reduction: frozenset[str]
    target: Ref
    fold: Fold
    value: Value
    finish: Requantized | RowFinish | None = None
    table: Buffer | OwnTable | None = None
    adds: bool = False

    @property
    def name(self) -> str:
        """The buffer it writes."""
        return self.target.buffer.name

    @property
    def extents(self) -> dict[str, int]:
        """Iterations of each loop, by name."""
        return {loop.name: loop.extent for loop in self.loops}

    @property
    def vectors(self) -> int:
        """Iterations of all loops but those over the lanes of a vector or tile."""
        lanes = self.target.buffer.shape[-1]
        every = self.makes_row or self.multiplies_tiles
        return prod(loop.extent for loop in self.loops) // (lanes * lanes if every else lanes)

    @property
    def multiplies_tiles(self) -> bool:
        """True if the matrix core computes it: it sums products of bytes."""
        if not isinstance(self.value, Product) or self.target.buffer.scope is not Scope.ACC:
            return False
        return self.value.left.buffer.dtype is DType.INT8

    @property
    def makes_row(self) -> bool:
        """True if the result is a parameter of a row, made of all its lanes."""
        return self.target.buffer.scope is Scope.PAR

    @property
    def sums_terms(self) -> bool:
        """True if it adds terms that are in different channel blocks."""
        return self.fold is Fold.SUM and "term" in self.reduction

    @property
    def parameters(self) -> dict[str, Ref]:
        """Places in PAR of the finish's operands, by their names in ``Requantized``."""
        if self.finish is None:
            return {}
        found = {"bias": self.finish.bias, "scale": self.finish.scale}
        return {name: ref for name, ref in found.items() if ref is not None}

    @property
    def refs(self) -> tuple[Ref, ...]:
        """Every element the nest touches: target, operands, parameters."""
        return (self.target, *operands(self.value), *self.parameters.values())


@frozen
class Kernel:
    """The nests of a loop program, in order.

    tiles: the SERIAL loops that are around all of them, from the outermost, and fold nothing; for
    each iteration of those the nests run one after the other.
    """

    name: str
    nests: tuple[Nest, ...]
    tiles: tuple[Loop, ...]

    @property
    def extents(self) -> dict[str, int]:
        """Iterations of each loop, by name."""
        return {name: extent for nest in self.nests for name, extent in nest.extents.items()}

    @property
    def is_far(self) -> bool:
        """True if an instruction can have one block of channels only; see ``Product``."""
        return any(isinstance(nest.value, Product) and nest.value.is_far for nest in self.nests)

    @property
    def operand(self) -> str:
        """The buffer that the first nest reads first."""
        return operands(self.nests[0].value)[0].buffer.name

    @property
    def apart(self) -> bool:
        """True if two tensors that one address walks over have blocks differently far apart."""
        totals = (nest.value for nest in self.nests if isinstance(nest.value, Total))
        return any(
            value.left.ref.offset.coefficient("c") != value.right.ref.offset.coefficient("c")
            for value in totals
        )

    @property
    def sum_words(self) -> int:
        """Words of ACC for each of a result: two where something is added to its sums there."""
        return self.extents.get(ADDED, 1)

    @property
    def by_rows(self) -> bool:
        """True if a tile must have all channels of its rows."""
        return any(nest.makes_row or nest.sums_terms for nest in self.nests)

    @property
    def by_images(self) -> bool:
        """True if all of a result is one tile: a number of a row is of all pixels."""
        rows = (nest for nest in self.nests if nest.makes_row)
        return any(nest.reduction & {"ky", "kx"} for nest in rows)

    @property
    def refs(self) -> dict[str, Ref]:
        """An element of each buffer, by the buffer's name."""
        return {ref.buffer.name: ref for nest in self.nests for ref in nest.refs}


def operands(value: Value) -> tuple[Ref, ...]:
    """The elements that ``value`` is of."""
    match value:
        case Ref():
            return (value,)
        case Product(left=left, right=right):
            return (left, right)
        case Scaled(ref=ref):
            return (ref,)
        case Total(left=first, right=second):
            return (first.ref, second.ref)


def map_refs(nest: Nest, change: Callable[[Ref], Ref]) -> Nest:
    """The nest with ``change`` applied to every element it touches."""
    finish = nest.finish
    if finish is not None:
        bias, scale = finish.bias, finish.scale
        finish = replace(finish, bias=bias and change(bias), scale=scale and change(scale))
    return replace(
        nest, target=change(nest.target), value=_map_value(nest.value, change), finish=finish
    )


def _map_value(value: Value, change: Callable[[Ref], Ref]) -> Value:
    match value:
        case Ref():
            return change(value)
        case Product(left=left, right=right):
            return replace(value, left=change(left), right=change(right))
        case Scaled(ref=ref):
            return replace(value, ref=change(ref))
        case Total(left=left_term, right=right_term):
            return Total(
                replace(left_term, ref=change(left_term.ref)),
                replace(right_term, ref=change(right_term.ref)),
            )


def without(index: Linear, names: Iterable[str]) -> Linear:
    """``index`` with the variables ``names`` at 0."""
    dropped = set(names)
    terms = {atom: factor for atom, factor in index.terms.items() if atom.name not in dropped}  # type: ignore[union-attr]
    return Linear(index.constant, terms)
