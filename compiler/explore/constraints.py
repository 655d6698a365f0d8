"""Conditions on designs: comparisons of integer formulas over a design's parameters."""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from dovetail.isa.frozen import frozen

from ..errors import SpaceError

__all__ = ["Constraint", "parse_constraint"]

Values = Mapping[str, int | str]

ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@frozen
class Constraint:
    """A condition, as it was written, and its syntax tree."""

    text: str
    tree: ast.expr

    def holds(self, values: Values) -> bool:
        """True if a design with these parameters may be.

        Raises SpaceError for a division by zero, or an order between a number and a text.
        """
        try:
            return bool(_value(self.tree, values))
        except (ZeroDivisionError, TypeError) as error:
            raise SpaceError(f"constraint {self.text!r}: {error}") from None


def parse_constraint(text: str, names: frozenset[str]) -> Constraint:
    """The condition ``text``: Python's comparisons, ``and``, ``or``, ``not``, + - * // %,
    integers, texts in quotes, and ``names``.

    Raises SpaceError when it is anything else.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise SpaceError(f"constraint {text!r} cannot be read: {error}") from None
    _require_legal(tree, text, names)
    return Constraint(text, tree)


def _require_legal(tree: ast.expr, text: str, names: frozenset[str]) -> None:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name not in names:
                raise SpaceError(
                    f"constraint {text!r} names {name!r}; there are: {', '.join(sorted(names))}"
                )
            case ast.Constant(value=value) if isinstance(value, int | str):
                pass
            case ast.BinOp(op=op) if type(op) in ARITHMETIC:
                pass
            case ast.Compare(ops=ops) if all(type(op) in COMPARISONS for op in ops):
                pass
            case ast.Name() | ast.BoolOp() | ast.UnaryOp(op=ast.Not() | ast.USub()):
                pass
            case ast.operator() | ast.cmpop() | ast.boolop() | ast.unaryop() | ast.expr_context():
                pass
            case _:
                raise SpaceError(
                    f"constraint {text!r} has a {type(node).__name__}; required comparisons "
                    "(==, <=, ...), and, or, not, + - * // %, numbers and names of parameters"
                )


def _value(node: ast.expr, values: Values) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.BinOp(left=left, op=op, right=right):
            return ARITHMETIC[type(op)](_value(left, values), _value(right, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, values)
        case ast.UnaryOp(operand=operand):
            return -_value(operand, values)
        case ast.BoolOp(op=op, values=parts):
            for part in parts:
                value = _value(part, values)
                if bool(value) == isinstance(op, ast.Or):
                    break
            return value
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [_value(side, values) for side in (left, *others)]
            return all(
                COMPARISONS[type(op)](a, b)
                for op, a, b in zip(ops, sides[:-1], sides[1:], strict=True)
            )
        case _:
            raise AssertionError(ast.dump(node))
