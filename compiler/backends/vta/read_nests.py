"""Reading the nests of a loop program: what each writes, folds and finishes.

A nest is a store, an update whose target a nest before it sets to 0, or a fold of its own:

    alloc total: total = 0; for ky: for kx: total add= value;  y[...] = finish(total)

What a step ``cache_read`` copies into a memory is no nest: the copy goes by the name of what it is
of, and has its whole size in the dimensions in which all iterations copy the same part.  An int8
buffer that a program allocates in ACT lies where what is computed from it goes.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ...dtypes import DType
from ...errors import CompilerError
from ...loops.affine import Linear, linear
from ...loops.expressions import (
    SCRATCHPADS,
    Binary,
    BinaryFunction,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    Scope,
    Unary,
    UnaryFunction,
    Variable,
)
from ...loops.ir import Allocate, Block, For, Function, LoopKind, Stmt, Store, Update
from ...loops.text import expr_to_text, statement_to_text
from .nest import (
    Fold,
    Kernel,
    Loop,
    Nest,
    Product,
    Ref,
    Requantized,
    Scaled,
    Total,
    Value,
    map_refs,
)

__all__ = ["NestError", "read_nests"]


class NestError(CompilerError):
    """A loop program has a statement that no instruction could be."""


ZERO = Constant(0, DType.INT64)
FOLDS = {BinaryFunction.ADD: (Fold.SUM, 0), BinaryFunction.MAX: (Fold.MAX, -128)}
"""What each reduction is, and where it starts."""


def read_nests(function: Function) -> Kernel:
    """The nests of ``function``.

    Raises NestError for a statement that is none.
    """
    reader = _Reader()
    reader.statement(function.body, ())
    nests = _in_place(tuple(reader.nests), reader.allocated)
    return Kernel(function.name, nests, _tiles(nests))


def _tiles(nests: tuple[Nest, ...]) -> tuple[Loop, ...]:
    shared: list[Loop] = []
    for loops in zip(*(nest.loops for nest in nests), strict=False):
        first = loops[0]
        folds = any(first.name in nest.reduction for nest in nests)
        if first.kind is not LoopKind.SERIAL or folds or any(loop != first for loop in loops):
            break
        shared.append(first)
    return tuple(shared)


def _in_place(nests: tuple[Nest, ...], allocated: Collection[str]) -> tuple[Nest, ...]:
    """With int8 buffers between two nests laid out like the result of the second."""
    for number, nest in enumerate(nests):
        buffer = nest.target.buffer
        if buffer.name not in allocated or buffer.scope is not Scope.ACT:
            continue
        reader = next(each for each in nests[number + 1 :] if _reads(each, buffer.name))
        read = next(ref for ref in reader.refs[1:] if ref.buffer.name == buffer.name)
        place = replace(reader.target.buffer, name=buffer.name)
        starts = [a - b for a, b in zip(reader.target.indices, read.indices, strict=True)]
        own = {loop.name for loop in reader.loops} - {loop.name for loop in nest.loops}
        if any(start.coefficient(name) for start in starts for name in own):
            raise NestError(f"{buffer.name} does not lie as {reader.name} does, made from it")

        def moved(
            ref: Ref, buffer: Buffer = buffer, place: Buffer = place, starts: list[Linear] = starts
        ) -> Ref:
            if ref.buffer.name != buffer.name:
                return ref
            indices = (a + b for a, b in zip(ref.indices, starts, strict=True))
            return Ref(place, tuple(indices))

        nests = tuple(map_refs(each, moved) for each in nests)
    return nests


def _reads(nest: Nest, name: str) -> bool:
    return any(ref.buffer.name == name for ref in nest.refs[1:])


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy in a scratchpad, by the name of what it is of; ``moved``: what to add to an index."""

    buffer: Buffer
    moved: tuple[int, ...]

    @staticmethod
    def of(stmt: Store, source: Load) -> "_Copy":
        shape, moved = list(stmt.buffer.shape), [0] * len(stmt.buffer.shape)
        for axis, (inside, outside) in enumerate(zip(stmt.indices, source.indices, strict=True)):
            start = (linear(outside) - linear(inside)).value
            if start is not None:
                shape[axis], moved[axis] = source.buffer.shape[axis], start
        name = source.buffer.name
        return _Copy(replace(stmt.buffer, name=name, shape=tuple(shape)), tuple(moved))

    def ref(self, indices: tuple[Linear, ...]) -> Ref:
        return Ref(
            self.buffer,
            tuple(i.shifted(start) for i, start in zip(indices, self.moved, strict=True)),
        )


