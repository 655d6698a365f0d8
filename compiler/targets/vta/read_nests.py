"""Reading the nests of a loop program: what each writes, folds and finishes.

A nest is a store, an update of a parameter or of what statements before it set to 0, or a fold of
its own:

    alloc total: total = 0; for ky: for kx: total add= value;  y[...] = finish(total)

What a step ``cache_read`` copies into a memory is not a nest: the copy goes by the name of what
it copies, and has its whole size in the dimensions in which all iterations copy the same part.
An int8 buffer that a program allocates in ACT is where what is computed from it goes.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from math import prod

from dovetail.isa.frozen import replace

from ...dtypes import DType
from ...loops.affine import Linear
from ...loops.expressions import (
    SCRATCHPADS,
    BinaryFunction,
    Buffer,
    Constant,
    Load,
    Scope,
    Variable,
)
from ...loops.ir import Allocate, Block, For, Function, LoopKind, Stmt, Store, Update
from ...loops.text import statement_to_text
from .nest import (
    Fold,
    Kernel,
    Loop,
    Nest,
    Ref,
    RowFinish,
    map_refs,
    operands,
)
from .read_values import Copy, NestError, Values

__all__ = ["BYTE", "HIGH", "LOW", "MOVED", "NestError", "read_nests"]

LOW, HIGH = "low", "high"
"""Bytes of exponentials, in place of a softmax's result and operand."""
BYTE = "root_byte"
"""Name of the value by whose root rows are divided, in place of a normalisation's result."""
MOVED = "moved."
"""The beginning of loops that write a buffer, behind its name, where other loops write it too."""

FOLDS = {BinaryFunction.ADD: (Fold.SUM, 0), BinaryFunction.MAX: (Fold.MAX, -128)}
"""The fold of each reduction, and its first value."""


def read_nests(function: Function) -> Kernel:
    """The nests of ``function``.

    Raises NestError for a statement that is none.
    """
    reader = _Reader()
    reader.statement(function.body, ())
    nests = _with_words(_in_place(tuple(reader.nests), reader.allocated))
    return Kernel(function.name, nests, _tiles(nests))


def _tiles(nests: tuple[Nest, ...]) -> tuple[Loop, ...]:
    shared: list[Loop] = []
    for loops in zip(*(nest.loops for nest in nests), strict=False):
        first = loops[0]
        folds = any(first.name in nest.reduction for nest in nests)
        tile = first.kind is LoopKind.SERIAL and first.name.endswith(".outer")
        if not tile or folds or any(loop != first for loop in loops):
            break
        shared.append(first)
    return tuple(shared)


def _with_words(nests: tuple[Nest, ...]) -> tuple[Nest, ...]:
    """With each number of a row in one word with the other that is read beside it.

    A nest that makes one takes the other from the word that it reads itself.
    """
    made = {nest.name for nest in nests if nest.makes_row}
    beside: dict[str, dict[str, Ref]] = {}
    found: list[Nest] = []
    for nest in reversed(nests):
        finish = nest.finish
        if isinstance(finish, RowFinish) and nest.name in beside:
            lane = nest.target.indices[-1]
            own = {k: Ref(r.buffer, (*r.indices[:-1], lane)) for k, r in beside[nest.name].items()}
            finish = replace(finish, **own)  # type: ignore[arg-type]
        if finish is not None and finish.bias is not None and finish.scale is not None:
            bias, scale = finish.bias, finish.scale
            if scale.buffer.name in made:
                beside[scale.buffer.name] = {"bias": bias}
                finish = replace(finish, bias=None)
            elif bias.buffer.name in made:
                beside[bias.buffer.name] = {"scale": scale}
                finish = replace(finish, scale=None)
        found.append(replace(nest, finish=finish))
    return tuple(reversed(found))


def _in_place(nests: tuple[Nest, ...], allocated: Collection[str]) -> tuple[Nest, ...]:
    """With int8 buffers between two nests laid out like the result of the second."""
    for number, nest in enumerate(nests):
        buffer = nest.target.buffer
        if buffer.name not in allocated or buffer.scope is not Scope.ACT:
            continue
        reader, there, read = _place_of(nests, number)
        place = replace(there.buffer, name=buffer.name)
        starts = [a - b for a, b in zip(there.indices, read.indices, strict=True)]
        own = {loop.name for loop in reader.loops} - {loop.name for loop in nest.loops}
        if any(start.coefficient(name) for start in starts for name in own):
            raise NestError(f"{buffer.name} is not laid out like {reader.name}, made from it")

        def moved(
            ref: Ref, buffer: Buffer = buffer, place: Buffer = place, starts: list[Linear] = starts
        ) -> Ref:
            if ref.buffer.name != buffer.name:
                return ref
            indices = (a + b for a, b in zip(ref.indices, starts, strict=True))
            return Ref(place, tuple(indices))

        nests = tuple(map_refs(each, moved) for each in nests)
    return nests


def _place_of(nests: tuple[Nest, ...], number: int) -> tuple[Nest, Ref, Ref]:
    """A nest with an element that the result of nest ``number`` is in place of, and with one of
    that result, or of what is as large.
    """
    nest, last = nests[number], nests[-1]
    if nest.name == HIGH:
        return nest, operands(nest.value)[0], nest.target
    if nest.name in (LOW, BYTE):
        return last, last.target, operands(last.value)[0]
    reader = next(each for each in nests[number + 1 :] if _reads(each, nest.name))
    read = next(ref for ref in reader.refs[1:] if ref.buffer.name == nest.name)
    return reader, reader.target, read


def _reads(nest: Nest, name: str) -> bool:
    return any(ref.buffer.name == name for ref in nest.refs[1:])


