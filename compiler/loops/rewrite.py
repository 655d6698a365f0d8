"""Traversal and substitution of loop programs.

Expressions are graphs: an operand may be shared.  Everything here visits each node once and uses
no recursion on expressions, so that deep and shared ones cost what they hold.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar, assert_never

from .expressions import (
    Binary,
    Bitcast,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    MultiplyAdd,
    Select,
    Unary,
    Variable,
)
from .ir import (
    Allocate,
    Block,
    For,
    If,
    Invoke,
    Let,
    Stmt,
    Store,
    Update,
    While,
    block,
)

__all__ = [
    "bodies",
    "expressions",
    "fold",
    "loads",
    "map_buffers",
    "map_expr",
    "map_statement",
    "operands",
    "own_expressions",
    "substitute",
    "substitute_expr",
    "variables",
    "walk",
    "with_bodies",
    "with_operands",
    "written",
]

T = TypeVar("T")


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly below ``expr``."""
    match expr:
        case Binary(left=left, right=right):
            return (left, right)
        case Load(indices=indices):
            return indices
        case Constant() | Variable():
            return ()
        case Unary(operand=operand) | Cast(operand=operand) | Bitcast(operand=operand):
            return (operand,)
        case Select(condition=condition, chosen=chosen, other=other):
            return (condition, chosen, other)
        case MultiplyAdd(left=left, right=right, addend=addend):
            return (left, right, addend)
        case _:
            assert_never(expr)