@dataclass(slots=True)
class _Reader:
    nests: list[Nest] = field(default_factory=list)
    allocated: dict[str, int] = field(default_factory=dict)
    """Of each buffer between nests, the number of loops around it."""
    copied: dict[str, "_Copy"] = field(default_factory=dict)
    cleared: set[str] = field(default_factory=set)

    def statement(self, stmt: Stmt, loops: tuple[Loop, ...]) -> None:
        match stmt:
            case Block(statements=statements):
                for each in statements:
                    self.statement(each, loops)
            case Allocate(buffer=Buffer(scope=Scope.REGISTER)):
                self.folded(stmt, loops)
            case Allocate(buffer=buffer, body=body):
                self.allocated[buffer.name] = len(loops)
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
                self.cleared.add(stmt.buffer.name)
            case Load(buffer=Buffer(scope=Scope.GLOBAL)) if (
                stmt.buffer.name in self.allocated and stmt.buffer.scope in SCRATCHPADS
            ):
                self.copied[stmt.buffer.name] = _Copy.of(stmt, stmt.value)
            case _:
                target = self.ref(Load(stmt.buffer, stmt.indices))
                finish, table, inner = self.finish(stmt.value)
                nest = Nest(loops, frozenset(), target, Fold.NONE, self.value(inner), finish, table)
                self.add(nest)

    def update(self, stmt: Update, loops: tuple[Loop, ...]) -> None:
        if stmt.buffer.name not in self.cleared or stmt.function is not BinaryFunction.ADD:
            raise _error(stmt, "required a sum that is set to 0 before")
        target = self.ref(Load(stmt.buffer, stmt.indices))
        value = self.value(stmt.value)
        # A loop of one iteration moves nothing, whatever it is over.
        moving = {atom.name for index in target.indices for atom in _variables(index)}
        used = {
            atom.name for ref in _operands(value) for i in ref.indices for atom in _variables(i)
        }
        inside = loops[self.allocated.get(target.buffer.name, 0) :]
        reduction = frozenset(loop.name for loop in inside if loop.name in used - moving)
        self.add(Nest(loops, reduction, target, Fold.SUM, value))

    def folded(self, stmt: Allocate, loops: tuple[Loop, ...]) -> None:
        """A fold of each element by itself."""
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
                        finish, table, total = self.finish(store.value)
                        if total == Load(stmt.buffer, ()):
                            target = self.ref(Load(store.buffer, store.indices))
                            names = frozenset(loop.name for loop in folded)
                            value = self.value(inner.value)
                            everything = (*loops, *folded)
                            self.add(Nest(everything, names, target, fold, value, finish, table))
                            return
        raise _error(stmt, "required the start of a sum or maximum, its loops, and a store of it")

    def add(self, nest: Nest) -> None:
        """Keep a nest; loops over a buffer between nests lose the name of the buffer."""
        self.nests.append(_renamed(nest) if nest.name in self.allocated else nest)

    def finish(self, value: Expr) -> tuple[Requantized | None, Buffer | None, Expr]:
        """The finish and the table of a result, and what they are applied to."""
        match value:
            case Load(
                buffer=table,
                indices=(Binary(BinaryFunction.ADD, Cast(operand=inner), Constant(value=128)), _),
            ):
                finish, nested, base = self.finish(inner)
                if nested is None:
                    return finish, self.ref(Load(table, (ZERO, ZERO))).buffer, base
            case Cast(
                DType.INT8,
                Binary(
                    BinaryFunction.MIN,
                    Binary(BinaryFunction.MAX, moved, Constant(value=low)),
                    Constant(value=high),
                ),
            ):
                zero_point, scaled = _split(moved)
                match scaled:
                    case Unary(
                        UnaryFunction.RINT,
                        Binary(
                            BinaryFunction.MUL,
                            Cast(DType.FLOAT32, Binary(BinaryFunction.ADD, base, Load() as bias)),
                            Load() as scale,
                        ),
                    ):
                        parameters = self.ref(bias), self.ref(scale)
                        limits = (zero_point, int(low), int(high))
                        return Requantized(*parameters, *limits), None, base
        return None, None, value

    def value(self, expr: Expr) -> Value:
        match expr:
            case Load() | Cast(DType.INT32, Load()):
                return self.operand(expr)
            case Binary(BinaryFunction.MUL, a, Constant(value=factor)):
                return Scaled(self.operand(a), int(factor))
            case Binary(BinaryFunction.MUL, a, Binary(BinaryFunction.ADD, b, Constant(value=n))):
                return Product(self.operand(a), self.operand(b), int(n))
            case Binary(BinaryFunction.MUL, a, Binary(BinaryFunction.SUB, b, Constant(value=n))):
                return Product(self.operand(a), self.operand(b), -int(n))
            case Binary(BinaryFunction.MUL, a, b):
                return Product(self.operand(a), self.operand(b))
            case Binary(BinaryFunction.ADD, a, b):
                return Total(self.scaled(a), self.scaled(b))
        raise NestError(f"{expr_to_text(expr)} is no value of an instruction")

    def scaled(self, expr: Expr) -> Scaled:
        match self.value(expr):
            case Scaled() as scaled:
                return scaled
            case Ref() as ref:
                return Scaled(ref, 1)
        raise NestError(f"{expr_to_text(expr)} is no element with a factor")

    def operand(self, expr: Expr) -> Ref:
        if isinstance(expr, Cast) and expr.dtype is DType.INT32:
            expr = expr.operand
        if isinstance(expr, Load) and expr.dtype in (DType.INT8, DType.INT32):
            return self.ref(expr)
        raise NestError(f"{expr_to_text(expr)} is no operand of an instruction")

    def ref(self, load: Load) -> Ref:
        indices = tuple(linear(index) for index in load.indices)
        for index in indices:
            if not all(isinstance(atom, Variable) for atom in index.terms):
                raise NestError(f"{expr_to_text(load)}: an index is no sum of loop variables")
        copied = self.copied.get(load.buffer.name)
        return copied.ref(indices) if copied else Ref(load.buffer, indices)


def _loop(stmt: For) -> Loop:
    if not isinstance(stmt.extent, Constant):
        raise _error(stmt, "required a constant extent")
    return Loop(stmt.variable, int(stmt.extent.value), stmt.kind)


def _split(expr: Expr) -> tuple[int, Expr]:
    """A number that is added, and the rest."""
    match expr:
        case Binary(BinaryFunction.ADD, rest, Constant(value=number)):
            return int(number), rest
        case Binary(BinaryFunction.SUB, rest, Constant(value=number)):
            return -int(number), rest
    return 0, expr


def _variables(index: Linear) -> list[Variable]:
    return [atom for atom in index.terms if isinstance(atom, Variable)]


def _operands(value: Value) -> tuple[Ref, ...]:
    match value:
        case Ref():
            return (value,)
        case Product(left=left, right=right):
            return (left, right)
        case Scaled(ref=ref):
            return (ref,)
        case Total(left=a, right=b):
            return (a.ref, b.ref)


def _renamed(nest: Nest) -> Nest:
    prefix = f"{nest.name}."
    names = {
        loop.name: loop.name.removeprefix(prefix)
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
