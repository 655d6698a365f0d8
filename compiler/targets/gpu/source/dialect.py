"""Words in which languages that look like C differ."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import ClassVar

from ....dtypes import DType
from ....loops.expressions import BinaryFunction as B
from ....loops.expressions import UnaryFunction as U
from ..kernels import Kernel, Parameter

__all__ = ["NARROW_FLOATS", "Dialect", "Held"]

NARROW_FLOATS = (DType.FLOAT16, DType.BFLOAT16)
"""Computed in float32, and rounded after each operation."""


class Held(Enum):
    """Where the elements of a buffer are."""

    SCALAR = "one variable"
    ARRAY = "an array of a thread or block"
    MEMORY = "the device's memory"


class Dialect(ABC):
    """One language, for one source; it collects the functions that the source needs.

    index: the type of loop variables.  barrier: where threads wait.  types: of values.
    """

    name: ClassVar[str]
    index: ClassVar[DType]
    barrier: ClassVar[str]
    unroll: ClassVar[str] = ""
    """A line before a loop that is written out."""
    types: ClassVar[Mapping[DType, str]]

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}

    def type(self, dtype: DType) -> str:
        """The type of a value."""
        return self.types[dtype]

    @abstractmethod
    def head(self) -> str:
        """Text before everything else."""

    @abstractmethod
    def prepare(self, kernel: Kernel) -> Kernel:
        """The kernel as the language can say it; called before it is written."""

    @abstractmethod
    def kernel(self, name: str, kernel: Kernel, shared: Sequence[str], lines: Sequence[str]) -> str:
        """A kernel around its lines."""

    @abstractmethod
    def numbers(self, kernel: Kernel) -> list[str]:
        """Lines that name the number of the block and of the thread."""

    @abstractmethod
    def parameter(self, number: int, parameter: Parameter, own: str, name: str) -> str:
        """The line that names a kernel's buffer; own: which part of it is this thread's."""

    @abstractmethod
    def let(self, dtype: DType, name: str, value: str) -> str:
        """A name for a value."""

    @abstractmethod
    def scalar(self, dtype: DType, name: str) -> str:
        """A variable."""

    @abstractmethod
    def array(self, dtype: DType, name: str, count: int, shared: bool) -> str:
        """An array of a thread, or of a block."""

    @abstractmethod
    def loop(self, name: str, extent: str) -> str:
        """The head of a loop from 0 to before ``extent``."""

    @abstractmethod
    def load(self, dtype: DType, held: Held, name: str, place: str) -> str:
        """The value of an element."""

    @abstractmethod
    def store(self, dtype: DType, held: Held, name: str, place: str, value: str) -> str:
        """The line that stores a value."""

    @abstractmethod
    def constant(self, value: float | bool, dtype: DType) -> str:
        """A literal."""

    @abstractmethod
    def select(self, condition: str, chosen: str, other: str) -> str:
        """One of two values."""

    @abstractmethod
    def unary(self, function: U, dtype: DType, a: str) -> str:
        """``function(a)``."""

    @abstractmethod
    def binary(self, function: B, dtype: DType, a: str, b: str, index: bool = False) -> str:
        """``function(a, b)``; index: it is known not to wrap."""

    @abstractmethod
    def cast(self, source: DType, target: DType, a: str) -> str:
        """A conversion."""

    @abstractmethod
    def bitcast(self, source: DType, target: DType, a: str) -> str:
        """The same bits as another type."""

    def text(self) -> str:
        """All functions that were asked for."""
        return "\n".join(self.functions.values())
