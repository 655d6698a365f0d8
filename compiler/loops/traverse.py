"""Traversal of loop programs.

Expressions are graphs: an operand may be shared.  Everything here visits each node once and uses
no recursion on expressions, so that deep and shared ones cost what they hold.
"""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, TypeVar, assert_never

from .expressions import (
    Binary,
    Bitcast,
    Cast,
    Constant,
    Expr,
    Load,
    MultiplyAdd,
    Select,
    Unary,
    Variable,
)
from .ir import Allocate, Block, For, If, Invoke, Let, Stmt, Store, Update, While

__all__ = [
    "LEAVES",
    "bodies",
    "expressions",
    "fold",
    "loads",
    "operands",
    "own_expressions",
    "variables",
    "walk",
    "written",
]

T = TypeVar("T")

LEAVES = frozenset({Variable, Constant})
"""Classes of expressions with nothing below."""

STATEMENTS = (Block, For, While, If, Allocate, Let, Store, Update, Invoke)


def _none(node: object) -> tuple[()]:
    return ()


OPERANDS: dict[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    Binary: attrgetter("left", "right"),
    Load: attrgetter("indices"),
    Constant: _none,
    Variable: _none,
    Unary: lambda expr: (expr.operand,),
    Cast: lambda expr: (expr.operand,),
    Bitcast: lambda expr: (expr.operand,),
    Select: attrgetter("condition", "chosen", "other"),
    MultiplyAdd: attrgetter("left", "right", "addend"),
}
"""The expressions directly below one, by its class: this is asked for every node."""

BODIES: dict[type[Stmt], Callable[[Any], tuple[Stmt, ...]]] = {
    Block: attrgetter("statements"),
    For: lambda stmt: (stmt.body,),
    While: lambda stmt: (stmt.body,),
    Allocate: lambda stmt: (stmt.body,),
    Let: lambda stmt: (stmt.body,),
    If: lambda stmt: (stmt.then,) if stmt.otherwise is None else (stmt.then, stmt.otherwise),
    Store: _none,
    Update: _none,
    Invoke: _none,
}
"""The statements directly below one, by its class."""


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly below ``expr``."""
    return OPERANDS[type(expr)](expr)


def fold(
    expr: Expr,
    combine: Callable[[Expr, tuple[T, ...]], T],
    memo: dict[int, tuple[Expr, T]] | None = None,
) -> T:
    """``combine(node, results of its operands)`` of every node, operands first; the root's result.

    ``memo`` keeps results by identity between calls (and their nodes alive).
    """
    known: dict[int, tuple[Expr, T]] = {} if memo is None else memo
    if id(expr) in known:
        return known[id(expr)][1]
    if type(expr) in LEAVES:
        known[id(expr)] = (expr, result := combine(expr, ()))
        return result
    stack = [expr]
    while stack:
        node = stack[-1]
        if id(node) in known:
            stack.pop()
            continue
        below = OPERANDS[type(node)](node)
        waiting = []
        for each in below:
            if id(each) in known:
                continue
            if type(each) in LEAVES:
                known[id(each)] = (each, combine(each, ()))
            else:
                waiting.append(each)
        if waiting:
            waiting.reverse()
            stack += waiting
            continue
        stack.pop()
        # A list first: this runs for every node, and a generator takes longer.
        known[id(node)] = (node, combine(node, tuple([known[id(each)][1] for each in below])))
    return known[id(expr)][1]


def walk(stmt: Stmt) -> Iterator[Stmt]:
    """The statement and all below it, in the order of the text."""
    stack = [stmt]
    while stack:
        node = stack.pop()
        yield node
        below = BODIES[type(node)](node)
        stack += below if len(below) < 2 else reversed(below)


def bodies(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly below ``stmt``."""
    return BODIES[type(stmt)](stmt)


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
    if isinstance(root, STATEMENTS):
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
            if below := OPERANDS[type(node)](node):
                stack += reversed(below)


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
