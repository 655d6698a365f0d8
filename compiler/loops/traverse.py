"""Traversal of loop programs.

Expressions are graphs: an operand may be shared.  Everything here visits each node once and uses
no recursion on expressions, so that deep and shared ones cost what they hold.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar, assert_never

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

LEAVES = (Variable, Constant)


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
    if isinstance(expr, LEAVES):
        known[id(expr)] = (expr, result := combine(expr, ()))
        return result
    stack = [expr]
    while stack:
        node = stack[-1]
        if id(node) in known:
            stack.pop()
            continue
        below, waiting = operands(node), []
        for each in below:
            if id(each) in known:
                continue
            if isinstance(each, LEAVES):
                known[id(each)] = (each, combine(each, ()))
            else:
                waiting.append(each)
        if waiting:
            stack += reversed(waiting)
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
