"""Scalar expressions of loop programs.

    Expr := Constant value dtype | Variable name | Load buffer [ Expr, ... ]
          | Unary function Expr | Binary function Expr Expr | Select Expr Expr Expr
          | MultiplyAdd Expr Expr Expr | Cast dtype Expr | Bitcast dtype Expr

Loop variables and indices are int64.  The functions are those of graphs.  Integer arithmetic wraps;
``div`` of integers truncates, ``floordiv`` and ``mod`` round down; a division by 0 and a shift by
less than 0 or by all bits have no meaning.  Comparisons give bool.  ``and``, ``or``, ``xor`` and
``not`` work on the bits of integers, and on bool.  A load in the operand of a ``Select`` that is
not chosen is not done.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Union

from dovetail.isa.frozen import KeepsHash, frozen

from ..dtypes import DType
from ..errors import GraphError
from ..graph.operators.functions import COMPARISONS, TESTS, BinaryFunction, UnaryFunction

__all__ = [
    "COMPARISONS",
    "SCRATCHPADS",
    "Binary",
    "BinaryFunction",
    "Bitcast",
    "Buffer",
    "Cast",
    "Constant",
    "Expr",
    "Load",
    "MultiplyAdd",
    "Scope",
    "Select",
    "Unary",
    "UnaryFunction",
    "Variable",
    "as_index",
]


class Scope(StrEnum):
    """Where a buffer lives."""

    GLOBAL = "global"
    """Memory that outlives the function: parameters, or workspace."""
    LOCAL = "local"
    """Memory of one call (of one thread of it), of a size known at compile time."""
    REGISTER = "register"
    """Scalars or vectors in registers; every index is constant once loops are unrolled."""
    SHARED = "shared"
    """Memory of one block of threads."""
    ACT = "act"
    """The accelerator's memories, see ``docs/accelerator.md``: activations, ..."""
    WGT = "wgt"
    """... weight tiles, ..."""
    ACC = "acc"
    """... sums, ..."""
    PAR = "par"
    """... biases and scales, ..."""
    TAP = "tap"
    """... depthwise weights, ..."""
    TAB = "tab"
    """... and look-up tables."""


SCRATCHPADS: Mapping[Scope, tuple[DType, ...]] = {
    Scope.ACT: (DType.INT8,),
    Scope.WGT: (DType.INT8,),
    Scope.ACC: (DType.INT32,),
    Scope.PAR: (DType.INT32, DType.FLOAT32),
    Scope.TAP: (DType.INT8,),
    Scope.TAB: (DType.INT8,),
}
"""The accelerator's memories, and the element types that each holds."""


@frozen
class Buffer:
    """An array of ``shape`` elements of ``dtype``, row-major; ``()`` is one element.

    Two buffers with one name in one function are one buffer.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    scope: Scope = Scope.GLOBAL

    def __getitem__(self, indices: "Expr | int | tuple[Expr | int, ...]") -> "Load":
        chosen = indices if isinstance(indices, tuple) else (indices,)
        return Load(self, tuple(as_index(index) for index in chosen))

    @property
    def elements(self) -> int:
        """Their number."""
        total = 1
        for size in self.shape:
            total *= size
        return total


def _operator(
    function: BinaryFunction, *, swapped: bool = False
) -> Callable[[Any, "Expr | int | float"], "Expr"]:
    """The method that applies ``function``."""

    def method(self: Any, other: "Expr | int | float") -> "Expr":
        return _binary(function, *((other, self) if swapped else (self, other)))

    return method


class _Arithmetic(KeepsHash):
    """Python's operators on expressions; a bare number takes the other operand's dtype."""

    __slots__ = ()

    __add__ = _operator(BinaryFunction.ADD)
    __radd__ = _operator(BinaryFunction.ADD, swapped=True)
    __sub__ = _operator(BinaryFunction.SUB)
    __rsub__ = _operator(BinaryFunction.SUB, swapped=True)
    __mul__ = _operator(BinaryFunction.MUL)
    __rmul__ = _operator(BinaryFunction.MUL, swapped=True)
    __floordiv__ = _operator(BinaryFunction.FLOORDIV)
    __mod__ = _operator(BinaryFunction.MOD)
    __lt__ = _operator(BinaryFunction.LT)
    __le__ = _operator(BinaryFunction.LE)
    __gt__ = _operator(BinaryFunction.LT, swapped=True)
    __ge__ = _operator(BinaryFunction.LE, swapped=True)
    __and__ = _operator(BinaryFunction.AND)
    __or__ = _operator(BinaryFunction.OR)


@frozen
class Constant(_Arithmetic):
    """``value`` as ``dtype``."""

    value: int | float | bool
    dtype: DType


@frozen
class Variable(_Arithmetic):
    """A loop variable, or the name a ``Let`` gives to a value."""

    name: str
    dtype: DType = DType.INT64


@frozen
class Load(_Arithmetic):
    """An element of a buffer.  Raises GraphError for a wrong number of indices."""

    buffer: Buffer
    indices: tuple["Expr", ...]

    def __post_init__(self) -> None:
        if len(self.indices) != len(self.buffer.shape):
            raise GraphError(
                f"{self.buffer.name} has {len(self.indices)} indices; its buffer has "
                f"{len(self.buffer.shape)} dimensions"
            )

    @property
    def dtype(self) -> DType:
        """The buffer's."""
        return self.buffer.dtype


