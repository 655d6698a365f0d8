"""Choices between places in ACT, of which a planner tries each."""

from dataclasses import dataclass

__all__ = ["PLACINGS", "PLAIN", "Placing"]


@dataclass(frozen=True, slots=True)
class Placing:
    """What decides between plans in which all layers run in the same ways, most of it between
    places for an item.  Which is best depends on the network.

    same_layer: what two units of one layer count that may want to read, or to write, the same bank
    at one time; those of layers near each other count 1.  few_banks: whether of places with equal
    counts those in fewer banks are better.  addends: whether VECTOR counts as a reader of the
    results of residual sums: it reads there what it wrote before.  eager: whether dense layers run
    block by block where little is gained, too.
    """

    same_layer: int = 1
    few_banks: bool = False
    addends: bool = True
    eager: bool = False


PLAIN = Placing(addends=False)
PLACINGS = (PLAIN, Placing(2, few_banks=True), Placing(), Placing(1, few_banks=True), Placing(2))
"""All that are tried."""
