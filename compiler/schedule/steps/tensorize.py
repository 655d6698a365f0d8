"""Intrinsics in place of the loops that mean the same."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ...errors import ScheduleError
from ...loops.affine import Linear
from ...loops.bounds import Bounds
from ...loops.canonicalize import canonicalize_statement
from ...loops.expressions import (
    Binary,
    BinaryFunction,
    Bitcast,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    Unary,
    Variable,
)
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Block, For, Function, If, Invoke, Region, Stmt, Store, Update
from ...loops.rewrite import substitute_expr
from ...loops.simplify import Simplifier
from ...loops.traverse import operands, variables
from .site import find_loop

__all__ = ["Tensorize"]

COMMUTATIVE = frozenset(
    {
        BinaryFunction.ADD,
        BinaryFunction.MUL,
        BinaryFunction.MIN,
        BinaryFunction.MAX,
        BinaryFunction.AND,
        BinaryFunction.OR,
        BinaryFunction.XOR,
        BinaryFunction.EQ,
        BinaryFunction.NE,
    }
)


@frozen
class Tensorize:
    """Put an intrinsic in place of a loop whose nest is the intrinsic's meaning.

        for k in 4: c[i] add= a[i, k] * b[k, 2]
        ->   invoke dot(a[i : 1, 0 : 4], b[0 : 4, 2 : 1], c[i : 1])

    Loops have the extents of the meaning's, statements its form, and each parameter is a box of a
    buffer, whose dimensions of more than one element are the parameter's, in order.
    """

    loop: str
    intrinsic: str

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"tensorize of {self.loop} by {self.intrinsic}"
        intrinsic = intrinsics.get(self.intrinsic)
        if intrinsic is None:
            raise ScheduleError(
                f"{what}: no such intrinsic; there are: {', '.join(intrinsics) or 'none'}"
            )
        site, _ = find_loop(function, self.loop)
        meaning = canonicalize_statement(intrinsic.meaning.body, Bounds(), keep_loops=False)
        found = canonicalize_statement(site.stmt, site.bounds, keep_loops=False)
        matcher = _Matcher(intrinsic, site.bounds, what)
        return site.replaced(matcher.invoke(meaning, found))


@frozen
class _Pair:
    """An element of a parameter and the element in its place."""

    index: tuple[Linear, ...]
    buffer: Buffer
    place: tuple[Linear, ...]


Found = tuple[tuple[str, _Pair], ...]
"""Elements of parameters, by the parameter's name."""


