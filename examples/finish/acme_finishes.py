"""A leaky ReLU as a finish of the vector unit."""

import numpy as np

from dovetail.isa.finishes import OwnFinish
from dovetail.vta_sim.native.language import Lanes, largest, smallest, splat


def meaning(values, shift):
    """The meaning, in NumPy; values: int32[...]."""
    return np.where(values < 0, np.rint(values / 2.0**shift), values).astype(np.int32)


def native(value: Lanes, shift: int) -> Lanes:
    """The same for the simulator."""
    if shift == 0:
        return value
    below = smallest(value, splat(0))
    # Half to even: a half, less the last bit, plus the lowest bit kept.
    rounding = (1 << shift - 1) - 1 + (below >> shift & 1)
    return largest(value, splat(0)) + (below + rounding >> shift)


def gateware(m, value, shift):
    """The same in Amaranth, with two registers."""
    from amaranth.hdl import Mux, Signal, signed

    negative = value[-1] & shift.any()
    rounding = ((1 << shift) >> 1) - 1 + (value >> shift)[0]
    raised, amount = Signal(signed(33), reset_less=True), Signal(5, reset_less=True)
    result = Signal(signed(32), reset_less=True)
    m.d.sync += [
        raised.eq(value + Mux(negative, rounding, 0)),
        amount.eq(Mux(negative, shift, 0)),
        result.eq(raised >> amount),
    ]
    return result


LEAKY = OwnFinish(
    name="leaky",
    text="`v` where it is not negative, `v / 2**shift`, half to even, elsewhere: a leaky ReLU.",
    meaning=meaning,
    native=native,
    gateware=gateware,
    latency=2,
)
