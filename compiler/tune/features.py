"""Features of a loop program for the cost model: extents, strides, footprints, arithmetic.

The statement that runs most often is described loop by loop, from the innermost; the rest of the
program by sums.  Sizes are logarithms to base 2 of one more.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import log2, prod

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..loops.expressions import Binary, BinaryFunction, Constant, Expr, Load, Select, Variable
from ..loops.ir import Allocate, For, Function, If, Invoke, Let, LoopKind, Stmt, Store, Update
from ..loops.traverse import bodies, expressions, operands, own_expressions, walk

__all__ = ["LENGTH", "function_features"]

LEVELS = 7
"""Serial loops around the main statement that are described, the innermost first."""
ACCESSES = 3
"""Memory accesses that are described: those of the largest footprint."""
OTHER_KINDS = (LoopKind.VECTOR, LoopKind.UNROLLED, LoopKind.PARALLEL)
NEAR = 3
"""Innermost serial loops along which an access's strides are told."""
TOTALS = 17
LENGTH = TOTALS + LEVELS + ACCESSES * (3 + NEAR + LEVELS)
MULTIPLY_ADDS, LOADS, LATENCY = 2, 2, 4
"""Operations that a core starts in a cycle, and cycles until a result is there, for an estimate."""

Loop = tuple[str, int, LoopKind]


@frozen
class _Access:
    """strides: in bytes, by loop variable."""

    bytes: int
    strides: dict[str, int]


@frozen
class _Leaf:
    """A statement without a body, and the loops around it, outermost first."""

    loops: tuple[Loop, ...]
    accesses: tuple[_Access, ...]
    operations: int

    @property
    def count(self) -> int:
        """Times that it runs."""
        return prod(extent for _, extent, _ in self.loops)

    @property
    def steps(self) -> int:
        """Times that what is unrolled and in lanes runs as a whole."""
        return self.count // (self.of(LoopKind.VECTOR) * self.of(LoopKind.UNROLLED))

    @property
    def loads_of_step(self) -> int:
        """Registers that one step fills, where those that do not move are filled once."""
        unrolled = [loop for loop in self.loops if loop[2] is LoopKind.UNROLLED]
        return sum(
            prod(extent for name, extent, _ in unrolled if access.strides.get(name))
            for access in self.accesses[:-1]
        )

    @property
    def loads(self) -> int:
        """Loads of all steps."""
        return self.steps * self.loads_of_step

    @property
    def cycles(self) -> float:
        """Least cycles of arithmetic, loads and the latency of sums, for all steps."""
        arithmetic = self.of(LoopKind.UNROLLED) * max(self.operations, 1) / MULTIPLY_ADDS / 2
        return self.steps * (0.5 + max(arithmetic, self.loads_of_step / LOADS, LATENCY))

    def of(self, kind: LoopKind) -> int:
        """Iterations of the loops of a kind around it."""
        return prod(extent for _, extent, own in self.loops if own is kind)