class _Matcher:
    def __init__(self, intrinsic: Intrinsic, bounds: Bounds, what: str) -> None:
        self.parameters = {buffer.name: buffer for buffer in intrinsic.parameters}
        self.intrinsic = intrinsic
        self.bounds = bounds
        self.what = what
        self.loops: dict[str, str] = {}
        """The meaning's loops to the program's."""
        self.extents: dict[str, int] = {}
        self.found: list[tuple[str, _Pair]] = []

    def error(self, reason: str) -> ScheduleError:
        return ScheduleError(f"{self.what}: {reason}")

    def invoke(self, meaning: Stmt, stmt: Stmt) -> Invoke:
        self.statement(meaning, stmt)
        missing = [name for name in self.parameters if all(name != each for each, _ in self.found)]
        if missing:
            raise self.error(f"its meaning does not use {missing[0]}")
        regions = tuple(self.region(buffer) for buffer in self.intrinsic.parameters)
        inputs = len(self.intrinsic.meaning.inputs)
        names = [region.buffer.name for region in regions]
        for number, name in enumerate(names[inputs:], inputs):
            if name in (*names[:number], *names[number + 1 :]):
                raise self.error(f"{name} is written and is another operand too")
        call = Invoke(self.intrinsic.name, regions)
        self.intrinsic.check(call)
        return call

    def statement(self, meaning: Stmt, stmt: Stmt) -> None:
        match meaning, stmt:
            case (For(), For()):
                wanted, extent = (
                    Simplifier(Bounds()).linear(e.extent).value for e in (meaning, stmt)
                )
                if wanted is None or wanted != extent:
                    raise self.error(
                        f"loop {stmt.variable} has the extent {extent}; required {wanted}"
                    )
                self.loops[meaning.variable] = stmt.variable
                self.extents[stmt.variable] = wanted
                self.statement(meaning.body, stmt.body)
            case (Block(statements=wanted_all), Block(statements=given)) if len(wanted_all) == len(
                given
            ):
                for one, other in zip(wanted_all, given, strict=True):
                    self.statement(one, other)
            case (If(condition=test, then=then, otherwise=None), If(otherwise=None)):
                self.value(test, stmt.condition)
                self.statement(then, stmt.then)
            case (Store(), Store()):
                self.write(meaning, stmt)
            case (Update(), Update()) if meaning.function is stmt.function:
                self.write(meaning, stmt)
            case _:
                wanted_name, name = (_name(each) for each in (meaning, stmt))
                raise self.error(f"found {name}; required {wanted_name}")

    def write(self, meaning: Store | Update, stmt: Store | Update) -> None:
        target = self.element(
            Load(meaning.buffer, meaning.indices), Load(stmt.buffer, stmt.indices)
        )
        if target is None:
            raise self.error(
                f"{stmt.buffer.name} is written in another way than {meaning.buffer.name}"
            )
        self.found += target
        self.value(meaning.value, stmt.value)

    def value(self, meaning: Expr, expr: Expr) -> None:
        matched = self.matched(meaning, expr)
        if matched is None:
            raise self.error("the values computed differ")
        self.found += matched

    def matched(self, meaning: Expr, expr: Expr) -> Found | None:
        """The elements of parameters in ``meaning``, if ``expr`` is of its form."""
        if isinstance(meaning, Load) and isinstance(expr, Load):
            return self.element(meaning, expr)
        if type(meaning) is not type(expr) or meaning.dtype is not expr.dtype:
            return None
        match meaning, expr:
            case (Constant(value=wanted), Constant(value=value)):
                return () if wanted == value else None
            case (Variable(name=wanted), Variable(name=name)):
                return () if self.loops.get(wanted) == name else None
            case (Binary(function=wanted), Binary(function=function)):
                if wanted is not function:
                    return None
                straight = self.all(operands(meaning), operands(expr))
                if straight is None and wanted in COMMUTATIVE:
                    return self.all(operands(meaning), operands(expr)[::-1])
                return straight
            case (Unary(function=wanted), Unary(function=function)) if wanted is not function:
                return None
            case (Cast(), Cast()) | (Bitcast(), Bitcast()):
                if operands(meaning)[0].dtype is not operands(expr)[0].dtype:
                    return None
        return self.all(operands(meaning), operands(expr))

    def all(self, meanings: tuple[Expr, ...], exprs: tuple[Expr, ...]) -> Found | None:
        found: list[tuple[str, _Pair]] = []
        for meaning, expr in zip(meanings, exprs, strict=True):
            matched = self.matched(meaning, expr)
            if matched is None:
                return None
            found += matched
        return tuple(found)

    def element(self, meaning: Load, expr: Load) -> Found | None:
        """The element, unless its place moves in another way than in the parameter."""
        if meaning.dtype is not expr.dtype:
            return None
        bounds = self.bounds
        for name, extent in self.extents.items():
            bounds = bounds.variable(name, (0, extent - 1))
        simplifier = Simplifier(bounds)
        names = {wanted: Variable(name) for wanted, name in self.loops.items()}
        wanted = tuple(
            simplifier.linear(substitute_expr(index, names)) for index in meaning.indices
        )
        place = tuple(simplifier.linear(index) for index in expr.indices)
        pair = _Pair(wanted, expr.buffer, place)
        if self.start(meaning.buffer, pair) is None:
            return None
        return ((meaning.buffer.name, pair),)

    def start(self, parameter: Buffer, pair: _Pair) -> tuple[tuple[Linear, int], ...] | None:
        """Start and size of the parameter's box in each dimension, from one element."""
        split = [self.divided(form) for form in pair.place]
        if len(pair.place) == len(parameter.shape):
            same = all(
                moving == index.terms for (_, moving), index in zip(split, pair.index, strict=True)
            )
            if same:
                return tuple(
                    (fixed.shifted(-index.constant), size)
                    for (fixed, _), index, size in zip(
                        split, pair.index, parameter.shape, strict=True
                    )
                )
        axes = [axis for axis, size in enumerate(parameter.shape) if size != 1]
        box: list[tuple[Linear, int]] = []
        for fixed, moving in split:
            if not moving:
                box.append((fixed, 1))
                continue
            axis = axes.pop(0) if axes else None
            if axis is None or pair.index[axis].terms != moving:
                return None
            box.append((fixed.shifted(-pair.index[axis].constant), parameter.shape[axis]))
        return None if axes else tuple(box)

    def divided(self, form: Linear) -> tuple[Linear, dict[Expr, int]]:
        """The part that stays in the nest, and the terms that move with its loops."""
        moving = {a: f for a, f in form.terms.items() if variables(a) & set(self.extents)}
        fixed = {a: f for a, f in form.terms.items() if a not in moving}
        return Linear(form.constant, fixed), moving

    def region(self, parameter: Buffer) -> Region:
        """The box of a parameter, the same for all its elements."""
        pairs = [pair for name, pair in self.found if name == parameter.name]
        boxes: dict[tuple[Buffer, tuple[Expr, ...], tuple[int, ...]], None] = {}
        for pair in pairs:
            box = self.start(parameter, pair)
            assert box is not None
            starts = tuple(start.to_expr() for start, _ in box)
            boxes[pair.buffer, starts, tuple(size for _, size in box)] = None
        if len(boxes) != 1:
            raise self.error(f"{parameter.name} is more than one box of a buffer")
        ((buffer, starts, sizes),) = boxes
        return Region(buffer, starts, sizes)


def _name(stmt: Stmt) -> str:
    match stmt:
        case For(variable=name):
            return f"loop {name}"
        case Update(buffer=buffer, function=function):
            return f"an update of {buffer.name} by {function}"
        case Store(buffer=buffer):
            return f"a store to {buffer.name}"
        case Block(statements=statements):
            return f"{len(statements)} statements"
        case _:
            return f"a statement {type(stmt).__name__.lower()}"