@frozen
class Unary(_Arithmetic):
    """``function(operand)``."""

    function: UnaryFunction
    operand: "Expr"
    dtype: DType = field(init=False, repr=False, compare=False)
    """The operand's, or bool for a test."""

    def __post_init__(self) -> None:
        dtype = DType.BOOL if self.function in TESTS else self.operand.dtype
        object.__setattr__(self, "dtype", dtype)


@frozen
class Binary(_Arithmetic):
    """``function(left, right)``.  Raises GraphError for operands of two dtypes."""

    function: BinaryFunction
    left: "Expr"
    right: "Expr"
    dtype: DType = field(init=False, repr=False, compare=False)
    """The operands', or bool for a comparison."""

    def __post_init__(self) -> None:
        if self.left.dtype != self.right.dtype:
            raise GraphError(
                f"{self.function}: operands are {self.left.dtype} and {self.right.dtype}; "
                "required one dtype; cast one"
            )
        dtype = DType.BOOL if self.function in COMPARISONS else self.left.dtype
        object.__setattr__(self, "dtype", dtype)


@frozen
class Select(_Arithmetic):
    """``chosen if condition else other``.  Raises GraphError for operands of wrong dtypes."""

    condition: "Expr"
    chosen: "Expr"
    other: "Expr"
    dtype: DType = field(init=False, repr=False, compare=False)
    """Element type of both operands it chooses from."""

    def __post_init__(self) -> None:
        if self.condition.dtype != DType.BOOL or self.chosen.dtype != self.other.dtype:
            raise GraphError(
                f"select: operands are {self.condition.dtype}, {self.chosen.dtype} and "
                f"{self.other.dtype}; required bool and two of one dtype"
            )
        object.__setattr__(self, "dtype", self.chosen.dtype)


@frozen
class MultiplyAdd(_Arithmetic):
    """``left * right + addend`` of float32, rounded once.  Raises GraphError for other dtypes."""

    left: "Expr"
    right: "Expr"
    addend: "Expr"

    def __post_init__(self) -> None:
        found = [each.dtype for each in (self.left, self.right, self.addend)]
        if found != [DType.FLOAT32] * 3:
            raise GraphError(f"fma: operands are {', '.join(found)}; required float32")

    @property
    def dtype(self) -> DType:
        """The operands'."""
        return DType.FLOAT32


@frozen
class Cast(_Arithmetic):
    """``operand`` converted to ``dtype``, as C does; float to integer truncates."""

    dtype: DType
    operand: "Expr"


@frozen
class Bitcast(_Arithmetic):
    """The bits of ``operand`` read as ``dtype``, of the same size."""

    dtype: DType
    operand: "Expr"


Expr = Union[  # noqa: UP007
    Constant, Variable, Load, Unary, Binary, Select, MultiplyAdd, Cast, Bitcast
]


def as_index(value: Expr | int) -> Expr:
    """``value`` as an int64 expression."""
    return Constant(value, DType.INT64) if isinstance(value, int) else value


def _binary(function: BinaryFunction, left: object, right: object) -> Expr:
    if isinstance(left, int | float):
        left = Constant(left, right.dtype)  # type: ignore[attr-defined]
    if isinstance(right, int | float):
        right = Constant(right, left.dtype)  # type: ignore[attr-defined]
    return Binary(function, left, right)  # type: ignore[arg-type]
