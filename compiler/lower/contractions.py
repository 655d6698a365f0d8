"""Loops of contractions: tiles of the output in registers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..define.operand import Indices, Operand, Result, converted, index, zero
from ..define.places import affine, plus
from ..graph.operators.contractions import Contract
from ..loops.expressions import (
    Binary,
    BinaryFunction,
    Buffer,
    Constant,
    Expr,
    Load,
    Variable,
)
from ..loops.expressions import (
    Scope as Memory,
)
from ..loops.intrinsic import PREFETCH
from ..loops.ir import (
    Allocate,
    Invoke,
    LoopKind,
    Region,
    Stmt,
    Store,
    Update,
    block,
    loops,
)
from ..schedule.steps.partial_lanes import combined
from .addends import without_addend
from .costly import is_costly
from .dots import LANES, Dots, find_dots
from .loop_order import order_output, order_summed, order_unrolled
from .packing import packed_stores
from .scope import Anchor, Scope
from .streams import find_stream
from .tiling import Machine, Tiling, choose_rows, choose_tiling

__all__ = ["CONTRACTIONS", "combine"]


def contract(
    operator: Contract, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """A tile of the output in registers at a time."""
    dots = find_dots(operator, operands)
    if dots is None:
        return combine(operator, operands, results[0], scope, BinaryFunction.ADD, 0)
    choose = choose_rows if dots.unrolled else choose_tiling
    tiling = _tiling(dots.packs, scope.machine.of_dots(), scope, choose)
    nest = _Contraction(
        dots.packs, operands, results[0], scope, tiling, BinaryFunction.ADD, 0, dots
    )
    return nest.nest()


def combine(
    operator: Contract,
    operands: Sequence[Operand],
    result: Result,
    scope: Scope,
    function: BinaryFunction,
    neutral: int | float | bool,
) -> Stmt:
    """A contraction with another function in place of the sum, and its neutral value."""
    tiling = _tiling(operator, scope.machine, scope)
    return _Contraction(operator, operands, result, scope, tiling, function, neutral).nest()


def _tiling(
    operator: Contract,
    machine: Machine,
    scope: Scope,
    choose: Callable[[Contract, Machine], Tiling] = choose_tiling,
) -> Tiling:
    """The rule's, or what was decided."""
    tiling = choose(operator, machine)
    tiles = scope.decisions.tiles_of(operator.kept)
    if tiles is not None:
        tiling = replace(tiling, tiles=tiles)
    scope.taken = replace(scope.taken, tiles=tuple(tiling.tiles.items()))
    return tiling


@dataclass(frozen=True, slots=True)
class _Part:
    """Values of one label: ``start + number``, the number below ``size``, in lanes or unrolled."""

    start: Expr
    vectors: int
    lanes: int


