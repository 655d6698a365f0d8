"""Functions of many instructions, which are not written out for a whole tile of registers."""

from ....loops.expressions import Binary, BinaryFunction, Expr, Unary, UnaryFunction
from ....loops.ir import Stmt
from ....loops.traverse import fold, own_expressions, walk

__all__ = ["is_costly"]

COSTLY = frozenset(UnaryFunction) - {
    UnaryFunction.NEG,
    UnaryFunction.ABS,
    UnaryFunction.NOT,
    UnaryFunction.SQRT,
    UnaryFunction.FLOOR,
    UnaryFunction.CEIL,
    UnaryFunction.TRUNC,
    UnaryFunction.RINT,
    UnaryFunction.ISNAN,
    UnaryFunction.ISINF,
}


def is_costly(stmt: Stmt) -> bool:
    """True if such functions are in it."""

    def costly(node: Expr, below: tuple[bool, ...]) -> bool:
        own = (isinstance(node, Unary) and node.function in COSTLY) or (
            isinstance(node, Binary) and node.function == BinaryFunction.POW
        )
        return own or any(below)

    return any(fold(own, costly) for each in walk(stmt) for own in own_expressions(each))