@dataclass(slots=True)
class _Reader:
    nests: list[Nest] = field(default_factory=list)
    allocated: set[str] = field(default_factory=set)
    values: Values = field(default_factory=Values)
    cleared: dict[str, frozenset[str]] = field(default_factory=dict)
    """Loops around the place where a buffer is set to 0, for each such buffer."""

    def statement(self, stmt: Stmt, loops: tuple[Loop, ...]) -> None:
        match stmt:
            case Block(statements=statements):
                for each in statements:
                    self.statement(each, loops)
            case Allocate(buffer=Buffer(scope=Scope.REGISTER)):
                self.folded(stmt, loops)
            case Allocate(buffer=buffer, body=body):
                self.allocated.add(buffer.name)
                self.statement(body, loops)
            case For(body=body):
                self.statement(body, (*loops, _loop(stmt)))
            case Store():
                self.store(stmt, loops)
            case Update():
                self.update(stmt, loops)
            case _:
                raise _error(stmt, "required loops, stores and updates")

    def store(self, stmt: Store, loops: tuple[Loop, ...]) -> None:
        match stmt.value:
            case Constant(value=0) if stmt.buffer.scope is Scope.ACC:
                moving = _moving(self.values.ref(Load(stmt.buffer, stmt.indices)))
                count = prod(loop.extent for loop in loops if loop.name in moving)
                if count != stmt.buffer.elements:
                    raise _error(stmt, f"required all {stmt.buffer.elements} elements")
                self.cleared[stmt.buffer.name] = frozenset(loop.name for loop in loops)
            case Load(buffer=Buffer(scope=Scope.GLOBAL)) if (
                stmt.buffer.name in self.allocated
                and stmt.buffer.scope in SCRATCHPADS
                and stmt.buffer.name not in (LOW, HIGH, BYTE)
            ):
                self.values.copies[stmt.buffer.name] = Copy.of(stmt, stmt.value)
            case _:
                target = self.values.ref(Load(stmt.buffer, stmt.indices))
                finish, table, inner = self.values.finish(stmt.value)
                nest = Nest(
                    loops, frozenset(), target, Fold.NONE, self.values.value(inner), finish, table
                )
                self.add(nest)

    def update(self, stmt: Update, loops: tuple[Loop, ...]) -> None:
        anew = self.cleared.get(stmt.buffer.name)
        if (anew is None and stmt.buffer.name in self.allocated) or (
            stmt.function is not BinaryFunction.ADD
        ):
            raise _error(stmt, "required a sum that is set to 0 before")
        target = self.values.ref(Load(stmt.buffer, stmt.indices))
        # In each iteration of the loops around both, the sums begin again.
        still = (anew or frozenset()) | _moving(target)
        reduction = frozenset(
            loop.name for loop in loops if loop.name not in still and loop.extent > 1
        )
        value = self.values.value(stmt.value)
        self.add(Nest(loops, reduction, target, Fold.SUM, value, adds=anew is None))

    def folded(self, stmt: Allocate, loops: tuple[Loop, ...]) -> None:
        """A fold of each element separately."""
        match stmt.body:
            case Block(
                statements=(
                    Store(buffer=start, value=Constant(value=first)),
                    For() as nest,
                    Store() as store,
                )
            ) if start == stmt.buffer:
                inner: Stmt = nest
                folded: list[Loop] = []
                while isinstance(inner, For):
                    folded.append(_loop(inner))
                    inner = inner.body
                if isinstance(inner, Update) and inner.buffer == stmt.buffer:
                    fold, wanted = FOLDS.get(inner.function, (Fold.NONE, None))
                    if wanted == first and start.dtype in (DType.INT8, DType.INT32):
                        finish, table, total = self.values.finish(store.value)
                        if total == Load(stmt.buffer, ()):
                            target = self.values.ref(Load(store.buffer, store.indices))
                            names = frozenset(loop.name for loop in folded)
                            value = self.values.value(inner.value)
                            everything = (*loops, *folded)
                            self.add(Nest(everything, names, target, fold, value, finish, table))
                            return
        raise _error(stmt, "required the start of a sum or maximum, its loops, and a store of it")

    def add(self, nest: Nest) -> None:
        """Keep a nest; loops over a buffer between nests lose the name of the buffer."""
        self.nests.append(_renamed(nest) if nest.name in self.allocated else nest)


def _loop(stmt: For) -> Loop:
    if not isinstance(stmt.extent, Constant):
        raise _error(stmt, "required a constant extent")
    return Loop(stmt.variable, int(stmt.extent.value), stmt.kind)


def _moving(ref: Ref) -> set[str]:
    """The variables of its indices."""
    atoms = (atom for index in ref.indices for atom in index.terms)
    return {atom.name for atom in atoms if isinstance(atom, Variable)}


def _renamed(nest: Nest) -> Nest:
    prefix = f"{nest.name}."
    names = {
        loop.name: loop.name.removeprefix(prefix).removeprefix(MOVED)
        for loop in nest.loops
        if loop.name.startswith(prefix)
    }

    def index(form: Linear) -> Linear:
        return Linear(
            form.constant,
            {
                Variable(names.get(atom.name, atom.name)): factor  # type: ignore[union-attr]
                for atom, factor in form.terms.items()
            },
        )

    changed = map_refs(nest, lambda ref: Ref(ref.buffer, tuple(map(index, ref.indices))))
    return replace(
        changed,
        loops=tuple(replace(loop, name=names.get(loop.name, loop.name)) for loop in nest.loops),
        reduction=frozenset(names.get(name, name) for name in nest.reduction),
    )


def _error(stmt: Stmt, required: str) -> NestError:
    return NestError(f"{statement_to_text(stmt).splitlines()[0]!r}: {required}")
