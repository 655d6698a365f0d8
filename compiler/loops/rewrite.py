"""Substitution in loop programs: what does not change stays the same object."""

from collections.abc import Callable, Mapping
from typing import assert_never

from dovetail.isa.frozen import replace

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
from .ir import Allocate, Block, For, If, Invoke, Let, Stmt, Store, Update, While, block
from .traverse import fold, operands

__all__ = [
    "map_buffers",
    "map_expr",
    "map_statement",
    "rebuilt",
    "substitute",
    "substitute_expr",
    "with_bodies",
    "with_operands",
]


def with_operands(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """``expr`` with other operands; itself when they are the same objects."""
    if not new:
        return expr
    for old, own in zip(operands(expr), new, strict=True):
        if old is not own:
            break
    else:
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


def map_expr(
    expr: Expr, change: Callable[[Expr], Expr], memo: dict[int, tuple[Expr, Expr]] | None = None
) -> Expr:
    """Every node, operands first, replaced by ``change(node with its new operands)``."""
    return fold(expr, lambda node, new: change(with_operands(node, new)), memo)


def with_bodies(stmt: Stmt, new: tuple[Stmt, ...]) -> Stmt:
    """``stmt`` with other statements directly below it; nested blocks are flattened."""
    match stmt:
        case Block():
            return block(*new)
        case If(condition=condition, otherwise=otherwise):
            return If(condition, new[0], None if otherwise is None else new[1])
        case For():
            return For(stmt.variable, stmt.extent, stmt.kind, new[0], stmt.annotations)
        case Allocate(buffer=buffer):
            return Allocate(buffer, new[0])
        case While() | Let():
            return replace(stmt, body=new[0])
        case _:
            return stmt


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
        new = rebuilt(node, expr, recur)
        return new if change is None else change(new)

    return recur(stmt)


def rebuilt(node: Stmt, expr: Callable[[Expr], Expr], recur: Callable[[Stmt], Stmt]) -> Stmt:
    """``node`` with its own expressions and the statements directly below it changed."""
    match node:
        case Block(statements=statements):
            new = tuple(recur(each) for each in statements)
            same = all(a is b for a, b in zip(new, statements, strict=True))
            return node if same else block(*new)
        case For(extent=extent, body=body):
            new_extent, new_body = expr(extent), recur(body)
            if new_extent is extent and new_body is body:
                return node
            return For(node.variable, new_extent, node.kind, new_body, node.annotations)
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
        return rebuilt(node, expr, recur)

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
