"""Loop programs as text: the printer; ``parse`` reads it back.

    function "softmax"
      input x: float32[4, 10]
      output y: float32[4, 10]
      for i in 4 parallel:
        alloc sum: float32[] local:
          sum[] = 0.0:float32
          for j in 10:
            sum[] add= exp(x[i, j])
          for j in 10 vector:
            y[i, j] = exp(x[i, j]) / sum[]

The grammar; NAME is an identifier with dots, or a JSON string; indentation nests:

    function  := "function" NAME ("input" buffer)* ("output" buffer)* statement*
    buffer    := NAME ":" DTYPE "[" INTEGER,* "]" [SCOPE]            no scope: global
    statement := "for" NAME "in" expr [KIND] [notes] ":" body        no kind: serial
               | "while" expr ":" body | "if" expr ":" body ["else:" body]
               | "alloc" buffer ":" body | "let" NAME ":" DTYPE "=" expr ":" body
               | NAME "[" expr,* "]" [REDUCTION] "=" expr
               | "invoke" NAME "(" region,* ")" | "block:" body
    notes     := "{" (NAME ":" (INTEGER | STRING)),* "}"
    region    := NAME "[" (expr ":" INTEGER),* "]"                   start and size
    expr      := expr INFIX expr | FUNCTION "(" expr,* ")" | "(" expr ")"
               | "cast" "(" DTYPE "," expr ")" | "bitcast" "(" DTYPE "," expr ")"
               | "select" "(" expr "," expr "," expr ")" | NAME | NAME "[" expr,* "]"
               | "fma" "(" expr "," expr "," expr ")"
               | INTEGER | NUMBER ":" DTYPE | "true" | "false"       no dtype: int64

INFIX, weakest first: ``< <= == !=``, ``|``, ``&``, ``+ -``, ``* / // %``; the last four groups
associate to the left.  A body of one statement is that statement, of several a block.
"""

import json
import math
import re
from collections.abc import Iterator

from ..dtypes import DType
from .expressions import (
    SCRATCHPADS,
    Binary,
    BinaryFunction,
    Bitcast,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    MultiplyAdd,
    Scope,
    Select,
    Unary,
    UnaryFunction,
    Variable,
)
from .ir import (
    Allocate,
    Block,
    For,
    Function,
    If,
    Invoke,
    Let,
    LoopKind,
    Region,
    Stmt,
    Store,
    Update,
    While,
)
from .traverse import fold

__all__ = ["INFIX", "RESERVED", "expr_to_text", "name_to_text", "statement_to_text", "to_text"]

INFIX: dict[BinaryFunction, tuple[str, int]] = {
    BinaryFunction.LT: ("<", 1),
    BinaryFunction.LE: ("<=", 1),
    BinaryFunction.EQ: ("==", 1),
    BinaryFunction.NE: ("!=", 1),
    BinaryFunction.OR: ("|", 2),
    BinaryFunction.AND: ("&", 3),
    BinaryFunction.ADD: ("+", 4),
    BinaryFunction.SUB: ("-", 4),
    BinaryFunction.MUL: ("*", 5),
    BinaryFunction.DIV: ("/", 5),
    BinaryFunction.FLOORDIV: ("//", 5),
    BinaryFunction.MOD: ("%", 5),
}
"""Spelling and precedence."""

ATOM = 6

RESERVED = frozenset(
    {
        *("function", "input", "output", "for", "in", "while", "if", "else", "alloc", "let"),
        *("invoke", "block", "cast", "bitcast", "select", "fma", "true", "false", "nan", "inf"),
        *(function.value for function in UnaryFunction),
        *(function.value for function in BinaryFunction),
        *(kind.value for kind in LoopKind),
        *(scope.value for scope in Scope if scope not in SCRATCHPADS),
    }
)
"""Words that a name must not be, unless quoted."""

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")

Written = tuple[str, int]
"""Text, and the precedence of what it is."""


def to_text(function: Function) -> str:
    """The function; no newline at the end."""
    lines = [f"function {json.dumps(function.name)}"]
    lines += [f"  input {_declared(buffer)}" for buffer in function.inputs]
    lines += [f"  output {_declared(buffer)}" for buffer in function.outputs]
    lines += _body(function.body, "  ")
    return "\n".join(lines)


def statement_to_text(stmt: Stmt) -> str:
    """The statement alone; no newline at the end."""
    return "\n".join(_lines(stmt, ""))


def expr_to_text(expr: Expr) -> str:
    """The expression, on one line."""
    return fold(expr, _combine)[0]


