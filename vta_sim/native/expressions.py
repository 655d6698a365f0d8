"""LLVM code for expressions of native code."""

import ast
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import llvmlite.ir as ir

from . import language
from .kinds import (
    BOOL,
    BYTE,
    ELEMENTS,
    INT,
    POINTER,
    ArrayOf,
    LevelsOf,
    Scalar,
    Value,
    intrinsic,
    kind_of,
)
from .language import Native
from .places import Places
from .words import Words

__all__ = ["Expressions", "global_names"]

COMPARISONS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def global_names(function: Native) -> Mapping[str, Any]:
    """Names that a function can use."""
    names: Mapping[str, Any] = getattr(function, "__globals__", {})
    return names


class Expressions(Places):
    """Emits expressions of one function at the end of the block of ``builder``.

    scope: the function's globals, whose ints and functions it may use. function: gives the LLVM
    function of another native function.
    """

    def __init__(
        self,
        builder: ir.IRBuilder,
        scope: Mapping[str, Any],
        words: Words | None,
        function: Callable[[Native], Any],
    ) -> None:
        super().__init__(builder, scope, words)
        self.function = function
        self.builtins: dict[object, Callable[..., Value]] = {
            language.copy: self._copy,
            language.fill: self._fill,
            language.row_of: self._row_of,
        }
        if words:
            self.builtins |= {
                language.load_word: words.load_word,
                language.store_word: words.store_word,
                language.sum_word: words.sum_word,
                language.splat: words.make_splat,
                language.smallest: words.smallest,
                language.largest: words.largest,
                language.multiply_round_clip: words.multiply_round_clip,
                language.multiply_fixed: words.multiply_fixed,
                language.look_up: words.look_up,
                language.load_tile: words.load_tile,
                language.dot: words.dot,
                language.sum_rows: words.sum_rows,
            }

    def emit(self, node: ast.expr) -> Value:
        """The value of an expression."""
        constant = self._constant(node)
        if constant is not None:
            return Value(Scalar.INT, INT(constant))
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self.load(self.place(node))
            case ast.BinOp():
                return self.binary(node, self.emit(node.left), node.op, self.emit(node.right))
            case ast.UnaryOp():
                return self._unary(node)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                values = self.integer(left).ir, self.integer(right).ir
                return Value(Scalar.BOOL, self.b.icmp_signed(COMPARISONS[type(op)], *values))
            case ast.BoolOp():
                return self._logical(node)
            case ast.IfExp():
                return self._choice(node)
            case ast.Call():
                return self._call(node)
        raise self.refuse(node, "no such expression")

    def integer(self, node: ast.expr) -> Value:
        value = self.emit(node)
        if value.kind is Scalar.BOOL:
            return Value(Scalar.INT, self.b.zext(value.ir, INT))
        if value.kind is not Scalar.INT:
            raise self.refuse(node, "an int is required")
        return value

    def convert(self, value: Value, target: ir.Type) -> Any:
        """An int as a bool, or a bool as an int; anything else as it is."""
        if value.kind is Scalar.BOOL and target == INT:
            return self.b.zext(value.ir, INT)
        if value.kind is Scalar.INT and target == BOOL:
            return self.b.icmp_signed("!=", value.ir, INT(0))
        return value.ir

    def condition(self, node: ast.expr) -> Any:
        value = self.emit(node)
        return value.ir if value.kind is Scalar.BOOL else self.b.icmp_signed("!=", value.ir, INT(0))

    def _constant(self, node: ast.expr) -> int | None:
        """The value of a constant, or of a global name or attribute, that is an int."""
        match node:
            case ast.Constant(value=bool() | int() as number):
                return int(number)
            case ast.Name(id=name) if name not in self.arguments and name not in self.locals:
                known = self.scope.get(name)
                return int(known) if isinstance(known, int) else None
            case ast.Attribute():
                reached = self._global(node)
                return int(reached) if isinstance(reached, int) else None
        return None

    def _global(self, node: ast.expr) -> object:
        match node:
            case ast.Name(id=name) if name not in self.arguments and name not in self.locals:
                return self.scope.get(name)
            case ast.Attribute(value=base, attr=name):
                return getattr(self._global(base), name, None)
        return None

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.arguments:
            return self.arguments[node.id]
        if node.id in self.locals:
            local = self.locals[node.id]
            return Value(local.kind, self.b.load(local.ir, typ=self.type_of(local.kind)))
        raise self.refuse(node, "no such name")

    # Memory -----------------------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> Value:
        place = self.slot(node, self.emit(node.value))
        if isinstance(place.kind, LevelsOf):
            return place
        value = self.b.load(place.ir, typ=INT)
        if place.kind is Scalar.INT:
            return Value(place.kind, value)
        return Value(place.kind, self.b.inttoptr(value, POINTER))

    def place(self, node: ast.Subscript) -> Value:
        """Place of an element of an array; its kind is that of the array."""
        base, index = self.emit(node.value), self.integer(node.slice)
        if isinstance(base.kind, LevelsOf):
            return Value(base.kind, self._step(base.ir, index.ir, INT))
        if not isinstance(base.kind, ArrayOf):
            raise self.refuse(node, "an array is required")
        return Value(base.kind, self._step(base.ir, index.ir, ELEMENTS[base.kind.element]))

    # Operators --------------------------------------------------------------------------------

    def binary(self, node: ast.AST, left: Value, op: ast.operator, right: Value) -> Value:
        kinds = {left.kind, right.kind}
        if Scalar.LANES in kinds:
            left, right = (
                side if side.kind is Scalar.LANES else self.words.make_splat(self.b, side)
                for side in (left, right)
            )
        elif kinds - {Scalar.INT, Scalar.BOOL}:
            raise self.refuse(node, "ints or lanes are required")
        else:
            left, right = (
                Value(Scalar.INT, self.b.zext(side.ir, INT)) if side.kind is Scalar.BOOL else side
                for side in (left, right)
            )
        simple = {
            ast.Add: self.b.add,
            ast.Sub: self.b.sub,
            ast.Mult: self.b.mul,
            ast.BitAnd: self.b.and_,
            ast.BitOr: self.b.or_,
            ast.BitXor: self.b.xor,
            ast.LShift: self.b.shl,
            ast.RShift: self.b.ashr,
        }
        if type(op) in simple:
            return Value(left.kind, simple[type(op)](left.ir, right.ir))
        if isinstance(op, ast.FloorDiv | ast.Mod) and left.kind is Scalar.INT:
            return Value(Scalar.INT, self._divide(op, left.ir, right.ir))
        raise self.refuse(node, "no such operator")

    def _divide(self, op: ast.operator, left: Any, right: Any) -> Any:
        """Rounded down, as Python does."""
        b = self.b
        quotient, rest = b.sdiv(left, right), b.srem(left, right)
        inexact = b.icmp_signed("!=", rest, INT(0))
        below = b.and_(inexact, b.icmp_signed("<", b.xor(rest, right), INT(0)))
        if isinstance(op, ast.FloorDiv):
            return b.sub(quotient, b.zext(below, INT))
        return b.select(below, b.add(rest, right), rest)

    def _unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value(Scalar.BOOL, self.b.not_(self.condition(node.operand)))
        value = self.emit(node.operand)
        if isinstance(node.op, ast.USub):
            return Value(value.kind, self.b.neg(value.ir))
        if isinstance(node.op, ast.Invert):
            return Value(value.kind, self.b.not_(value.ir))
        raise self.refuse(node, "no such operator")

    def _logical(self, node: ast.BoolOp) -> Value:
        """``and`` and ``or``, which look no further than they must."""
        b, stop = self.b, isinstance(node.op, ast.Or)
        end = b.append_basic_block("decided")
        known = []
        for operand in node.values[:-1]:
            value, after = self.condition(operand), b.append_basic_block("next")
            known.append(b.block)
            b.cbranch(value, end if stop else after, after if stop else end)
            b.position_at_end(after)
        last = self.condition(node.values[-1])
        origin = b.block
        b.branch(end)
        b.position_at_end(end)
        phi = b.phi(BOOL)
        for block in known:
            phi.add_incoming(BOOL(int(stop)), block)
        phi.add_incoming(last, origin)
        return Value(Scalar.BOOL, phi)

    def _choice(self, node: ast.IfExp) -> Value:
        b, condition = self.b, self.condition(node.test)
        blocks = [b.append_basic_block(name) for name in ("yes", "no", "chosen")]
        b.cbranch(condition, blocks[0], blocks[1])
        sides = []
        for block, operand in zip(blocks, (node.body, node.orelse), strict=False):
            b.position_at_end(block)
            value = self.emit(operand)
            if value.kind is Scalar.BOOL:
                value = Value(Scalar.INT, b.zext(value.ir, INT))
            sides.append((value, b.block))
            b.branch(blocks[2])
        b.position_at_end(blocks[2])
        kind = sides[0][0].kind
        if kind != sides[1][0].kind:
            raise self.refuse(node, "both sides must be of one kind")
        phi = b.phi(self.type_of(kind))
        for value, block in sides:
            phi.add_incoming(value.ir, block)
        return Value(kind, phi)

    # Calls ------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        target = self._global(node.func)
        arguments = [self.emit(argument) for argument in node.args]
        if node.keywords:
            raise self.refuse(node, "no keyword arguments")
        if target is None and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            return self._extreme(node.func.id, arguments)
        if target in self.builtins:
            return self.builtins[target](self.b, *arguments)
        if not isinstance(target, FunctionType):
            raise self.refuse(node, "no such function")
        function = self.function(target)
        if len(arguments) != len(function.args):
            raise self.refuse(node, f"{len(function.args)} arguments are required")
        kind = kind_of(target.__annotations__["return"])
        passed = [
            self.convert(value, BOOL if argument.type == BOOL else INT)
            for value, argument in zip(arguments, function.args, strict=True)
        ]
        return Value(kind, self.b.call(function, passed))

    def _extreme(self, name: str, values: list[Value]) -> Value:
        best = values[0].ir
        for value in values[1:]:
            order = "<" if name == "min" else ">"
            better = self.b.icmp_signed(order, value.ir, best)
            best = self.b.select(better, value.ir, best)
        return Value(Scalar.INT, best)

    def _copy(self, b: ir.IRBuilder, *arguments: Value) -> Value:
        target, target_at, source, source_at, size = (value.ir for value in arguments)
        kinds = (POINTER, POINTER, INT, BOOL)
        move = intrinsic(b.module, "llvm.memcpy.p0.p0.i64", ir.VoidType(), *kinds)
        places = self._step(target, target_at, BYTE), self._step(source, source_at, BYTE)
        b.call(move, [*places, size, BOOL(0)])
        return Value(Scalar.NOTHING, None)

    def _fill(self, b: ir.IRBuilder, *arguments: Value) -> Value:
        target, at, value, size = (argument.ir for argument in arguments)
        kinds = (POINTER, BYTE, INT, BOOL)
        fill = intrinsic(b.module, "llvm.memset.p0.i64", ir.VoidType(), *kinds)
        b.call(fill, [self._step(target, at, BYTE), b.trunc(value, BYTE), size, BOOL(0)])
        return Value(Scalar.NOTHING, None)

    def _row_of(self, b: ir.IRBuilder, table: Value, start: Value) -> Value:
        return Value(LevelsOf(), b.gep(table.ir, [start.ir], source_etype=INT))
