"""Computation of a layer, and its loop program.

    function "conv"
      input x: int8[1, 10, 10, 16] act
      input weights: ...
      output y: int8[2, 8, 8, 16] act
      alloc acc: int32[2, 8, 8, 16] acc:
        for clear.c, clear.y, clear.x, clear.l: acc[...] = 0
        for acc.c, acc.y, acc.x, k, ky, kx, acc.l, i: acc[...] add= x[...] * weights[...]
        for c, y, x, l: y[...] = requantized acc[...]

Loops over the result are called ``c``, ``y``, ``x`` and ``l`` (channel block, row, column, lane),
those over what is between have the name of its buffer before that.  Activations are parameters in
ACT, with their halo; constants come from DRAM.
"""

from collections.abc import Callable, Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen
from dovetail.isa.nibbles import fits_nibbles

from ....dtypes import DType
from ....loops.expressions import (
    BinaryFunction,
    Buffer,
    Constant,
    Expr,
    Load,
    Scope,
    Variable,
)
from ....loops.ir import Allocate, Function, Stmt, Store, Update, block, loops
from ..nest import Kernel
from ..read_nests import read_nests
from .activation import Activation

__all__ = [
    "Array",
    "Definition",
    "FinishOf",
    "Fold",
    "LoweredLayer",
    "Place",
    "Sums",
    "constant_buffer",
    "nest",
    "place_of",
    "unfinished",
    "write",
]

Array = NDArray[np.generic]
AXES = ("c", "y", "x", "l")


@frozen
class Place:
    """Channel block, row, column and lane of an element of a result."""

    c: Expr
    y: Expr
    x: Expr
    l: Expr  # noqa: E741

    @property
    def indices(self) -> tuple[Expr, ...]:
        """All four."""
        return (self.c, self.y, self.x, self.l)


@frozen
class Fold:
    """A reduction within each element: its loops, from the outermost, and where it starts."""

    loops: tuple[tuple[str, int], ...]
    function: BinaryFunction
    start: int


@frozen
class Sums:
    """A buffer, as large as the result without its halo, and the statements that fill it."""

    buffer: Buffer
    statements: tuple[Stmt, ...]


FinishOf = Callable[[Expr, Place], Expr]
"""Gives what a value at a place is finished to."""


def unfinished(value: Expr, place: Place) -> Expr:
    """The finish of what needs none."""
    return value


@frozen
class Definition:
    """One element of a result: ``finish`` of ``value``, or of all values of ``fold``.

    sums: what value reads, if the matrix core computes it.  constants: by the names of buffers.
    macs: useful multiply-accumulates, padding lanes not counted.
    """

    value: Callable[[Place], Expr]
    finish: FinishOf = unfinished
    fold: Fold | None = None
    sums: Sums | None = None
    constants: Mapping[str, Array] = field(default_factory=dict)
    macs: int = 0


@frozen
class LoweredLayer:
    """A loop program, its constants by buffer name, and the activations it reads and writes.

    macs: useful multiply-accumulates, padding lanes not counted.
    inexact_pairs: of a residual add, or a product of tensors: operand pairs (of 65,536) whose
    result differs from the float formula.
    stored: the activation whose rows in DRAM its weights are; then the constant ``weights`` has
    their shape only.
    given: the activation whose bytes in DRAM are words of its constants ``row_bias`` and
    ``row_scale``; then these have their shape only.
    kernel: the nests of the program.
    nibbles: whether its weights have a form of nibbles (``isa.nibbles``).
    """

    function: Function
    constants: Mapping[str, Array] = field(compare=False)
    inputs: tuple[Activation, ...]
    output: Activation
    macs: int = 0
    inexact_pairs: int = 0
    stored: Activation | None = None
    given: Activation | None = None
    kernel: Kernel = field(init=False, compare=False, repr=False)
    nibbles: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", read_nests(self.function))
        weights = None if self.stored else self.constants.get("weights")
        nibbles = weights is not None and fits_nibbles(
            weights.reshape(-1, *weights.shape[-2:]).astype(np.int8, copy=False)
        )
        object.__setattr__(self, "nibbles", nibbles)

    @property
    def name(self) -> str:
        """The model's name for it."""
        return self.function.name


def place_of(prefix: str = "") -> Place:
    """The variables of the loops of ``nest``."""
    return Place(*(Variable(prefix + axis) for axis in AXES))


def nest(output: Activation, body: Stmt, prefix: str = "") -> Stmt:
    """``body`` for every element of ``output``."""
    sizes = (output.blocks, output.height, output.width, output.lanes)
    return loops(tuple((prefix + axis, size) for axis, size in zip(AXES, sizes, strict=True)), body)


def constant_buffer(name: str, array: Array) -> Buffer:
    """The parameter of a constant."""
    return Buffer(name, array.shape, DType(array.dtype.name), Scope.GLOBAL)


def write(definition: Definition, place: Place, target: Buffer, indices: tuple[Expr, ...]) -> Stmt:
    """``target[indices]`` = the element at ``place``."""
    value, fold = definition.value(place), definition.fold
    if fold is None:
        return Store(target, indices, definition.finish(value, place))
    total = Buffer("total", (), value.dtype, Scope.REGISTER)
    return Allocate(
        total,
        block(
            Store(total, (), Constant(fold.start, value.dtype)),
            loops(fold.loops, Update(total, (), fold.function, value)),
            Store(target, indices, definition.finish(Load(total, ()), place)),
        ),
    )