def name_to_text(name: str) -> str:
    """The name, quoted where it has to be."""
    plain = PLAIN.fullmatch(name) and name not in RESERVED
    return name if plain else json.dumps(name)


def _declared(buffer: Buffer) -> str:
    scope = "" if buffer.scope is Scope.GLOBAL else f" {buffer.scope}"
    sizes = ", ".join(map(str, buffer.shape))
    return f"{name_to_text(buffer.name)}: {buffer.dtype}[{sizes}]{scope}"


def _body(stmt: Stmt, indent: str) -> Iterator[str]:
    """The lines of a body: a block of two or more statements is its statements' lines."""
    if isinstance(stmt, Block) and len(stmt.statements) > 1:
        for each in stmt.statements:
            yield from _lines(each, indent)
    else:
        yield from _lines(stmt, indent)


def _lines(stmt: Stmt, indent: str) -> Iterator[str]:
    deeper = indent + "  "
    match stmt:
        case Block(statements=statements):
            yield f"{indent}block:"
            for each in statements:
                yield from _lines(each, deeper)
        case For(variable=name, extent=extent, kind=kind, body=body):
            mark = "" if kind is LoopKind.SERIAL else f" {kind}"
            notes = ", ".join(f"{name_to_text(n)}: {json.dumps(v)}" for n, v in stmt.annotations)
            mark += f" {{{notes}}}" if notes else ""
            yield f"{indent}for {name_to_text(name)} in {expr_to_text(extent)}{mark}:"
            yield from _body(body, deeper)
        case While(condition=condition, body=body):
            yield f"{indent}while {expr_to_text(condition)}:"
            yield from _body(body, deeper)
        case If(condition=condition, then=then, otherwise=otherwise):
            yield f"{indent}if {expr_to_text(condition)}:"
            yield from _body(then, deeper)
            if otherwise is not None:
                yield f"{indent}else:"
                yield from _body(otherwise, deeper)
        case Allocate(buffer=buffer, body=body):
            yield f"{indent}alloc {_declared(buffer)}:"
            yield from _body(body, deeper)
        case Let(variable=variable, value=value, body=body):
            name = name_to_text(variable.name)
            yield f"{indent}let {name}: {variable.dtype} = {expr_to_text(value)}:"
            yield from _body(body, deeper)
        case Store(buffer=buffer, indices=indices, value=value):
            yield f"{indent}{_element(buffer, indices)} = {expr_to_text(value)}"
        case Update(buffer=buffer, indices=indices, function=function, value=value):
            yield f"{indent}{_element(buffer, indices)} {function}= {expr_to_text(value)}"
        case Invoke(intrinsic=name, operands=regions):
            yield f"{indent}invoke {name_to_text(name)}({', '.join(map(_region, regions))})"


def _element(buffer: Buffer, indices: tuple[Expr, ...]) -> str:
    return f"{name_to_text(buffer.name)}[{', '.join(map(expr_to_text, indices))}]"


def _region(region: Region) -> str:
    parts = (
        f"{expr_to_text(start)} : {size}"
        for start, size in zip(region.start, region.shape, strict=True)
    )
    return f"{name_to_text(region.buffer.name)}[{', '.join(parts)}]"


def _combine(expr: Expr, below: tuple[Written, ...]) -> Written:
    inside = ", ".join(text for text, _ in below)
    match expr:
        case Constant(value=value, dtype=dtype):
            return _number(value, dtype), ATOM
        case Variable(name=name):
            return name_to_text(name), ATOM
        case Load(buffer=buffer):
            return f"{name_to_text(buffer.name)}[{inside}]", ATOM
        case Binary(function=function) if function in INFIX:
            sign, rank = INFIX[function]
            left = _bracketed(below[0], rank + (1 if rank == 1 else 0))
            return f"{left} {sign} {_bracketed(below[1], rank + 1)}", rank
        case Binary(function=function):
            return f"{function}({inside})", ATOM
        case Unary(function=test):
            return f"{test}({inside})", ATOM
        case Select():
            return f"select({inside})", ATOM
        case MultiplyAdd():
            return f"fma({inside})", ATOM
        case Cast(dtype=dtype):
            return f"cast({dtype}, {inside})", ATOM
        case Bitcast(dtype=dtype):
            return f"bitcast({dtype}, {inside})", ATOM


def _bracketed(written: Written, least: int) -> str:
    text, rank = written
    return text if rank >= least else f"({text})"


def _number(value: int | float | bool, dtype: DType) -> str:
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value)) if dtype is DType.INT64 else f"{int(value)}:{dtype}"
    number = float(value)
    text = "nan" if math.isnan(number) else repr(number)
    return f"{text}:{dtype}"
