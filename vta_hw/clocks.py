"""The clocks of what is converted: inputs of the top, in the same order every time."""

from collections.abc import Iterable

from amaranth.hdl import ClockDomain, Elaboratable, Fragment, Signal, Value
from amaranth.lib import wiring

from .pipeline import CORE

__all__ = ["ports_of", "with_clocks"]


def with_clocks(top: Elaboratable, ports: Iterable[Signal]) -> tuple[Fragment, list[Signal]]:
    """``top``, elaborated, with the clock domains that it uses, and all ports: clocks come last.

    ``sync`` has an input ``clk`` and a reset ``rst``; ``core``, if used, ``core_clk`` alone.
    Amaranth would add domains too, but in the order of a set of their names, which differs from
    process to process.
    """
    fragment = Fragment.get(top, None)
    inputs = list(ports)
    for name in sorted(_used(fragment) - {"comb"}):
        domain = ClockDomain(name, reset_less=name == CORE)
        fragment.add_domains(domain)
        inputs += [domain.clk, *([] if domain.rst is None else [domain.rst])]
    return fragment, inputs


def ports_of(component: wiring.Component) -> list[Signal]:
    """The signals of a component's signature."""
    return [Value.cast(port) for _, _, port in component.signature.flatten(component)]


def _used(fragment: Fragment) -> set[str]:
    """The domains in which registers are set, in a fragment and below it."""
    below = (_used(each) for each, *_ in fragment.subfragments)
    return set(fragment.statements).union(*below)
