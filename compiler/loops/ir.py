"""Loop programs: statements over buffers.

    Function := name input Buffer* output Buffer* Stmt
    Stmt     := Block Stmt* | For variable extent kind Stmt | While Expr Stmt
              | If Expr Stmt [Stmt] | Allocate Buffer Stmt | Let Variable Expr Stmt
              | Store buffer [ Expr, ... ] Expr
              | Update buffer [ Expr, ... ] function Expr
              | Invoke intrinsic operands

``Update`` is ``buffer[i] = function(buffer[i], value)`` with a function whose order does not matter
(float sums may be reassociated); reductions are written with it.  A recurrence is a serial loop
that reads with ``Store`` what an earlier iteration wrote.  A ``For`` runs its variable from 0 to
``extent - 1``.
"""

from enum import StrEnum
from typing import Union

from dovetail.isa.frozen import frozen

from ..errors import GraphError
from .expressions import BinaryFunction, Buffer, Expr, Variable, as_index

__all__ = [
    "REDUCTIONS",
    "Allocate",
    "Block",
    "For",
    "Function",
    "If",
    "Invoke",
    "Let",
    "LoopKind",
    "Region",
    "Stmt",
    "Store",
    "Update",
    "While",
    "block",
    "loops",
]


class LoopKind(StrEnum):
    """How a loop runs."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    """Iterations on the threads of a pool; they write different elements."""
    VECTOR = "vector"
    """All iterations at once, in the lanes of vector registers; the extent is constant."""
    UNROLLED = "unrolled"
    """Written out, one iteration after the other; the extent is constant."""
    BLOCK = "block"
    """On the blocks of threads of a GPU."""
    THREAD = "thread"
    """On the threads of a GPU's block."""
    VIRTUAL = "virtual"
    """Interleaved, so that memory operations of one iteration hide under another's arithmetic."""
    HARDWARE = "hardware"
    """Inside one instruction of an accelerator."""


REDUCTIONS = frozenset(
    {
        BinaryFunction.ADD,
        BinaryFunction.MUL,
        BinaryFunction.MIN,
        BinaryFunction.MAX,
        BinaryFunction.AND,
        BinaryFunction.OR,
        BinaryFunction.XOR,
    }
)
"""Functions that ``Update`` may combine with."""


@frozen
class Block:
    """Statements, one after the other."""

    statements: tuple["Stmt", ...]


@frozen
class For:
    """``extent`` iterations of ``body``; an extent may be an expression of outer variables.

    Annotations are names and values that tell a backend how to run it, not what it means.
    """

    variable: str
    extent: Expr
    kind: LoopKind
    body: "Stmt"
    annotations: tuple[tuple[str, int | str], ...] = ()


@frozen
class While:
    """``body`` again and again while ``condition``, tested first, holds."""

    condition: Expr
    body: "Stmt"


@frozen
class If:
    """``then`` where ``condition`` holds, else ``otherwise``."""

    condition: Expr
    then: "Stmt"
    otherwise: "Stmt | None" = None


@frozen
class Allocate:
    """A buffer for ``body``; it holds anything at first."""

    buffer: Buffer
    body: "Stmt"


@frozen
class Let:
    """``variable`` stands for ``value``, evaluated once, in ``body``."""

    variable: Variable
    value: Expr
    body: "Stmt"


@frozen
class Store:
    """``buffer[indices] = value``.  Raises GraphError for wrong indices or dtype."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr

    def __post_init__(self) -> None:
        _check_write(self.buffer, self.indices, self.value)


@frozen
class Update:
    """``buffer[indices] = function(buffer[indices], value)``.

    Raises GraphError for wrong indices or dtype, and for a function that is not a reduction.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    function: BinaryFunction
    value: Expr

    def __post_init__(self) -> None:
        _check_write(self.buffer, self.indices, self.value)
        if self.function not in REDUCTIONS:
            raise GraphError(
                f"update of {self.buffer.name}: {self.function}; required one of "
                f"{', '.join(sorted(REDUCTIONS))}"
            )


@frozen
class Region:
    """A box of a buffer: in each dimension its first index and its size."""

    buffer: Buffer
    start: tuple[Expr, ...]
    shape: tuple[int, ...]


@frozen
class Invoke:
    """An intrinsic, which means what its declaration says, on regions in the order of it."""

    intrinsic: str
    operands: tuple[Region, ...]


Stmt = Union[Block, For, While, If, Allocate, Let, Store, Update, Invoke]  # noqa: UP007


@frozen
class Function:
    """inputs: read only.  outputs: written whole.  No two of them overlap in memory."""

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: Stmt


def block(*statements: Stmt) -> Stmt:
    """Statements in order; nested blocks are flattened, one statement stays itself."""
    flat: list[Stmt] = []
    for statement in statements:
        flat += statement.statements if isinstance(statement, Block) else (statement,)
    return flat[0] if len(flat) == 1 else Block(tuple(flat))


def loops(
    variables: tuple[tuple[str, Expr | int], ...], body: Stmt, kind: LoopKind = LoopKind.SERIAL
) -> Stmt:
    """``body`` in a nest of loops, the outermost first."""
    for name, extent in reversed(variables):
        body = For(name, as_index(extent), kind, body)
    return body


def _check_write(buffer: Buffer, indices: tuple[Expr, ...], value: Expr) -> None:
    if len(indices) != len(buffer.shape):
        raise GraphError(
            f"{buffer.name} has {len(indices)} indices; its buffer has "
            f"{len(buffer.shape)} dimensions"
        )
    if value.dtype != buffer.dtype:
        raise GraphError(
            f"{buffer.name} is {buffer.dtype}; the value stored is {value.dtype}; cast it"
        )
