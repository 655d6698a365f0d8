"""Choices between places in ACT, each of which a planner tries."""

from dovetail.isa.frozen import frozen

__all__ = ["PLACINGS", "PLAIN", "Placing"]


@frozen
class Placing:
    """A choice between plans in which all layers run in the same ways, mostly of the places of
    items.  The best one depends on the network.

    same_layer: how much it counts that two units of one layer may want to read, or to write, the
    same bank at one time; for layers near each other it counts 1.  few_banks: whether, of places
    with equal counts, those in fewer banks are better.  addends: whether VECTOR counts as a reader
    of the results of residual sums, where it reads what it wrote before.  eager: whether dense
    layers run block by block even where little is gained, and begin early.  apart: whether, before
    all else, items lie where nothing has lain for the longest time, so that few instructions wait
    for a place; all of ACT is used then.

    Two more choose how DRAM is used.  whole: whether a result that is all on chip is stored at
    once, rather than in parts as they are made.  cut: whether long LOADs of constants are cut.
    """

    same_layer: int = 1
    few_banks: bool = False
    addends: bool = True
    eager: bool = False
    apart: bool = False
    whole: bool = False
    cut: bool = False


PLAIN = Placing(addends=False)
PLACINGS = (PLAIN, Placing(2, few_banks=True), Placing(), Placing(1, few_banks=True), Placing(2))
"""All that are tried."""