def with_operands(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """``expr`` with other operands; itself when they are the same objects."""
    if all(a is b for a, b in zip(operands(expr), new, strict=True)):
        return expr
    match expr:
        case Binary(function=function):
            return Binary(function, new[0], new[1])
        case Load(buffer=buffer):
            return Load(buffer, new)
        case Constant() | Variable():
            return expr
        case Unary(function=test):
            return Unary(test, new[0])
        case Cast(dtype=dtype):
            return Cast(dtype, new[0])
        case Bitcast(dtype=dtype):
            return Bitcast(dtype, new[0])
        case Select():
            return Select(new[0], new[1], new[2])
        case MultiplyAdd():
            return MultiplyAdd(new[0], new[1], new[2])
        case _:
            assert_never(expr)


def fold(
    expr: Expr,
    combine: Callable[[Expr, tuple[T, ...]], T],
    memo: dict[int, tuple[Expr, T]] | None = None,
) -> T:
    """``combine(node, results of its operands)`` of every node, operands first; the root's result.

    ``memo`` keeps results by identity between calls (and their nodes alive).
    """
    known: dict[int, tuple[Expr, T]] = {} if memo is None else memo
    stack = [expr]
    while stack:
        node = stack[-1]
        if id(node) in known:
            stack.pop()
            continue
        below = operands(node)
        waiting = [each for each in below if id(each) not in known]
        if waiting:
            stack += reversed(waiting)
            continue
        stack.pop()
        known[id(node)] = (node, combine(node, tuple(known[id(each)][1] for each in below)))
    return known[id(expr)][1]


def map_expr(
    expr: Expr,
    change: Callable[[Expr], Expr],
    memo: dict[int, tuple[Expr, Expr]] | None = None,
) -> Expr:
    """Every node, operands first, replaced by ``change(node with its new operands)``."""
    return fold(expr, lambda node, new: change(with_operands(node, new)), memo)


def walk(stmt: Stmt) -> Iterator[Stmt]:
    """The statement and all below it, in the order of the text."""
    stack = [stmt]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(bodies(node))


def bodies(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly below ``stmt``."""
    match stmt:
        case Block(statements=statements):
            return statements
        case For(body=body) | While(body=body) | Allocate(body=body) | Let(body=body):
            return (body,)
        case If(then=then, otherwise=otherwise):
            return (then,) if otherwise is None else (then, otherwise)
        case Store() | Update() | Invoke():
            return ()
        case _:
            assert_never(stmt)


def with_bodies(stmt: Stmt, new: tuple[Stmt, ...]) -> Stmt:
    """``stmt`` with other statements directly below it; nested blocks are flattened."""
    match stmt:
        case Block():
            return block(*new)
        case If(condition=condition, otherwise=otherwise):
            return If(condition, new[0], None if otherwise is None else new[1])
        case For() | While() | Allocate() | Let():
            return replace(stmt, body=new[0])
        case _:
            return stmt


def own_expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of ``stmt`` itself, not of its bodies: of a write, its indices, its value."""
    match stmt:
        case Store(indices=indices, value=value) | Update(indices=indices, value=value):
            return (*indices, value)
        case For(extent=extent):
            return (extent,)
        case If(condition=condition) | While(condition=condition):
            return (condition,)
        case Let(value=value):
            return (value,)
        case Invoke(operands=regions):
            return tuple(start for region in regions for start in region.start)
        case Block() | Allocate():
            return ()
        case _:
            assert_never(stmt)


def expressions(root: Expr | Stmt) -> Iterator[Expr]:
    """Every expression node in ``root``, each object once."""
    stack: list[Expr] = []
    if isinstance(root, Block | For | While | If | Allocate | Let | Store | Update | Invoke):
        for stmt in walk(root):
            stack += own_expressions(stmt)
        stack.reverse()
    else:
        stack.append(root)
    seen: dict[int, Expr] = {}
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            yield node
            stack += reversed(operands(node))


def loads(root: Expr | Stmt) -> Iterator[Load]:
    """Every load in ``root``, each object once."""
    return (node for node in expressions(root) if isinstance(node, Load))


def written(root: Stmt) -> set[str]:
    """The names of the buffers that ``root`` may write; an intrinsic may write all its operands."""
    names: set[str] = set()
    for stmt in walk(root):
        if isinstance(stmt, Store | Update):
            names.add(stmt.buffer.name)
        elif isinstance(stmt, Invoke):
            names |= {region.buffer.name for region in stmt.operands}
    return names


def variables(root: Expr | Stmt) -> set[str]:
    """The names of the variables that ``root`` mentions."""
    return {node.name for node in expressions(root) if isinstance(node, Variable)}


def map_statement(
    stmt: Stmt,
    change_expr: Callable[[Expr], Expr] | None = None,
    change: Callable[[Stmt], Stmt] | None = None,
) -> Stmt:
    """Bodies first, each statement with its own expressions changed, then itself changed.

    ``change_expr`` gets whole expressions.  What does not change stays the same object; nested
    blocks that ``change`` makes are flattened.
    """

    def expr(node: Expr) -> Expr:
        return node if change_expr is None else change_expr(node)

    def recur(node: Stmt) -> Stmt:
        new = _rebuilt(node, expr, recur)
        return new if change is None else change(new)

    return recur(stmt)


def _rebuilt(node: Stmt, expr: Callable[[Expr], Expr], recur: Callable[[Stmt], Stmt]) -> Stmt:
    match node:
        case Block(statements=statements):
            new = tuple(recur(each) for each in statements)
            same = all(a is b for a, b in zip(new, statements, strict=True))
            return node if same else block(*new)
        case For(extent=extent, body=body):
            new_extent, new_body = expr(extent), recur(body)
            if new_extent is extent and new_body is body:
                return node
            return replace(node, extent=new_extent, body=new_body)
        case While(condition=condition, body=body):
            return replace(node, condition=expr(condition), body=recur(body))
        case If(condition=condition, then=then, otherwise=otherwise):
            test, first = expr(condition), recur(then)
            second = None if otherwise is None else recur(otherwise)
            if test is condition and first is then and second is otherwise:
                return node
            return If(test, first, second)
        case Allocate(buffer=buffer, body=body):
            new_body = recur(body)
            return node if new_body is body else Allocate(buffer, new_body)
        case Let(variable=variable, value=value, body=body):
            new_value, new_body = expr(value), recur(body)
            same = new_value is value and new_body is body
            return node if same else Let(variable, new_value, new_body)
        case Store(indices=indices, value=value) | Update(indices=indices, value=value):
            new_indices, new_value = tuple(expr(index) for index in indices), expr(value)
            if new_value is value and all(
                a is b for a, b in zip(new_indices, indices, strict=True)
            ):
                return node
            return replace(node, indices=new_indices, value=new_value)
        case Invoke(operands=regions):
            new_regions = (replace(each, start=tuple(map(expr, each.start))) for each in regions)
            return replace(node, operands=tuple(new_regions))
        case _:
            assert_never(node)


def substitute(root: Stmt, values: Mapping[str, Expr]) -> Stmt:
    """``root`` with free variables replaced; a loop or ``Let`` of the same name hides them.

    The values must not mention a variable that ``root`` binds.
    """
    if not values:
        return root
    memo: dict[int, tuple[Expr, Expr]] = {}

    def change(node: Expr) -> Expr:
        return values.get(node.name, node) if isinstance(node, Variable) else node

    def expr(node: Expr) -> Expr:
        return map_expr(node, change, memo)

    def recur(node: Stmt) -> Stmt:
        bound = None
        if isinstance(node, For):
            bound = node.variable
        elif isinstance(node, Let):
            bound = node.variable.name
        if bound in values:
            rest = {name: value for name, value in values.items() if name != bound}
            if isinstance(node, For):
                return replace(node, extent=expr(node.extent), body=substitute(node.body, rest))
            assert isinstance(node, Let)
            return replace(node, value=expr(node.value), body=substitute(node.body, rest))
        return _rebuilt(node, expr, recur)

    return recur(root)


def substitute_expr(root: Expr, values: Mapping[str, Expr]) -> Expr:
    """``root`` with variables replaced."""
    return map_expr(
        root, lambda node: values.get(node.name, node) if isinstance(node, Variable) else node
    )


def map_buffers(root: Stmt, change: Callable[[Buffer], Buffer]) -> Stmt:
    """``root`` with every buffer replaced, wherever it is named.

    The new buffer has the shape's rank of the old one; a change of dtype must keep types right.
    """
    memo: dict[int, tuple[Expr, Expr]] = {}

    def load(node: Expr) -> Expr:
        if isinstance(node, Load):
            new = change(node.buffer)
            return node if new is node.buffer else Load(new, node.indices)
        return node

    def statement(node: Stmt) -> Stmt:
        match node:
            case Store(buffer=buffer) | Update(buffer=buffer) | Allocate(buffer=buffer):
                new = change(buffer)
                return node if new is buffer else replace(node, buffer=new)
            case Invoke(operands=regions):
                return replace(
                    node,
                    operands=tuple(replace(each, buffer=change(each.buffer)) for each in regions),
                )
            case _:
                return node

    return map_statement(root, lambda expr: map_expr(expr, load, memo), statement)
