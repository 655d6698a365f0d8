"""Two products of int8 weights with an input of 9 bits, in one multiplier of 25 by 9 bits.

For weights ``w0``, ``w1`` and their common input ``a``, with ``operand = w1 * 2**17 + 2 * w0 +
257``::

    low  = bits 1 to 16 of operand * a  = w0 * a + 128 * a + (a >> 1) + 2**16 * (a < 0)
    high = bits 17 to 32 of operand * a = w1 * a - (a < 0)

``2 * w0 + 257`` is odd, positive and below ``2**9``: its product has the sign of ``a`` and at most
17 bits beside it, so that what it borrows from the upper half, and what it adds to the lower one,
depend on the input alone.  A dot product is put right by two sums over the inputs, common to all
outputs.  Exact for all int8 weights and inputs of -255 to 255.
"""

from amaranth.hdl import Cat, Const, Value

__all__ = ["MULTIPLIER_BITS", "high_excess", "low_excess", "paired_operand", "split_product"]

MULTIPLIER_BITS = 25
"""Width of the operand of two weights."""


def paired_operand(low_weight: Value, high_weight: Value) -> Value:
    """``high * 2**17 + 2 * low + 257``, signed, of two int8 weights; wires and an inverter."""
    offset_low = Cat(low_weight[:7], ~low_weight[7])
    return Cat(Const(1, 1), offset_low, Const(0, 8), high_weight[:8]).as_signed()


def split_product(product: Value) -> tuple[Value, Value]:
    """Low (uint16) and high half (int16) of the operand's product with an input."""
    return product[1:17].as_unsigned(), product[17:33].as_signed()


def low_excess(act: Value) -> Value:
    """Excess of the low half, less ``128 * act`` and ``2**16`` times what is missing in the high
    one; in -128 to 127.
    """
    return act[1:].as_signed()


def high_excess(act: Value) -> Value:
    """Shortfall of the high half: 0 or 1."""
    return act[-1]
