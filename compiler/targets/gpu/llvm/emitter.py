"""Lines of LLVM's assembly, and the types of values there."""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ....dtypes import DType

__all__ = ["NARROW_FLOATS", "Emitter", "element_type", "literal", "value_type"]

NARROW_FLOATS: Mapping[DType, str] = {DType.FLOAT16: "half", DType.BFLOAT16: "bfloat"}
"""They are float in values and integers of 16 bits in memory."""


def value_type(dtype: DType) -> str:
    """The type of a value."""
    if dtype in NARROW_FLOATS or dtype is DType.FLOAT32:
        return "float"
    if dtype is DType.FLOAT64:
        return "double"
    return "i1" if dtype is DType.BOOL else f"i{8 * dtype.bytes}"


def element_type(dtype: DType) -> str:
    """The type of an element in memory."""
    if dtype in NARROW_FLOATS:
        return "i16"
    return "i8" if dtype is DType.BOOL else value_type(dtype)


def literal(value: float | bool, dtype: DType) -> str:
    """A constant value."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if not dtype.is_float:
        bits = 8 * dtype.bytes
        whole = int(value) & (1 << bits) - 1
        return str(whole - (1 << bits) if whole >> bits - 1 else whole)
    kind = np.float64 if dtype is DType.FLOAT64 else np.float32
    exact = float(kind(np.asarray(value, dtype.numpy)))
    if math.isnan(exact):
        return "0x7FF8000000000000"
    return f"0x{struct.pack('>d', exact).hex().upper()}"


@dataclass(slots=True)
class Emitter:
    """Appends the instructions of one function; allocas: what stands at its entry."""

    lines: list[str] = field(default_factory=list)
    allocas: list[str] = field(default_factory=list)
    declared: dict[str, str] = field(default_factory=dict)
    block: str = "entry"
    count: int = 0

    def name(self, stem: str = "v") -> str:
        """A name that the function has not had."""
        self.count += 1
        return f"%{stem}{self.count}"

    def line(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def op(self, text: str) -> str:
        """An instruction with a result; its name."""
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def alloca(self, kind: str, space: int = 0) -> str:
        """Memory of the thread, at the function's entry; space: where the machine has it."""
        name, where = self.name("a"), f", addrspace({space})" if space else ""
        self.allocas.append(f"  {name} = alloca {kind}, align 8{where}")
        return name

    def call(
        self, function: str, result: str, *arguments: tuple[str, str], convergent: bool = False
    ) -> str:
        """A function's result; arguments: types and values; convergent: threads are together."""
        kinds = ", ".join(kind for kind, _ in arguments)
        together = " convergent" if convergent else ""
        self.declared[function] = f"declare {result} @{function}({kinds}){together}"
        given = ", ".join(f"{kind} {value}" for kind, value in arguments)
        text = f"call {result} @{function}({given}){together}"
        if result != "void":
            return self.op(text)
        self.line(text)
        return ""

    def assembly(
        self, text: str, results: Sequence[tuple[str, str]], given: Sequence[tuple[str, str, str]]
    ) -> list[str]:
        """Instructions of the machine, which all threads come to; the names of their results.

        results: constraints and types; given: constraints, types and values.
        """
        rules = ",".join((*(each[0] for each in (*results, *given)), "~{memory}"))
        values = ", ".join(f"{kind} {value}" for _, kind, value in given)
        whole = f"{{{', '.join(kind for _, kind in results)}}}" if results else "void"
        call = f'call {whole} asm sideeffect "{text}", "{rules}"({values}) convergent'
        if not results:
            self.line(call)
            return []
        found = self.op(call)
        return [self.op(f"extractvalue {whole} {found}, {n}") for n in range(len(results))]

    def label(self, stem: str) -> str:
        """The name of a block to come."""
        return self.name(stem)[1:]

    def start(self, label: str) -> None:
        """The block that follows."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """Go there."""
        self.line(f"br label %{label}")

    def branch(self, condition: str, then: str, other: str) -> None:
        """Go to one of two."""
        self.line(f"br i1 {condition}, label %{then}, label %{other}")
