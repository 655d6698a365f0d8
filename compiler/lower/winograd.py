"""Loops of convolutions by Winograd's tiles.

    for a few rows of tiles: V = B^T x B of all channels; M = products of V and the weights, place
    by place; y = A^T M A, finished and stored

Of bytes V are words of 16 bits, M sums of 32 that may wrap, and y is multiplied and shifted to the
result (see ``integer_winograd``).

How many rows, ``winograd_rows`` says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..define.operand import Operand, Result, converted, index
from ..dtypes import DType
from ..graph.operators.contractions import Contract
from ..graph.operators.integer_winograd import IntegerWinograd, whole_transforms
from ..graph.operators.winograd import Transforms, Winograd, transforms
from ..graph.types import TensorType
from ..loops.expressions import Binary, BinaryFunction, Buffer, Constant, Expr, Load, Variable
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, If, LoopKind, Stmt, Store, block, loops
from ..schedule.steps.pack_stores import LANES, PACKED, find_bytes, pack
from .contractions import combine
from .scope import Anchor, Scope
from .transforms import Grid, Names, transformed
from .winograd_rows import rows_together

__all__ = ["WINOGRAD", "products", "whole_products"]


def winograd(
    operator: Winograd | IntegerWinograd,
    operands: Sequence[Operand],
    results: Sequence[Result],
    scope: Scope,
) -> Stmt:
    """Blocks of rows of tiles; the last one by itself, as its tiles may be cut."""
    return _Winograd(operator, operands[0], operands[1], results[0], scope).nest()


@dataclass(frozen=True, slots=True)
class _Winograd:
    operator: Winograd | IntegerWinograd
    x: Operand
    u: Operand
    result: Result
    scope: Scope

    @property
    def types(self) -> tuple[DType, DType]:
        """Of V and M."""
        whole = isinstance(self.operator, IntegerWinograd)
        return (DType.INT16, DType.INT32) if whole else (DType.FLOAT32, DType.FLOAT32)

    @property
    def matrices(self) -> Transforms:
        """Of the tile."""
        if isinstance(self.operator, IntegerWinograd):
            return whole_transforms(self.operator.tile).matrices
        return transforms(self.operator.tile)

    def finished(self, value: Expr) -> Expr:
        """A result of what the transform gives."""
        if not isinstance(self.operator, IntegerWinograd):
            return value
        whole = whole_transforms(self.operator.tile)
        multiple = value * Constant(whole.inverse, DType.INT32)
        return Binary(BinaryFunction.SHR, multiple, Constant(whole.shift, DType.INT32))

    def nest(self) -> Stmt:
        """Loops over the batch and over blocks of rows of tiles."""
        down, batch = self.operator.tiles[0], self.x.type.shape[0]
        threads = self.scope.machine.threads
        v, m = (kind.bytes for kind in self.types)
        rows = rows_together(self.operator, self.x.type, self.u.type, (v, m), threads)
        if self.scope.decisions.rows is not None:
            rows = min(down, max(1, self.scope.decisions.rows))
        self.scope.taken = replace(self.scope.taken, rows=rows)
        name, number = self.scope.fresh("n"), self.scope.fresh("o")
        image: Expr = Variable(name) if batch > 1 else index(0)
        count = (down - 1) // rows
        statements = []
        if count and threads > 1:
            first = self._rows(image, Variable(number) * rows, rows, cut=False)
            last = self._rows(image, index(count * rows), down - count * rows, cut=True)
            either = If(Variable(number) < index(count), first, last)
            return loops((*(((name, batch),) if batch > 1 else ()), (number, count + 1)), either)
        if count:
            start = Variable(number) * rows if count > 1 else index(0)
            piece = self._rows(image, start, rows, cut=False)
            statements.append(loops(((number, count),), piece) if count > 1 else piece)
        statements.append(self._rows(image, index(count * rows), down - count * rows, cut=True))
        body = block(*statements)
        return loops(((name, batch),), body) if batch > 1 else body

    def _rows(self, image: Expr, start: Expr, rows: int, cut: bool) -> Stmt:
        """``rows`` rows of tiles from ``start``; ``cut``: they are the last ones."""
        operator, scope = self.operator, self.scope
        places, tiles = operator.size**2, rows * operator.tiles[1]
        _, blocks, _, _, lanes = self.x.type.shape
        outputs, width = self.u.type.shape[1], self.u.type.shape[4]
        v_type, m_type = self.types
        v = Buffer(scope.fresh("v"), (places, blocks, tiles, lanes), v_type, Memory.LOCAL)
        m = Buffer(scope.fresh("m"), (places, outputs, tiles, width), m_type, Memory.LOCAL)
        body = block(
            self._input(v, image, start, rows),
            self._products(v, m),
            self._output(m, image, start, rows, cut),
        )
        return Allocate(v, Allocate(m, body))

    def _input(self, v: Buffer, image: Expr, start: Expr, rows: int) -> Stmt:
        """V of all channels."""
        operator, scope = self.operator, self.scope
        tile, size, across = operator.tile, operator.size, operator.tiles[1]
        depth, row, column, lane = (scope.fresh(stem) for stem in ("c", "y", "x", "l"))
        down, along = _variable(row, rows), _variable(column, across)
        top, left, place = (start + down) * tile, along * tile, down * across + along
        channel = _variable(depth, v.shape[1])
        names = Names(scope)
        read: Grid = [
            [
                names.bind(
                    converted(self.x[(image, channel, top + i, left + j, Variable(lane))], v.dtype)
                )
                for j in range(size)
            ]
            for i in range(size)
        ]
        values = transformed(self.matrices.input, read, names)
        stores = [
            Store(v, (index(i * size + j), channel, place, Variable(lane)), values[i][j])
            for i in range(size)
            for j in range(size)
        ]
        body = loops(((lane, v.shape[3]),), names.around(block(*stores)), LoopKind.VECTOR)
        return _nest(((depth, v.shape[1]), (row, rows), (column, across)), body)

    def _products(self, v: Buffer, m: Buffer) -> Stmt:
        """M of all output channels."""
        left = Operand(_type(v), lambda indices, guarded: Load(v, indices), v)
        result = Result(_type(m), lambda indices, value: Store(m, indices, value), m)
        operands = (left, self.u)
        if isinstance(self.operator, IntegerWinograd):
            whole = whole_products(v.shape, m.shape)
            return combine(whole, operands, result, self.scope, BinaryFunction.ADD, 0)
        contraction = products(v.shape, m.shape)
        return combine(contraction, operands, result, self.scope, BinaryFunction.ADD, 0)

    def _output(self, m: Buffer, image: Expr, start: Expr, rows: int, cut: bool) -> Stmt:
        """Whole tiles, and those that are cut at the right and at the bottom."""
        operator = self.operator
        tile, across = operator.tile, operator.tiles[1]
        bottom = operator.rows % tile if cut else 0
        right = operator.columns % tile
        bands = [(0, rows - bool(bottom), tile), (rows - 1, 1, bottom)]
        spans = [(0, across - bool(right), tile), (across - 1, 1, right)]
        return block(
            *(
                self._tiles(m, image, start, (band, span))
                for band in bands
                for span in spans
                if band[1] and band[2] and span[1] and span[2]
            )
        )

    def _tiles(
        self,
        m: Buffer,
        image: Expr,
        start: Expr,
        part: tuple[tuple[int, int, int], tuple[int, int, int]],
    ) -> Stmt:
        """part: of rows and columns of tiles the first, their number, and the outputs kept."""
        scope, size, tile = self.scope, self.operator.size, self.operator.tile
        (first_row, rows, high), (first_column, columns, wide) = part
        output, row, column, lane = (scope.fresh(stem) for stem in ("b", "y", "x", "l"))
        down = _variable(row, rows) + first_row
        along = _variable(column, columns) + first_column
        place = down * self.operator.tiles[1] + along
        channel = _variable(output, m.shape[1])
        names = Names(scope)
        read: Grid = [
            [
                names.bind(Load(m, (index(i * size + j), channel, place, Variable(lane))))
                for j in range(size)
            ]
            for i in range(size)
        ]
        values = transformed(self.matrices.output, read, names)
        stores = [
            self.result.store(
                (image, channel, (start + down) * tile + i, along * tile + j, Variable(lane)),
                self.finished(values[i][j]),
            )
            for i in range(high)
            for j in range(wide)
        ]
        body = self._stored(stores, wide, names, lane, m.shape[3])
        return _nest(((output, m.shape[1]), (row, rows), (column, columns)), body)

    def _stored(
        self, stores: Sequence[Stmt], wide: int, names: Names, lane: str, lanes: int
    ) -> Stmt:
        """All stores of a tile, rows of ``wide``; whole rows of bytes are packed."""
        found = [find_bytes(each, lane) for each in stores]
        able = [each for each in found if each is not None]
        if lanes != LANES or wide != PACKED or len(able) < len(stores):
            body = names.around(block(*stores))
            return loops(((lane, lanes),), body, LoopKind.VECTOR)
        registers = [
            Buffer(self.scope.fresh("near"), (lanes,), DType.INT32, Memory.REGISTER) for _ in able
        ]
        moved = [each.moved(own, lane) for each, own in zip(able, registers, strict=True)]
        result: Stmt = block(
            loops(((lane, lanes),), names.around(block(*moved)), LoopKind.VECTOR),
            *(
                pack(able[first : first + wide], registers[first : first + wide], 3)
                for first in range(0, len(able), wide)
            ),
        )
        for register in registers:
            result = Allocate(register, result)
        return result


def products(v: tuple[int, ...], m: tuple[int, ...]) -> Contract:
    """Labels: place, output block, tile, output lane, input block, input lane.

    v: [places, input blocks, tiles, lanes] and m: [places, output blocks, tiles, lanes].
    """
    places, blocks, tiles, lanes = v

    def axes(*labels: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        return tuple(((label, 1),) for label in labels)

    sizes = (places, m[1], tiles, m[3], blocks, lanes)
    operands = (axes(0, 4, 2, 5), axes(0, 1, 4, 5, 3))
    return Contract(sizes, operands, axes(0, 1, 2, 3), DType.FLOAT32)


def whole_products(v: tuple[int, ...], m: tuple[int, ...]) -> Contract:
    """As ``products``, of pairs of words.

    Labels: place, output block, tile, output lane, input block, pair of input lanes, which of it.
    """
    places, blocks, tiles, lanes = v
    sizes = (places, m[1], tiles, m[3], blocks, lanes // 2, 2)
    x = (((0, 1),), ((4, 1),), ((2, 1),), ((5, 2), (6, 1)))
    u = tuple(((label, 1),) for label in (0, 1, 4, 5, 3, 6))
    output = tuple(((label, 1),) for label in range(4))
    return Contract(sizes, (x, u), output, DType.INT32)


def _variable(name: str, size: int) -> Expr:
    return Variable(name) if size > 1 else index(0)


def _nest(nest: Sequence[tuple[str, int]], body: Stmt) -> Stmt:
    return loops(tuple((name, size) for name, size in nest if size > 1), body)


def _type(buffer: Buffer) -> TensorType:
    return TensorType(buffer.shape, buffer.dtype)


WINOGRAD: Mapping[type[Any], Anchor] = {IntegerWinograd: winograd, Winograd: winograd}
