"""Layers without what is their own, so that those that are alike have one schedule.

    q[c + 2, y, x, l] * k[...], then + -7.0      ->      tensor0[c, y, x, l] * ..., then + number1

The heads and windows of an attention differ in the names of their tensors, in numbers such as zero
points, and in the channels and pixels at which they begin to read and write.  No schedule depends
on these.  Numbers of indices are shapes, and stay; so do 0 and 1, which expressions may do without.
"""

from collections.abc import Callable, Mapping

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...loops.expressions import Binary, BinaryFunction, Buffer, Constant, Expr, Load, Variable
from ...loops.ir import Function, Stmt, Store, Update
from ...loops.rewrite import map_buffers, map_expr, map_statement
from ...loops.traverse import loads, walk

__all__ = ["Alike"]

Start = tuple[int, ...]


@frozen
class Alike:
    """A layer that many are, and what makes it one of them.

    function: of all.  name, numbers, tensors: of the one, its numbers and tensors in their order.
    starts: of each tensor, the first place in each dimension.
    """

    function: Function
    name: str
    numbers: tuple[Constant, ...]
    tensors: tuple[str, ...]
    starts: tuple[Start, ...]

    @staticmethod
    def of(function: Function, constants: tuple[str, ...]) -> "Alike":
        """``function`` with names of its own only for ``constants``."""
        buffers = (*function.inputs, *function.outputs)
        tensors = tuple(dict.fromkeys(x.name for x in buffers if x.name not in constants))
        starts = _starts(function.body, tensors)
        numbers: list[Constant] = []

        def variable(expr: Expr) -> Expr:
            if not isinstance(expr, Constant) or expr.dtype is DType.INT64 or expr.value in (0, 1):
                return expr
            numbers.append(expr)
            return Variable(f"number{len(numbers)}", expr.dtype)

        less = {name: tuple(-place for place in start) for name, start in starts.items()}
        body = _moved(function.body, less, variable)
        names = {each: f"tensor{n}" for n, each in enumerate(tensors)}
        plain = _renamed(replace(function, body=body), "", names)
        return Alike(plain, function.name, tuple(numbers), tensors, tuple(starts.values()))

    def own(self, function: Function) -> Function:
        """The one of ``function``, which was made of that of all."""
        values = {f"number{n}": each for n, each in enumerate(self.numbers, 1)}

        def number(expr: Expr) -> Expr:
            return values.get(expr.name, expr) if isinstance(expr, Variable) else expr

        names = {f"tensor{n}": each for n, each in enumerate(self.tensors)}
        named = _renamed(function, self.name, names)
        more = dict(zip(self.tensors, self.starts, strict=True))
        return replace(named, body=_moved(named.body, more, number))


def _starts(body: Stmt, tensors: tuple[str, ...]) -> dict[str, Start]:
    """The number that is added to all indices of each tensor, in each dimension."""
    found: dict[str, list[Start]] = {name: [] for name in tensors}

    for read in loads(body):
        if read.buffer.name in found:
            found[read.buffer.name].append(tuple(map(_start, read.indices)))
    for each in walk(body):
        if isinstance(each, Store | Update) and each.buffer.name in found:
            found[each.buffer.name].append(tuple(map(_start, each.indices)))
    return {
        name: tuple(places[0] if len(set(places)) == 1 else 0 for places in zip(*each, strict=True))
        for name, each in found.items()
    }


def _start(index: Expr) -> int:
    match index:
        case Constant(value=value):
            return int(value)
        case Binary(function=BinaryFunction.ADD, right=Constant(value=value)):
            return int(value)
        case _:
            return 0


def _moved(body: Stmt, starts: Mapping[str, Start], change: Callable[[Expr], Expr]) -> Stmt:
    """``body`` with numbers added to the indices of tensors, and other expressions changed."""

    def indices(buffer: Buffer, own: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(map(_plus, own, starts[buffer.name]))

    def expr(node: Expr) -> Expr:
        if isinstance(node, Load) and node.buffer.name in starts:
            return Load(node.buffer, indices(node.buffer, node.indices))
        return change(node)

    def statement(node: Stmt) -> Stmt:
        if isinstance(node, Store | Update) and node.buffer.name in starts:
            return replace(node, indices=indices(node.buffer, node.indices))
        return node

    return map_statement(body, lambda node: map_expr(node, expr), statement)


def _plus(index: Expr, number: int) -> Expr:
    """``index + number``, in the form that simplified indices have."""
    if not number:
        return index
    match index:
        case Constant(value=value):
            return Constant(int(value) + number, DType.INT64)
        case Binary(function=BinaryFunction.ADD, left=left, right=Constant(value=value)):
            total = int(value) + number
            return left + total if total else left
        case _:
            return index + number


def _renamed(function: Function, name: str, names: Mapping[str, str]) -> Function:
    """``function`` as ``name``, with other names of some buffers."""

    def change(buffer: Buffer) -> Buffer:
        return replace(buffer, name=names[buffer.name]) if buffer.name in names else buffer

    inputs, outputs = (tuple(map(change, each)) for each in (function.inputs, function.outputs))
    return Function(name, inputs, outputs, map_buffers(function.body, change))