def function_features(function: Function) -> NDArray[np.float32]:
    """float32[LENGTH]."""
    leaves = list(_leaves(function.body, ()))
    if not leaves:
        return np.zeros(LENGTH, np.float32)
    main = max(leaves, key=lambda leaf: leaf.count * (1 + leaf.operations))
    total = sum(leaf.count for leaf in leaves)
    steps = sum(leaf.count // leaf.of(LoopKind.VECTOR) for leaf in leaves)
    code = sum(leaf.of(LoopKind.UNROLLED) for leaf in leaves)
    moved = sum(leaf.count * sum(each.bytes for each in leaf.accesses) for leaf in leaves)
    guards = sum(isinstance(stmt, If) for stmt in walk(function.body))
    selects = sum(isinstance(node, Select) for node in expressions(function.body))
    local = sum(
        prod(stmt.buffer.shape) * stmt.buffer.dtype.bytes
        for stmt in walk(function.body)
        if isinstance(stmt, Allocate)
    )
    found = [
        *map(_log, (main.count, total, steps, code, moved, local)),
        *(_log(main.of(kind)) for kind in OTHER_KINDS),
        main.operations,
        guards,
        selects,
        _log(sum(leaf.cycles for leaf in leaves)),
        _log(main.cycles),
        _log(sum(leaf.loads for leaf in leaves)),
        main.loads_of_step / max(main.of(LoopKind.UNROLLED), 1),
        len(leaves),
    ]
    assert len(found) == TOTALS
    serial = [loop for loop in reversed(main.loops) if loop[2] is LoopKind.SERIAL][:LEVELS]
    found += _padded([_log(extent) for _, extent, _ in serial], LEVELS)
    accesses = sorted(main.accesses, key=lambda each: _footprint(each, main.loops), reverse=True)
    for access in accesses[:ACCESSES]:
        found += _access_features(access, main, serial)
    found += [0.0] * (LENGTH - len(found))
    return np.array(found, np.float32)


def _access_features(access: _Access, leaf: _Leaf, serial: Sequence[Loop]) -> list[float]:
    """Stride along lanes and along the innermost loops, registers it fills, bytes of a step; then
    the bytes it touches in each loop.
    """
    strides = [_log(abs(access.strides.get(name, 0))) for name, _, _ in serial[:NEAR]]
    lanes = [name for name, _, kind in leaf.loops if kind is LoopKind.VECTOR]
    near = [access.strides.get(name, 0) for name in lanes]
    unrolled = [loop for loop in leaf.loops if loop[2] is LoopKind.UNROLLED]
    registers = prod(extent for name, extent, _ in unrolled if access.strides.get(name))
    inner = [loop for loop in leaf.loops if loop[2] is not LoopKind.SERIAL]
    features = [
        _log(max(map(abs, near), default=0)),
        *_padded(strides, NEAR),
        _log(registers),
        _log(_footprint(access, inner)),
    ]
    levels = []
    for loop in serial:
        inner.append(loop)
        levels.append(_log(_footprint(access, inner)))
    return features + _padded(levels, LEVELS)


def _footprint(access: _Access, loops: Sequence[Loop]) -> int:
    """Bytes of different elements, where no two iterations of moving loops meet."""
    return access.bytes * prod(extent for name, extent, _ in loops if access.strides.get(name))


def _leaves(stmt: Stmt, around: tuple[Loop, ...], named: tuple[Expr, ...] = ()) -> Iterator[_Leaf]:
    """named: values of the lets directly around."""
    match stmt:
        case For(variable=name, extent=extent, kind=kind, body=body):
            count = int(extent.value) if isinstance(extent, Constant) else 1
            yield from _leaves(body, (*around, (name, count, kind)))
        case Store() | Update():
            nodes = list(_values((*named, *own_expressions(stmt))))
            accesses = [
                _access(node.buffer.shape, node.buffer.dtype.bytes, node.indices)
                for node in nodes
                if isinstance(node, Load)
            ]
            accesses.append(_access(stmt.buffer.shape, stmt.buffer.dtype.bytes, stmt.indices))
            operations = sum(not isinstance(n, Load | Variable | Constant) for n in nodes)
            yield _Leaf(around, tuple(accesses), operations)
        case Invoke(operands=regions):
            accesses = [
                _access(each.buffer.shape, each.buffer.dtype.bytes, each.start) for each in regions
            ]
            yield _Leaf(around, tuple(accesses), max(prod(each.shape) for each in regions))
        case Let(value=value, body=body):
            yield from _leaves(body, around, (*named, value))
        case _:
            for body in bodies(stmt):
                yield from _leaves(body, around)


def _values(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Nodes of values, each once; those of indices are left out."""
    stack, seen = list(roots), set[int]()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if not isinstance(node, Load):
            stack += operands(node)


def _access(shape: Sequence[int], size: int, indices: Sequence[Expr]) -> _Access:
    strides: dict[str, int] = {}
    step = size
    for extent, expr in zip(reversed(shape), reversed(indices), strict=True):
        for name, factor in _linear(expr).items():
            strides[name] = strides.get(name, 0) + factor * step
        step *= extent
    return _Access(size, strides)


def _linear(expr: Expr) -> dict[str, int]:
    """Coefficients of variables, as far as the expression is linear; others count as 1."""
    match expr:
        case Variable(name=name):
            return {name: 1}
        case Binary(function=BinaryFunction.ADD, left=a, right=b):
            return _sum(_linear(a), _linear(b), 1)
        case Binary(function=BinaryFunction.SUB, left=a, right=b):
            return _sum(_linear(a), _linear(b), -1)
        case Binary(function=BinaryFunction.MUL, left=a, right=Constant(value=factor)):
            return {name: own * int(factor) for name, own in _linear(a).items()}
        case Binary(left=a, right=b):
            return _sum(_linear(a), _linear(b), 1)
        case _:
            return {}


def _sum(a: dict[str, int], b: dict[str, int], sign: int) -> dict[str, int]:
    return {name: a.get(name, 0) + sign * b.get(name, 0) for name in {*a, *b}}


def _padded(values: list[float], length: int) -> list[float]:
    return values + [0.0] * (length - len(values))


def _log(value: float) -> float:
    return log2(1 + value)
