"""Instructions of LLVM on values, whoever collects them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from ...dtypes import DType
from .values import Value, intrinsic_suffix, llvm_type

__all__ = ["Instructions"]


class Instructions(ABC):
    """The instructions of one function; each target collects them in its own way."""

    divides_twice: ClassVar[bool] = False
    """True if a quotient rounded down takes its remainder from an instruction, not from a product.

    LLVM makes one division of both for GPUs.
    """

    @abstractmethod
    def op(self, text: str, dtype: DType, lanes: int = 1) -> Value:
        """An instruction with a result of ``dtype``."""

    @abstractmethod
    def call(
        self, name: str, dtype: DType, lanes: int, operands: Iterable[Value], *more: str
    ) -> Value:
        """A call of a function; ``more`` are further operands with their types."""

    @abstractmethod
    def power(self, a: Value, b: Value) -> Value:
        """``a ** b`` of integers; for a negative exponent, the integer part of the power."""

    def binary(self, opcode: str, a: Value, b: Value) -> Value:
        """``opcode a, b``, of a's type."""
        return self.op(f"{opcode} {a.type} {a.ref}, {b.ref}", a.dtype, a.lanes)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """``icmp`` or ``fcmp`` with its predicate; gives bool."""
        kind = "fcmp" if a.dtype in (DType.FLOAT32, DType.FLOAT64) else "icmp"
        return self.op(f"{kind} {predicate} {a.type} {a.ref}, {b.ref}", DType.BOOL, a.lanes)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """``a`` where ``condition``, else ``b``."""
        text = f"select {condition.typed}, {a.typed}, {b.typed}"
        return self.op(text, a.dtype, a.lanes)

    def convert(self, opcode: str, a: Value, dtype: DType) -> Value:
        """A conversion instruction."""
        text = f"{opcode} {a.typed} to {llvm_type(dtype, a.lanes)}"
        return self.op(text, dtype, a.lanes)

    def bitcast(self, a: Value, dtype: DType) -> Value:
        """The same bits under another type of the same size."""
        if llvm_type(a.dtype) == llvm_type(dtype):
            return Value(a.ref, dtype, a.lanes)
        return self.convert("bitcast", a, dtype)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """``llvm.name`` overloaded on, and giving, the first operand's type."""
        first = operands[0]
        full = f"llvm.{name}.{intrinsic_suffix(first.dtype, first.lanes)}"
        return self.call(full, first.dtype, first.lanes, operands)