@dataclass(frozen=True, slots=True)
class _Contraction:
    operator: Contract
    operands: Sequence[Operand]
    result: Result
    scope: Scope
    tiling: Tiling
    function: BinaryFunction
    neutral: int | float | bool
    dots: Dots | None = None

    def nest(self) -> Stmt:
        """Loops over all labels of the output; the vector operand's are outside."""
        if 0 in (self.operator.sizes[label] for label in self.operator.kept):
            return block()
        return self._outer(order_output(self.operator, self.tiling.vector, self.scope), {})

    def _outer(self, order: list[int], parts: dict[int, _Part]) -> Stmt:
        """Loops over ``order``; ``parts`` has the labels of the loops around."""
        if not order:
            return self._tile(parts)
        label, *rest = order
        size = self.operator.sizes[label]
        lanes = self.tiling.lanes if label == self.tiling.vector else 1
        tile = self.tiling.tiles.get(label, 1)
        statements, done = [], 0
        while done < size:
            vectors, step = tile, tile * lanes
            if size - done < step:
                vectors = max((size - done) // lanes, 1)
                lanes = min(lanes, size - done)
                step = vectors * lanes
            count = (size - done) // step
            start: Expr = index(done)
            name = self.scope.fresh("o")
            if count > 1:
                moved = Variable(name) * step if step > 1 else Variable(name)
                start = moved + done if done else moved
            body = self._outer(rest, {**parts, label: _Part(start, vectors, lanes)})
            statements.append(loops(((name, count),), body) if count > 1 else body)
            done += count * step
        return block(*statements)

    def _tile(self, parts: Mapping[int, _Part]) -> Stmt:
        """One tile: registers set to 0, the sum, and its elements stored."""
        dtype = self.operator.dtype
        vectors = {label: parts[label].vectors for label in self.tiling.tiles}
        tiled = order_unrolled(self.operator, vectors)
        vector = self.tiling.vector
        lanes = parts[vector].lanes if vector is not None and vector in parts else 1
        summed_lanes = self.tiling.lanes if vector is not None and vector not in parts else 1
        shape = (*(parts[label].vectors for label in tiled), max(lanes, summed_lanes))
        register = Buffer(self.scope.fresh("acc"), shape, dtype, Memory.REGISTER)
        numbers = {label: self.scope.fresh("u") for label in tiled}
        lane = self.scope.fresh("l")
        unrolled = tuple((numbers[label], parts[label].vectors) for label in tiled)

        def each(
            body: Callable[[Indices], Stmt], width: int, kind: LoopKind = LoopKind.UNROLLED
        ) -> Stmt:
            place = Variable(lane) if width > 1 else zero()
            inner = body((*(Variable(name) for name, _ in unrolled), place))
            if width > 1:
                inner = loops(((lane, width),), inner, LoopKind.VECTOR)
            return loops(unrolled, inner, kind)

        def labels(with_lane: bool = True) -> dict[int, Expr]:
            found: dict[int, Expr] = {}
            for label, part in parts.items():
                value = part.start
                if label in numbers:
                    number: Expr = Variable(numbers[label])
                    value = plus(value, number * part.lanes if part.lanes > 1 else number)
                if part.lanes > 1 and with_lane:
                    value = plus(value, Variable(lane))
                found[label] = value
            return found

        nought = Constant(self.neutral, dtype)
        start = each(lambda place: Store(register, place, nought), shape[-1])
        ahead = self._ahead(parts)
        total = self._sum(register, each, labels(self.dots is None), lane, summed_lanes, ahead)
        if summed_lanes > 1:
            finish = self._across(register, unrolled, labels(), summed_lanes)
            return Allocate(register, block(start, total, finish))
        where = tuple(affine(axis, labels()) for axis in self.operator.output)
        finish = each(lambda at: self.result.store(where, Load(register, at)), lanes)
        costly = bool(unrolled) and is_costly(finish)
        if self.dots is not None and lanes == LANES and not costly:
            places = tuple(Variable(name) for name, _ in unrolled)
            body = self.result.store(where, Load(register, (*places, Variable(lane))))
            body, addend = without_addend(body, register)
            if addend is not None:
                start = each(lambda place: Store(register, place, addend), lanes)
                finish = each(lambda place: body, lanes)
            finish = packed_stores(body, lane, unrolled, self.scope) or finish
        if not costly:
            return Allocate(register, block(start, total, finish))
        tile = Buffer(self.scope.fresh("tile"), shape, dtype, Memory.LOCAL)
        copy = each(lambda at: Store(tile, at, Load(register, at)), lanes)
        finish = each(lambda at: self.result.store(where, Load(tile, at)), lanes, LoopKind.SERIAL)
        return Allocate(tile, block(Allocate(register, block(start, total, copy)), finish))

    def _sum(
        self,
        register: Buffer,
        each: Callable[[Callable[[Indices], Stmt], int], Stmt],
        labels: dict[int, Expr],
        lane: str,
        summed_lanes: int,
        ahead: Callable[[Mapping[int, Expr]], Stmt],
    ) -> Stmt:
        """Loops over the summed labels; the vector one, if it is summed, is the innermost."""
        names: list[tuple[str, Expr | int]] = []
        vector = self.tiling.vector
        for label in order_summed(self.operator, self.operands, vector, self.scope):
            size = self.operator.sizes[label]
            name = self.scope.fresh("k")
            labels[label] = Variable(name) if size > 1 else zero()
            if size != 1:
                names.append((name, size))
        if self.dots is not None:
            dots, starts = self.dots, self._places(labels)
            body = each(lambda at: dots.update(self.operands, starts, register, at), 1)
            kind = LoopKind.UNROLLED if dots.unrolled else LoopKind.SERIAL
            return loops(tuple(names), block(ahead(labels), body), kind)
        if summed_lanes == 1:
            product = self._product(labels)
            body = each(
                lambda at: Update(register, at, self.function, product), self._width(register)
            )
            return loops(tuple(names), block(ahead(labels), body))
        assert vector is not None
        size = self.operator.sizes[vector]
        name, rest = self.scope.fresh("k"), size % summed_lanes
        labels[vector] = Variable(name) * summed_lanes + Variable(lane)
        product = self._product(labels)
        body = each(lambda at: Update(register, at, self.function, product), summed_lanes)
        statements = [loops(((name, size // summed_lanes),), body)]
        if rest:
            labels[vector] = plus(index(size - rest), Variable(lane) if rest > 1 else zero())
            tail = self._product(labels)
            statements.append(each(lambda at: Update(register, at, self.function, tail), rest))
        return loops(tuple(names), block(*statements))

    def _ahead(self, parts: Mapping[int, _Part]) -> Callable[[Mapping[int, Expr]], Stmt]:
        """What brings the vectors of the next tile near, a step of the sum while this tile's is
        computed; given the labels of the step.
        """
        stream = find_stream(
            self.operator, self.operands, self.tiling.vector, self.scope.machine.streamed_bytes
        )
        if stream is None:
            return lambda labels: block()
        moving, firsts = parts[stream.moving], {label: own.start for label, own in parts.items()}
        starts = [
            plus(moving.start, index(moving.vectors + number)) for number in range(moving.vectors)
        ]

        def lines(labels: Mapping[int, Expr]) -> Stmt:
            there = [{**labels, **firsts, stream.moving: start} for start in starts]
            where = [tuple(affine(axis, own) for axis in stream.axes) for own in there]
            packed = (zero(),) * (len(stream.buffer.shape) - len(stream.axes))
            ones = (1,) * len(stream.buffer.shape)
            regions = tuple(Region(stream.buffer, (*each, *packed), ones) for each in where)
            return Invoke(PREFETCH, regions)

        return lines

    def _across(
        self,
        register: Buffer,
        unrolled: tuple[tuple[str, int], ...],
        labels: dict[int, Expr],
        lanes: int,
    ) -> Stmt:
        """The sum of a register's lanes, stored."""
        places = tuple(Variable(name) for name, _ in unrolled)
        values = [Load(register, (*places, index(lane))) for lane in range(lanes)]
        total = combined(self.function, values)
        where = tuple(affine(axis, labels) for axis in self.operator.output)
        return loops(unrolled, self.result.store(where, total), LoopKind.UNROLLED)

    def _width(self, register: Buffer) -> int:
        return register.shape[-1]

    def _places(self, labels: Mapping[int, Expr]) -> list[Indices]:
        """The indices of each operand."""
        return [tuple(affine(axis, labels) for axis in axes) for axes in self.operator.operands]

    def _product(self, labels: Mapping[int, Expr]) -> Expr:
        value: Expr | None = None
        for operand, where in zip(self.operands, self._places(labels), strict=True):
            factor = converted(operand[where], self.operator.dtype)
            value = factor if value is None else Binary(BinaryFunction.MUL, value, factor)
        assert value is not None
        return value


CONTRACTIONS: Mapping[type[Any], Anchor] = {Contract: contract}
