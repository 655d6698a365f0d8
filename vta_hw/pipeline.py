"""Registers of a pipeline."""

from amaranth.hdl import Cat, Module, Signal, Value, ValueLike

__all__ = ["COPIES", "CORE", "copies", "delayed", "delays"]

CORE = "core"
"""The matrix core's own clock domain, where ``core_clock_ratio`` is 2: two cycles in each of
``sync``, the first of which begins with it.  Nothing in it has a reset.
"""

COPIES = 4
"""Copies of a register that synthesis can be kept from merging."""


def delayed(
    m: Module, value: ValueLike, name: str, *, reset: bool = False, domain: str = "sync"
) -> Signal:
    """``value``, one cycle later; data needs no ``reset``, what starts an action does."""
    register = Signal(Value.cast(value).shape(), name=name, reset_less=not reset)
    m.d[domain] += register.eq(value)
    return register


def delays(
    m: Module, value: ValueLike, name: str, cycles: int, *, reset: bool = False
) -> list[Value]:
    """``value`` now, one cycle later, and so on to ``cycles`` later.

    A single bit goes through one shift register, which a simulator moves in one step.
    """
    chain: list[Value] = [Value.cast(value)]
    if len(chain[0]) == 1 and cycles:
        register = Signal(cycles, name=name, reset_less=not reset)
        m.d.sync += register.eq(Cat(chain[0], register))
        return [*chain, *register]
    for cycle in range(1, cycles + 1):
        chain.append(delayed(m, chain[-1], f"{name}_{cycle}", reset=reset))
    return chain


def copies(m: Module, value: ValueLike, name: str, count: int) -> list[Value]:
    """``value``, one cycle later, from ``count`` registers (at most ``COPIES``) for far places.

    Synthesis would merge equal registers: of these, two are inverted, and two have a reset.
    """
    made: list[Value] = []
    for number in range(count):
        value = Value.cast(value)
        inverted = number % 2 == 1
        register = Signal(len(value), name=f"{name}_copy{number}", reset_less=number < COPIES // 2)
        m.d.sync += register.eq(~value if inverted else value)
        seen = ~register if inverted else register
        made.append(seen.as_signed() if value.shape().signed else seen)
    return made
