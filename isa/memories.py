"""Names of the accelerator's on-chip memories and execution units."""

from enum import Enum, IntEnum

__all__ = ["Memory", "Unit"]


class Memory(Enum):
    """A scratchpad; words are vectors of ``block`` lanes (WGT: ``block x block`` tiles)."""

    ACT = "act"
    """int8 vectors: layer inputs and outputs."""
    WGT = "wgt"
    """int8 tiles, row-major ``[output lane][input lane]``."""
    ACC = "acc"
    """int32 vectors: accumulators."""
    PAR = "par"
    """Per-channel parameters: ``block`` int32 biases, then ``block`` float32 scales."""
    TAP = "tap"
    """int8 vectors: depthwise weights."""
    TAB = "tab"
    """int8 vectors: look-up tables, 256 consecutive words a table."""

    __hash__ = object.__hash__
    """There is one object of each; ``Enum`` would hash the name, in Python."""

    @property
    def code(self) -> int:
        """Number of this memory in a LOAD instruction."""
        return list(Memory).index(self)


class Unit(IntEnum):
    """An execution unit; the value is its bit in token masks."""

    LOAD = 0
    GEMM = 1
    VECTOR = 2
    STORE = 3
