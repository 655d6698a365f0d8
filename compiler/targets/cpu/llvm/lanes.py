"""Float vectors with Python's operators, in which the elementary functions are written."""

from collections.abc import Sequence

from ....dtypes import DType
from ...llvm.values import Value, constant
from .emitter import Emitter

__all__ = ["Lanes"]

_BITS = {DType.FLOAT32: DType.INT32, DType.FLOAT64: DType.INT64}
_MANTISSA = {DType.FLOAT32: 23, DType.FLOAT64: 52}


class Lanes:
    """A float32 or float64 value of one or more lanes; numbers used with it are in all lanes."""

    __slots__ = ("e", "value")

    def __init__(self, e: Emitter, value: Value) -> None:
        self.e = e
        self.value = value

    @property
    def dtype(self) -> DType:
        """float32 or float64."""
        return self.value.dtype

    @property
    def bits_dtype(self) -> DType:
        """The integer of the same size."""
        return _BITS[self.dtype]

    @property
    def mantissa_bits(self) -> int:
        """Bits of the fraction."""
        return _MANTISSA[self.dtype]

    @property
    def bias(self) -> int:
        """Bias of the exponent field."""
        return 127 if self.dtype is DType.FLOAT32 else 1023

    def of(self, number: "Lanes | float") -> "Lanes":
        """``number`` in every lane."""
        if isinstance(number, Lanes):
            return number
        return Lanes(self.e, constant(number, self.dtype, self.value.lanes))

    def integer(self, number: int) -> Value:
        """``number`` in every lane, as an integer of the same size."""
        return constant(number, self.bits_dtype, self.value.lanes)

    def __add__(self, other: "Lanes | float") -> "Lanes":
        return self._binary("fadd", other)

    def __sub__(self, other: "Lanes | float") -> "Lanes":
        return self._binary("fsub", other)

    def __mul__(self, other: "Lanes | float") -> "Lanes":
        return self._binary("fmul", other)

    def __truediv__(self, other: "Lanes | float") -> "Lanes":
        return self._binary("fdiv", other)

    def __neg__(self) -> "Lanes":
        return Lanes(self.e, self.e.op(f"fneg {self.value.typed}", self.dtype, self.value.lanes))

    def _binary(self, opcode: str, other: "Lanes | float") -> "Lanes":
        return Lanes(self.e, self.e.binary(opcode, self.value, self.of(other).value))

    def fma(self, factor: "Lanes | float", term: "Lanes | float") -> "Lanes":
        """``self * factor + term``, rounded once where the CPU can."""
        operands = (self.value, self.of(factor).value, self.of(term).value)
        return Lanes(self.e, self.e.intrinsic("fmuladd", *operands))

    def polynomial(self, coefficients: Sequence[float]) -> "Lanes":
        """By Horner's rule; the constant coefficient comes first."""
        total = self.of(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = total.fma(self, coefficient)
        return total

    def compare(self, predicate: str, other: "Lanes | float") -> Value:
        """``fcmp`` with one of LLVM's predicates."""
        return self.e.compare(predicate, self.value, self.of(other).value)

    def where(self, condition: Value, other: "Lanes | float") -> "Lanes":
        """Itself where ``condition`` holds, else ``other``."""
        return Lanes(self.e, self.e.select(condition, self.value, self.of(other).value))

    def at_most(self, limit: float) -> "Lanes":
        """The smaller one; NaN stays."""
        return self.of(limit).where(self.of(limit).compare("olt", self), self)

    def at_least(self, limit: float) -> "Lanes":
        """The larger one; NaN stays."""
        return self.of(limit).where(self.of(limit).compare("ogt", self), self)

    def magnitude(self) -> "Lanes":
        """Without its sign."""
        return Lanes(self.e, self.e.intrinsic("fabs", self.value))

    def signed_as(self, other: "Lanes") -> "Lanes":
        """With another's sign."""
        return Lanes(self.e, self.e.intrinsic("copysign", self.value, other.value))

    def square_root(self) -> "Lanes":
        """Correctly rounded."""
        return Lanes(self.e, self.e.intrinsic("sqrt", self.value))

    def bits(self) -> Value:
        """As an integer."""
        return self.e.bitcast(self.value, self.bits_dtype)

    def from_bits(self, bits: Value) -> "Lanes":
        """An integer's bits as a float of this dtype."""
        return Lanes(self.e, self.e.bitcast(bits, self.dtype))

    def to(self, dtype: DType) -> "Lanes":
        """In the other dtype."""
        if dtype is self.dtype:
            return self
        opcode = "fpext" if dtype is DType.FLOAT64 else "fptrunc"
        return Lanes(self.e, self.e.convert(opcode, self.value, dtype))
