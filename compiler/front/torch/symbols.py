"""Symbolic sizes: expressions as SymPy prints them, computed from the sizes of their symbols.

``Add(Symbol('s0', integer=True), Integer(1))`` or ``s0 + 1``.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from math import prod

from ...errors import ModelError, UnsupportedOperatorError

__all__ = ["evaluate", "symbols_of"]

LONGEST = 10_000
"""Characters of an expression."""

FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "Add": lambda *x: sum(x),
    "CeilDiv": lambda a, b: -(-a // b),
    "CeilToInt": lambda x: x,
    "CleanDiv": lambda a, b: a // b,
    "FloorDiv": lambda a, b: a // b,
    "Integer": int,
    "Max": lambda *x: max(x),
    "Min": lambda *x: min(x),
    "Mod": lambda a, b: a % b,
    "ModularIndexing": lambda a, b, c: a // b % c,
    "Mul": lambda *x: prod(x),
    "PythonMod": lambda a, b: a % b,
}
OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Mult: lambda a, b: a * b,
    ast.Sub: lambda a, b: a - b,
}
MOST = 1 << 62
"""The largest magnitude of a number in an expression."""


def symbols_of(expression: str) -> tuple[str, ...]:
    """Names of the symbols, in order.  Raises ModelError for a text that is not an expression."""
    return tuple(dict.fromkeys(_symbols(_parsed(expression))))


def evaluate(expression: str, sizes: Mapping[str, int]) -> int | None:
    """The value; None when a symbol has no size.

    Raises ModelError for a text that is not an expression, UnsupportedOperatorError for a function
    that there is no code for.
    """
    tree = _parsed(expression)
    if any(name not in sizes for name in _symbols(tree)):
        return None
    try:
        return _value(tree, sizes)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ModelError(f"size {expression!r} cannot be computed: {error}") from None


def _parsed(expression: str) -> ast.expr:
    try:
        if len(expression) > LONGEST:
            raise ValueError(f"{len(expression)} characters")
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ModelError(f"size {expression[:60]!r} is not an expression: {error}") from None


def _called(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _symbols(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Call(args=[ast.Constant(value=str(name)), *_]) if _called(node) == "Symbol":
            yield name
        case ast.Call(args=args):
            for each in args:
                yield from _symbols(each)
        case ast.BinOp(left=left, right=right):
            yield from _symbols(left)
            yield from _symbols(right)
        case ast.UnaryOp(operand=operand):
            yield from _symbols(operand)


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            found = number
        case ast.Name(id=name):
            found = sizes[name]
        case ast.Call(args=[ast.Constant(value=str(name)), *_]) if _called(node) == "Symbol":
            found = sizes[name]
        case ast.Call(args=args) if _called(node) in FUNCTIONS:
            found = FUNCTIONS[_called(node)](*(_value(each, sizes) for each in args))
        case ast.BinOp(left=left, right=right, op=op) if type(op) in OPERATORS:
            found = OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.UnaryOp(operand=operand, op=ast.USub()):
            found = -_value(operand, sizes)
        case _:
            raise UnsupportedOperatorError(f"size {ast.unparse(node)!r} of the model")
    if abs(found) > MOST:
        raise ValueError(f"{found} is too large")
    return found
