"""Facts about a CPU's core that the rules use."""

from dovetail.isa.frozen import frozen, replace

__all__ = ["Machine"]


@frozen
class Machine:
    """The part of a CPU's core that a tile may use."""

    vector_bytes: int = 64
    registers: int = 32
    """Vector registers, for a tile and the operands of a step."""
    multiply_adds: int = 2
    """Started in a cycle."""
    loads: int = 2
    """Started in a cycle."""
    latency: int = 4
    """Cycles from a multiply-add to the next one that needs its result."""
    cache_bytes: int = 40
    """Bytes that come from the second-level cache in a cycle."""
    memory_bytes: int = 10
    """Bytes that come from memory in a cycle, when they are asked for early."""
    streamed_bytes: int = 1 << 20
    """Least bytes of operands that leave the second-level cache and are asked for early."""
    threads: int = 1
    """Threads that share the outer loops; each has a core."""

    def of_dots(self) -> "Machine":
        """The same where each accumulator takes 64 bytes, in as many registers as that needs."""
        registers = max(self.registers * self.vector_bytes // 64, 4)
        return replace(self, vector_bytes=64, registers=registers)
