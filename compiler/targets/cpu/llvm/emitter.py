"""LLVM assembly as it is written: a module, and one function at a time."""

from collections.abc import Iterable, Sequence

from ....dtypes import DType
from ...llvm.instructions import Instructions
from ...llvm.values import Value, constant, llvm_type
from .target import CpuTarget

__all__ = ["Emitter", "ModuleText"]


class ModuleText:
    """Declarations, definitions and the target of one LLVM module."""

    def __init__(self, target: CpuTarget) -> None:
        self.target = target
        self.declarations: dict[str, str] = {}
        self.definitions: dict[str, str] = {}

    def declare(self, name: str, result: str, parameters: Sequence[str]) -> None:
        """Declare a function once."""
        self.declarations.setdefault(name, f"declare {result} @{name}({', '.join(parameters)})")

    def define(self, name: str, text: str) -> None:
        """Add a function's or a constant's text; the first of a name stays."""
        self.definitions.setdefault(name, text)

    def text(self) -> str:
        """The module."""
        declared = [
            text for name, text in self.declarations.items() if name not in self.definitions
        ]
        return "\n\n".join((*self.definitions.values(), "\n".join(declared))) + "\n"


class Emitter(Instructions):
    """The body of one LLVM function: blocks of instructions, stack slots in the entry block."""

    def __init__(self, module: ModuleText) -> None:
        self.module = module
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.block = "entry"
        self._count = 0

    def name(self, stem: str = "v") -> str:
        """A fresh name of a value."""
        self._count += 1
        return f"%{stem}{self._count}"

    def label(self, stem: str) -> str:
        """A fresh name of a block."""
        self._count += 1
        return f"{stem}{self._count}"

    def line(self, text: str) -> None:
        """An instruction without result."""
        self.lines.append(f"  {text}")

    def op(self, text: str, dtype: DType, lanes: int = 1) -> Value:
        """An instruction with a result of ``dtype``."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return Value(name, dtype, lanes)

    def call(
        self, name: str, dtype: DType, lanes: int, operands: Iterable[Value], *more: str
    ) -> Value:
        """A call of a function; ``more`` are further operands with their types."""
        operands = tuple(operands)
        result = llvm_type(dtype, lanes)
        types = [a.type for a in operands] + [text.split(" ", 1)[0] for text in more]
        self.module.declare(name, result, types)
        arguments = ", ".join((*(a.typed for a in operands), *more))
        return self.op(f"call {result} @{name}({arguments})", dtype, lanes)

    def broadcast(self, a: Value, lanes: int) -> Value:
        """A scalar in every lane; a vector of ``lanes`` stays itself."""
        if a.lanes == lanes:
            return a
        if a.constant is not None:
            return constant(a.constant, a.dtype, lanes)
        vector = llvm_type(a.dtype, lanes)
        first = self.op(f"insertelement {vector} poison, {a.typed}, i64 0", a.dtype, lanes)
        text = f"shufflevector {vector} {first.ref}, {vector} poison, "
        result = self.op(f"{text}<{lanes} x i32> zeroinitializer", a.dtype, lanes)
        return Value(result.ref, a.dtype, lanes, None, a.low, a.high)

    def extract(self, a: Value, lane: int) -> Value:
        """One lane as a scalar."""
        if a.lanes == 1:
            return a
        return self.op(f"extractelement {a.typed}, i64 {lane}", a.dtype)

    def from_lanes(self, parts: Sequence[Value]) -> Value:
        """Scalars as the lanes of a vector."""
        if len(parts) == 1:
            return parts[0]
        dtype, lanes = parts[0].dtype, len(parts)
        vector = llvm_type(dtype, lanes)
        result = "poison"
        for lane, part in enumerate(parts):
            text = f"insertelement {vector} {result}, {part.typed}, i64 {lane}"
            result = self.op(text, dtype, lanes).ref
        return Value(result, dtype, lanes)

    def power(self, a: Value, b: Value) -> Value:
        """A call of a function that squares, for each lane."""
        return self.each_lane(_integer_power(self.module, a.dtype), a, b)

    def each_lane(self, name: str, *operands: Value) -> Value:
        """A scalar function of the operands' dtype, called for every lane."""
        lanes, dtype = operands[0].lanes, operands[0].dtype
        parts = [
            self.call(name, dtype, 1, [self.extract(a, lane) for a in operands])
            for lane in range(lanes)
        ]
        return self.from_lanes(parts)

    def start(self, label: str) -> None:
        """Begin a block; the one before must have ended."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block."""
        self.line(f"br label %{label}")

    def branch(self, condition: Value, then: str, otherwise: str) -> None:
        """End the block by a condition."""
        self.line(f"br i1 {condition.ref}, label %{then}, label %{otherwise}")

    def phi(self, incoming: Sequence[tuple[Value, str]]) -> Value:
        """The value that came from the block the control came from."""
        first = incoming[0][0]
        pairs = ", ".join(f"[ {value.ref}, %{block} ]" for value, block in incoming)
        return self.op(f"phi {first.type} {pairs}", first.dtype, first.lanes)

    def slot(self, elements: int, element_type: str, alignment: int) -> str:
        """Stack memory of the function."""
        name = self.name("slot")
        self.slots.append(
            f"  {name} = alloca [{max(elements, 1)} x {element_type}], align {alignment}"
        )
        return name

    def body(self) -> str:
        """All blocks, the entry block first."""
        return "\n".join(("entry:", *self.slots, *self.lines))


def _integer_power(module: ModuleText, dtype: DType) -> str:
    """A function: ``a ** b`` by squaring; of a negative exponent the integer part of the power."""
    kind = Value("", dtype).type
    name = f"dovetail.pow.{dtype.value}"
    negative = (
        f"""
  %minus = icmp slt {kind} %b, 0
  br i1 %minus, label %fraction, label %start
fraction:
  %one = icmp eq {kind} %a, 1
  %minus.one = icmp eq {kind} %a, -1
  %odd.b = and {kind} %b, 1
  %odd = icmp ne {kind} %odd.b, 0
  %sign = select i1 %odd, {kind} -1, {kind} 1
  %unit = select i1 %minus.one, {kind} %sign, {kind} 0
  %tiny = select i1 %one, {kind} 1, {kind} %unit
  ret {kind} %tiny
start:"""
        if dtype.is_signed
        else ""
    )
    before = "start" if dtype.is_signed else "entry"
    module.define(
        name,
        f"""define internal {kind} @{name}({kind} %a, {kind} %b) {{
entry:{negative}
  br label %loop
loop:
  %base = phi {kind} [ %a, %{before} ], [ %square, %loop ]
  %rest = phi {kind} [ %b, %{before} ], [ %half, %loop ]
  %product = phi {kind} [ 1, %{before} ], [ %next, %loop ]
  %bit = and {kind} %rest, 1
  %set = icmp ne {kind} %bit, 0
  %times = mul {kind} %product, %base
  %next = select i1 %set, {kind} %times, {kind} %product
  %square = mul {kind} %base, %base
  %half = lshr {kind} %rest, 1
  %done = icmp eq {kind} %half, 0
  br i1 %done, label %end, label %loop
end:
  ret {kind} %next
}}""",
    )
    return name
