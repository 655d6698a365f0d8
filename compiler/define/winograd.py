"""Loops of convolutions by Winograd's tiles.

    V = B^T x B of all channels; M = products of V and the weights, place by place; y = A^T M A,
    finished and stored

Of bytes V are words of 16 bits, M sums of 32 that may wrap, and y is multiplied and shifted to the
result (see ``integer_winograd``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.isa.frozen import frozen

from ..dtypes import DType
from ..graph.operators.contractions import Contract
from ..graph.operators.integer_winograd import IntegerWinograd, whole_transforms
from ..graph.operators.winograd import Transforms, Winograd, transforms
from ..graph.types import TensorType
from ..loops.expressions import Binary, BinaryFunction, Buffer, Constant, Expr, Load, Variable
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, If, Stmt, Store, block, loops
from .contractions import combine
from .operand import Anchor, Indices, Operand, Result, Scope, converted, index, over
from .transforms import Grid, Names, transformed

__all__ = ["WINOGRAD"]


def winograd(
    operator: Winograd | IntegerWinograd,
    operands: Sequence[Operand],
    results: Sequence[Result],
    scope: Scope,
) -> Stmt:
    """The three steps, each for all tiles of an image."""
    return _Winograd(operator, operands[0], operands[1], results[0], scope).nest()


@frozen
class _Winograd:
    operator: Winograd | IntegerWinograd
    x: Operand
    u: Operand
    result: Result
    scope: Scope

    @property
    def types(self) -> tuple[DType, DType]:
        """Element types of V and of M."""
        whole = isinstance(self.operator, IntegerWinograd)
        return (DType.INT16, DType.INT32) if whole else (DType.FLOAT32, DType.FLOAT32)

    @property
    def matrices(self) -> Transforms:
        """Matrices of the tile's transforms."""
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
        """A loop over the batch around the steps."""
        operator, scope = self.operator, self.scope
        batch, blocks, _, _, lanes = self.x.type.shape
        places, (down, across) = operator.size**2, operator.tiles
        outputs, width = self.u.type.shape[1], self.u.type.shape[4]
        images, (image,) = over((batch,), "n", scope)
        v = self._space("v", (places, blocks, down * across, lanes), self.types[0])
        m = self._space("m", (places, outputs, down * across, width), self.types[1])
        body = block(self._input(v, image), self._products(v, m), self._output(m, image))
        return loops(images, Allocate(v, Allocate(m, body)))

    def _space(self, stem: str, shape: tuple[int, ...], dtype: DType) -> Buffer:
        return Buffer(self.scope.fresh(stem), shape, dtype, Memory.LOCAL)

    def _input(self, v: Buffer, image: Expr) -> Stmt:
        """V of all channels."""
        operator = self.operator
        tile, size = operator.tile, operator.size
        nest, (channel, row, column, lane) = self._tiles("c", v.shape)
        top, left, place = row * tile, column * tile, row * operator.tiles[1] + column
        names = Names(self.scope)

        def element(i: int, j: int) -> Expr:
            where = (image, channel, top + i, left + j, lane)
            return names.bind(converted(self.x[where], v.dtype))

        read: Grid = [[element(i, j) for j in range(size)] for i in range(size)]
        values = transformed(self.matrices.input, read, names)
        stores = [
            Store(v, (index(i * size + j), channel, place, lane), values[i][j])
            for i in range(size)
            for j in range(size)
        ]
        return loops(nest, names.around(block(*stores)))

    def _products(self, v: Buffer, m: Buffer) -> Stmt:
        """M of all output channels."""
        left = Operand(_type(v), lambda indices, guarded: Load(v, indices), v)
        result = Result(_type(m), lambda indices, value: Store(m, indices, value), m)
        whole = isinstance(self.operator, IntegerWinograd)
        contraction = (_whole_products if whole else _products)(v.shape, m.shape)
        operands = (left, self.u)
        return combine(contraction, operands, result, self.scope, BinaryFunction.ADD, 0)

    def _output(self, m: Buffer, image: Expr) -> Stmt:
        """The elements of each tile, except for those of the last ones that are outside."""
        operator = self.operator
        tile, size = operator.tile, operator.size
        nest, (channel, row, column, lane) = self._tiles("b", m.shape)
        top, left, place = row * tile, column * tile, row * operator.tiles[1] + column
        names = Names(self.scope)

        def element(i: int, j: int) -> Expr:
            return names.bind(Load(m, (index(i * size + j), channel, place, lane)))

        read: Grid = [[element(i, j) for j in range(size)] for i in range(size)]
        values = transformed(self.matrices.output, read, names)

        def store(i: int, j: int) -> Stmt:
            value = self.finished(values[i][j])
            stored = self.result.store((image, channel, top + i, left + j, lane), value)
            condition: Expr | None = None
            for place, step, outputs in ((top, i, operator.rows), (left, j, operator.columns)):
                if step >= outputs % tile > 0:
                    test = place + step < outputs
                    condition = test if condition is None else condition & test
            return stored if condition is None else If(condition, stored)

        stores = [store(i, j) for i in range(tile) for j in range(tile)]
        return loops(nest, names.around(block(*stores)))

    def _tiles(
        self, stem: str, shape: tuple[int, ...]
    ) -> tuple[tuple[tuple[str, int], ...], Indices]:
        """Loops over the blocks, tiles and lanes of V or M."""
        extents = (shape[1], *self.operator.tiles, shape[3])
        names = tuple(self.scope.fresh(each) for each in (stem, "y", "x", "l"))
        found = tuple(zip(names, extents, strict=True))
        places = tuple(index(0) if size == 1 else Variable(name) for name, size in found)
        return tuple(each for each in found if each[1] != 1), places


def _products(v: tuple[int, ...], m: tuple[int, ...]) -> Contract:
    """Labels: place, output block, tile, output lane, input block, input lane.

    v: [places, input blocks, tiles, lanes] and m: [places, output blocks, tiles, lanes].
    """
    places, blocks, tiles, lanes = v

    def axes(*labels: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        return tuple(((label, 1),) for label in labels)

    sizes = (places, m[1], tiles, m[3], blocks, lanes)
    operands = (axes(0, 4, 2, 5), axes(0, 1, 4, 5, 3))
    return Contract(sizes, operands, axes(0, 1, 2, 3), DType.FLOAT32)


def _whole_products(v: tuple[int, ...], m: tuple[int, ...]) -> Contract:
    """As ``_products``, of pairs of words.

    Labels: place, output block, tile, output lane, input block, pair of input lanes, which of it.
    """
    places, blocks, tiles, lanes = v
    sizes = (places, m[1], tiles, m[3], blocks, lanes // 2, 2)
    x = (((0, 1),), ((4, 1),), ((2, 1),), ((5, 2), (6, 1)))
    u = tuple(((label, 1),) for label in (0, 1, 4, 5, 3, 6))
    output = tuple(((label, 1),) for label in range(4))
    return Contract(sizes, (x, u), output, DType.INT32)


def _type(buffer: Buffer) -> TensorType:
    return TensorType(buffer.shape, buffer.dtype)


WINOGRAD: Mapping[type[Any], Anchor] = {IntegerWinograd: winograd, Winograd: winograd}
