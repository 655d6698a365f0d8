"""Products without multipliers, and products too wide for one multiplier, pipelined.

An FPGA has few multipliers and the matrix core takes most of them: what is narrow is made of adders
here, and what is wide is one 18x18 product with adders for the rest.
"""

from amaranth.hdl import Cat, Module, Mux, Value

from .pipeline import delayed, delays

__all__ = ["ADDERS_LATENCY", "WIDE_LATENCY", "product_of_adders", "wide_product"]

ADDERS_LATENCY = 2
"""Cycles of ``product_of_adders``."""
WIDE_LATENCY = 4
"""Cycles of ``wide_product``."""
MULTIPLIER_BITS = 18
"""Bits of an operand of ECP5's multipliers, without a sign bit."""
DIGIT = 2
"""Bits of the first operand that one row of adders multiplies by."""


def product_of_adders(m: Module, a: Value, b: Value, bits: int, name: str) -> Value:
    """The low ``bits`` of ``a * b``, ``ADDERS_LATENCY`` cycles later, without a multiplier.

    Each operand is signed or not, by its shape; the narrower one first.
    """
    rows: list[tuple[Value, int]] = []
    for low in range(0, min(len(a), bits), DIGIT):
        terms = []
        for place in range(low, min(low + DIGIT, len(a))):
            term = Mux(a[place], b, 0) << (place - low)
            terms.append(-term if a.shape().signed and place == len(a) - 1 else term)
        rows.append((delayed(m, _low(sum(terms[1:], terms[0]), bits - low), f"{name}_{low}"), low))
    while len(rows) > 1:
        pairs = [rows[k : k + 2] for k in range(0, len(rows), 2)]
        rows = [
            (
                _low(sum((v << (at - pair[0][1]) for v, at in pair[1:]), pair[0][0]), bits),
                pair[0][1],
            )
            for pair in pairs
        ]
    return delayed(m, _low(rows[0][0], bits), f"{name}_sum")


def wide_product(m: Module, a: Value, b: Value, bits: int, name: str) -> Value:
    """The low ``bits`` of ``a * b``, ``WIDE_LATENCY`` cycles later, with one multiplier.

    Operands both without a sign, ``a`` of up to 24 bits and ``b`` of up to 31, or both with one, of
    up to 24 bits and ``a`` of at most 18.
    """
    signed = a.shape().signed
    # Registers on both sides of the multiplier: it takes much of a cycle, and may be far away.
    a, b = delayed(m, a, f"{name}_first"), delayed(m, b, f"{name}_second")
    # A part without a sign has a bit less in a multiplier for signed numbers.
    split = MULTIPLIER_BITS - signed
    low_a, high_a = (a, None) if signed or len(a) <= split else (a[:split], a[split:])
    low_b, high_b = b[:split], b[split:].as_signed() if signed else b[split:]
    low = delays(m, low_a * (Cat(low_b, 0).as_signed() if signed else low_b), f"{name}_low", 2)[-1]
    upper = bits - split
    rest = product_of_adders(m, high_b, low_a, upper, f"{name}_b")
    if high_a is not None:
        rest = rest + product_of_adders(m, high_a, b, upper, f"{name}_a")
    return delayed(m, Cat(low[:split], (low[split:] + rest)[:upper]), name)


def _low(value: Value, bits: int) -> Value:
    """``value``, without the bits above the lowest ``bits``."""
    return value if len(value) <= bits else value[:bits]
