"""Registers of a pipeline."""

from amaranth.hdl import Cat, Module, Signal, Value, ValueLike

__all__ = ["delayed", "delays"]


def delayed(m: Module, value: ValueLike, name: str, *, reset: bool = False) -> Signal:
    """``value``, one cycle later; data needs no ``reset``, what starts an action does."""
    register = Signal(Value.cast(value).shape(), name=name, reset_less=not reset)
    m.d.sync += register.eq(value)
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
