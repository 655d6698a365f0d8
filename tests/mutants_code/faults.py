"""The faults that one file can have: every place where its meaning can be changed by a little.

Libraries were tried for this.  mutmut copies functions and calls them through a table: the
simulator's translator, which reads the text of functions, sees none of its faults, and constants of
modules get none.  cosmic-ray knows fewer kinds, draws no sample by lines, and has one command of
tests for all faults.  What is used here of either would be this file.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Fault", "faults"]

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
SILENT = ("strict", "optimize")
"""Arguments that change no result: lengths that are equal are so either way, and in whatever order
einsum multiplies."""
UNSEEN = ("annotation", "returns", "decorator_list")
"""Fields whose content computes nothing; decorators are called once and fail at once."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The bytes ``start`` to ``end`` of the file at ``path`` become ``text``."""

    path: str
    line: int
    kind: str
    start: int
    end: int
    text: str

    def put_into(self, source: bytes) -> bytes:
        """The file with the fault."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def before_and_after(self, source: bytes) -> tuple[str, str]:
        """The lines it changes, as they are and with it, spaces joined."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.end)
        grown = len(self.text.encode()) - (self.end - self.start)
        pair = source[first:last], self.put_into(source)[first : last + grown]
        before, after = (" ".join(each.decode().split()) for each in pair)
        return before, after


def faults(path: str, source: bytes) -> list[Fault]:
    """All faults of one file."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def at(node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first = starts[node.lineno - 1] + node.col_offset
        return first, starts[node.end_lineno - 1] + node.end_col_offset

    found = {}
    for node, kind, text in _changes(ast.parse(source)):
        fault = Fault(path, node.lineno, kind, *at(node), text)
        found[fault.start, fault.end, fault.text] = fault
    return list(found.values())


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """Possible changes in a node and below it: where, how, and the new text."""
    if isinstance(node, ast.stmt):
        yield from _of_statement(node)
    elif isinstance(node, ast.expr):
        for kind, new in _of_expression(node):
            yield node, kind, new if new.isidentifier() else f"({new})"
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
        return  # texts of errors, and positions within f-strings are not to be relied on
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        return
    if isinstance(node, ast.keyword) and node.arg in SILENT:
        return
    tests = {"test", "guard"} & set(node._fields) if not isinstance(node, ast.Assert) else set()
    for test in tests:
        condition = getattr(node, test)
        if condition is not None and ast.unparse(condition) != "TYPE_CHECKING":
            yield condition, "negated", f"(not ({ast.unparse(condition)}))"
    if isinstance(node, ast.comprehension):
        for condition in node.ifs:
            yield condition, "negated", f"(not ({ast.unparse(condition)}))"
    for name, value in ast.iter_fields(node):
        if name not in UNSEEN:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _rest(child) if _is_rest(node, child) else _changes(child)


def _is_rest(call: ast.AST, argument: ast.AST) -> bool:
    """True if it is the -1 of a reshape, for which any number below 0 stands."""
    match call, argument:
        case ast.Call(func=ast.Attribute(attr="reshape")), ast.UnaryOp(ast.USub(), ast.Constant(1)):
            return True
    return False


def _rest(node: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
    assert isinstance(node, ast.expr)
    yield node, "unary", "(1)"
    yield node, "constant", "(0)"


def _of_statement(node: ast.stmt) -> Iterator[tuple[ast.stmt, str, str]]:
    match node:
        case ast.Break():
            yield node, "loop", "continue"
        case ast.Continue():
            yield node, "loop", "break"
        case ast.Raise(exc=ast.Call(func=ast.Name("AssertionError"))):
            pass  # what never happens
        case ast.Expr(value=ast.Call(func=ast.Name("assert_never"))):
            pass
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            yield node, "dropped", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "dropped", "pass"
        case _:
            pass


def _of_expression(node: ast.expr) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            for index, each in enumerate(ops):
                new = [*ops[:index], COMPARISONS[type(each)](), *ops[index + 1 :]]
                yield "comparison", ast.unparse(ast.Compare(left, new, others))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            if not isinstance(left, ast.Constant | ast.JoinedStr) or not isinstance(
                getattr(left, "value", None), str
            ):
                yield "arithmetic", ast.unparse(ast.BinOp(left, ARITHMETIC[type(op)](), right))
        case ast.BoolOp(op=op, values=values):
            other = ast.And() if isinstance(op, ast.Or) else ast.Or()
            yield "and/or", ast.unparse(ast.BoolOp(other, values))
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield "unary", ast.unparse(operand)
        case ast.Constant(value=bool() as value):
            yield "constant", str(not value)
        case ast.Constant(value=int() as value):
            yield "constant", str(value + 1)
            yield "constant", str(value - 1)
        case ast.Constant(value=float() as value):
            yield "constant", repr(value * 2 if value else 1.0)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in OPPOSITES:
            yield "opposite", ast.unparse(ast.Call(ast.Name(OPPOSITES[name]), args, keywords))
        case ast.Call(func=func, args=args, keywords=keywords):
            for index in range(len(args) - 1):
                one, other = args[index : index + 2]
                swapped = [*args[:index], other, one, *args[index + 2 :]]
                same = ast.dump(one) == ast.dump(other)
                if type(one) is type(other) is not ast.Starred and not same:
                    yield "swapped", ast.unparse(ast.Call(func, swapped, keywords))
            for index, keyword in enumerate(keywords):
                if keyword.arg not in (None, *SILENT):
                    rest = [*keywords[:index], *keywords[index + 1 :]]
                    yield "left out", ast.unparse(ast.Call(func, args, rest))
        case _:
            pass
