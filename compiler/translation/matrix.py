"""GEMM on symbols."""

import numpy as np

from dovetail.isa.footprint import nest
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Gemm
from dovetail.isa.memories import Memory

from .state import State
from .symbol_sums import joined, linear, multiplied
from .symbols import Array, integers, is_constant, write

__all__ = ["gemm"]


@frozen
class _Sums:
    """How iterations add up: those that are ``first`` discard all before them at their address.

    places: addresses, each once.  whole: whether what was there before is discarded.
    """

    places: Array
    whole: Array
    _order: Array
    _begins: Array
    _counted: Array

    @classmethod
    def of(cls, addresses: Array, first: Array) -> "_Sums":
        order = np.argsort(addresses, kind="stable")
        places, begins, numbers = np.unique(
            addresses[order], return_index=True, return_inverse=True
        )
        steps = np.arange(len(order))
        last = np.full(len(places), -1)
        np.maximum.at(last, numbers, np.where(first[order], steps, -1))
        return cls(places, last >= 0, order, begins, (steps >= last[numbers])[:, None])

    def total(self, x: Array) -> Array:
        """Sums of the rows of ``x`` by address; fewer than 2**33 elements of the field each."""
        return np.add.reduceat(np.where(self._counted, x[self._order], 0), self._begins, axis=0)


def gemm(state: State, instruction: Gemm) -> None:
    """Tile by tile of weights; then sums of the products of one result."""
    config, extent = state.config, instruction.extent
    act = nest(instruction.act_address, extent, instruction.act_stride, config.act_depth)
    wgt = nest(instruction.wgt_address, extent, instruction.wgt_stride, config.wgt_depth)
    acc = nest(instruction.acc_address, extent, instruction.acc_stride, config.acc_depth)
    lanes = config.block
    order = np.argsort(wgt)
    tiles, begins = np.unique(wgt[order], return_index=True)
    groups = np.split(order, begins[1:])
    weights = state.words[Memory.WGT].moved(lambda x: x[tiles].reshape(-1, lanes, lanes))
    first = np.zeros(len(acc), bool)
    if not instruction.accumulate:
        steps = [instruction.reduction >> level & 1 for level in range(len(extent))]
        first = nest(0, extent, steps, 1 << 62) == 0
    sums = _Sums.of(acc, first)
    held = state.words[Memory.ACC]
    kept = ~sums.whole[:, None]
    inputs = state.words[Memory.ACT]

    def rule(x: Array, factors: Array) -> Array:
        """x: all words of ACT, and below them those of ACC that sums go on from."""
        products = np.zeros((len(act), lanes), np.int64)
        for tile, group in enumerate(groups):
            products[group] = multiplied(x[act[group]], factors[tile].T)
        return sums.total(products) + np.where(kept, x[config.act_depth :], 0)

    words = inputs.moved(lambda x: x[np.unique(act)])
    if is_constant(words).all() and not kept.any():
        # Products of known inputs, such as unit vectors, and weights that may not be known.
        below = np.zeros((len(sums.places), lanes), np.int64)
        known = np.concatenate([inputs.values - instruction.act_zero_point, below])
        added = instruction.weight_offset * rule(known, np.ones_like(weights.values))
        total = linear(weights, known, lambda x, by: rule(by, x), added)
    else:
        before = held.moved(lambda x: x[sums.places])
        factors = weights.values + instruction.weight_offset
        both = joined(inputs, before)
        ones = np.zeros_like(both.values)
        ones[: config.act_depth] = 1
        zero = instruction.act_zero_point
        added = -zero * rule(ones, factors) if zero else np.zeros(1, np.int64)
        if is_constant(weights).all():
            total = linear(both, factors, rule, added)
        else:
            total = integers(rule(both.values, factors) + added)
    write(held, sums.places, total)
