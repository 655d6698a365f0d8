"""Expressions as instructions; what is used twice is computed once."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import (
    COMPARISONS,
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
from ....loops.expressions import BinaryFunction as B
from ....loops.expressions import UnaryFunction as U
from ....loops.traverse import loads, operands
from .conversions import bits_of, convert, from_bits, rounded
from .emitter import Emitter, element_type, literal, value_type
from .integers import integer_binary

__all__ = ["Address", "Expressions"]

FLOAT_OPERATIONS: Mapping[B, str] = {B.ADD: "fadd", B.SUB: "fsub", B.MUL: "fmul", B.DIV: "fdiv"}
FLOAT_INTRINSICS: Mapping[U, str] = {
    U.ABS: "fabs",
    U.SQRT: "sqrt",
    U.FLOOR: "floor",
    U.CEIL: "ceil",
    U.TRUNC: "trunc",
    U.RINT: "rint",
}


@frozen
class Address:
    """Where a buffer begins: a pointer and its address space, 0 for any.

    swizzled: the pieces of 16 bytes of its rows of 128 are in the order of ``warpgroups.py``.
    """

    pointer: str
    space: int
    swizzled: bool = False

    @property
    def type(self) -> str:
        """The type of the pointer."""
        return f"ptr addrspace({self.space})" if self.space else "ptr"


@dataclass(slots=True)
class Expressions:
    """extremes: as of ``Machine``.  variables: values by name.  addresses: of buffers in scope."""

    e: Emitter
    extremes: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, Address] = field(default_factory=dict)
    memo: list[dict[int, tuple[Expr, str]]] = field(default_factory=lambda: [{}])

    def evaluate(self, *roots: Expr) -> list[str]:
        """Their values; only selections recurse."""
        found = []
        for root in roots:
            stack = [root]
            while stack:
                node = stack[-1]
                if self._known(node) is not None:
                    stack.pop()
                    continue
                lazy = isinstance(node, Select) and _is_lazy(node)
                strict = (node.condition,) if lazy else operands(node)  # type: ignore[union-attr]
                waiting = [each for each in strict if self._known(each) is None]
                if waiting:
                    stack += reversed(waiting)
                    continue
                stack.pop()
                self.memo[-1][id(node)] = node, self._node(node)
            value = self._known(root)
            assert value is not None
            found.append(value)
        return found

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Values computed inside are not known after."""
        self.memo.append({})
        yield
        self.memo.pop()

    def place(self, buffer: Buffer, indices: tuple[str, ...]) -> tuple[str, str]:
        """The type and the value of a pointer to an element."""
        address = self.addresses.get(buffer.name)
        if address is None:
            raise GraphError(f"{buffer.name} is used, but is not in scope")
        place = "0"
        for size, index in zip(buffer.shape, indices, strict=True):
            if place != "0" and size != 1:
                place = self.e.op(f"mul nsw i64 {place}, {size}")
            if index != "0":
                place = index if place == "0" else self.e.op(f"add nsw i64 {place}, {index}")
        if place == "0":
            return address.type, address.pointer
        kind = element_type(buffer.dtype)
        if address.swizzled:
            kind, place = "i8", self._swizzled(place, buffer.dtype.bytes)
        text = f"getelementptr inbounds {kind}, {address.type} {address.pointer}, i64 {place}"
        return address.type, self.e.op(text)

    def _swizzled(self, place: str, size: int) -> str:
        """The byte of an element; its piece's number of 3 bits differs in those of the row's."""
        first = self.e.op(f"mul nsw i64 {place}, {size}")
        bits = self.e.op(f"and i64 {self.e.op(f'lshr i64 {first}, 3')}, 112")
        return self.e.op(f"xor i64 {first}, {bits}")

    def load(self, buffer: Buffer, indices: tuple[str, ...]) -> str:
        """The value of an element."""
        kind, place = self.place(buffer, indices)
        stored = self.e.op(f"load {element_type(buffer.dtype)}, {kind} {place}")
        return from_bits(self.e, buffer.dtype, stored)

    def store(self, buffer: Buffer, indices: tuple[str, ...], value: str) -> None:
        """Make it the element."""
        stored = bits_of(self.e, buffer.dtype, value)
        kind, place = self.place(buffer, indices)
        self.e.line(f"store {element_type(buffer.dtype)} {stored}, {kind} {place}")

    def _known(self, node: Expr) -> str | None:
        match node:
            case Constant(value=value, dtype=dtype):
                return literal(value, dtype)
            case Variable(name=name):
                return self.variables[name]
        for scope in reversed(self.memo):
            if id(node) in scope:
                return scope[id(node)][1]
        return None

    def _value(self, node: Expr) -> str:
        found = self._known(node)
        assert found is not None
        return found

    def _node(self, node: Expr) -> str:
        e = self.e
        match node:
            case Load(buffer=buffer, indices=indices):
                return self.load(buffer, tuple(map(self._value, indices)))
            case Unary(function=function, operand=operand):
                return self._unary(function, operand.dtype, self._value(operand))
            case Binary(function=function, left=left, right=right):
                return self.binary(function, left.dtype, self._value(left), self._value(right))
            case Select():
                return self._select(node)
            case MultiplyAdd():
                given = [("float", self._value(each)) for each in operands(node)]
                return e.call("llvm.fma.f32", "float", *given)
            case Cast(dtype=dtype, operand=operand):
                return convert(e, operand.dtype, dtype, self._value(operand))
            case Bitcast(dtype=dtype, operand=operand):
                old, new = element_type(operand.dtype), element_type(dtype)
                bits = bits_of(e, operand.dtype, self._value(operand))
                if old != new:
                    bits = e.op(f"bitcast {old} {bits} to {new}")
                return from_bits(e, dtype, bits)
            case _:
                raise AssertionError(node)

    def _unary(self, function: U, dtype: DType, a: str) -> str:
        e, kind = self.e, value_type(dtype)
        if dtype.is_float:
            suffix = "f64" if kind == "double" else "f32"
            match function:
                case U.NEG:
                    return e.op(f"fneg {kind} {a}")
                case U.ISNAN:
                    return e.op(f"fcmp uno {kind} {a}, {a}")
                case U.ISINF:
                    size = e.call(f"llvm.fabs.{suffix}", kind, (kind, a))
                    return e.op(f"fcmp oeq {kind} {size}, 0x7FF0000000000000")
                case _:
                    name = f"llvm.{FLOAT_INTRINSICS[function]}.{suffix}"
                    return rounded(e, dtype, e.call(name, kind, (kind, a)))
        match function:
            case U.NOT:
                return e.op(f"xor {kind} {a}, {'true' if kind == 'i1' else '-1'}")
            case U.NEG:
                return e.op(f"sub {kind} 0, {a}")
            case U.ABS if dtype.is_signed:
                below = e.op(f"icmp slt {kind} {a}, 0")
                return e.op(f"select i1 {below}, {kind} {e.op(f'sub {kind} 0, {a}')}, {kind} {a}")
            case U.ISNAN | U.ISINF:
                return "false"
            case U.SQRT:
                wide = convert(e, dtype, DType.FLOAT64, a)
                root = e.call("llvm.sqrt.f64", "double", ("double", wide))
                return convert(e, DType.FLOAT64, dtype, root)
            case _:
                return a

    def binary(self, function: B, dtype: DType, a: str, b: str) -> str:
        """``function(a, b)``."""
        e, kind = self.e, value_type(dtype)
        if not dtype.is_float:
            return integer_binary(e, function, dtype, a, b)
        if function in COMPARISONS:
            word = "une" if function is B.NE else f"o{function.value}"
            return e.op(f"fcmp {word} {kind} {a}, {b}")
        if function in FLOAT_OPERATIONS:
            return rounded(e, dtype, e.op(f"{FLOAT_OPERATIONS[function]} {kind} {a}, {b}"))
        if function not in (B.MIN, B.MAX):
            raise GraphError(f"{function} of {dtype} has no meaning")
        if self.extremes and kind == "float":
            name = f"llvm.{'minimum' if function is B.MIN else 'maximum'}.f32"
            return e.call(name, kind, (kind, a), (kind, b))
        order = e.op(f"fcmp {'olt' if function is B.MIN else 'ogt'} {kind} {a}, {b}")
        none = e.op(f"fcmp uno {kind} {a}, {a}")
        first = e.op(f"or i1 {order}, {none}")
        return e.op(f"select i1 {first}, {kind} {a}, {kind} {b}")

    def _select(self, node: Select) -> str:
        e, kind, condition = self.e, value_type(node.dtype), self._value(node.condition)
        if not _is_lazy(node):
            chosen, other = self._value(node.chosen), self._value(node.other)
            return e.op(f"select i1 {condition}, {kind} {chosen}, {kind} {other}")
        labels, end = (e.label("then"), e.label("else")), e.label("selected")
        e.branch(condition, *labels)
        arms = []
        for label, arm in zip(labels, (node.chosen, node.other), strict=True):
            e.start(label)
            with self.nested():
                (value,) = self.evaluate(arm)
            arms.append(f"[ {value}, %{e.block} ]")
            e.jump(end)
        e.start(end)
        return e.op(f"phi {kind} {', '.join(arms)}")


def _is_lazy(node: Select) -> bool:
    """True if a side reads memory, and may do so only when it is chosen."""
    return any(loads(node.chosen)) or any(loads(node.other))
