"""Products of weights with inputs, and their sums: the multipliers and adders of some rows."""

from amaranth.hdl import Module, Signal, Value

from dovetail.isa.config import HardwareConfig

from .paired_products import MULTIPLIER_BITS, paired_operand, split_product
from .pipeline import CORE, delayed

__all__ = ["INPUT_BITS", "dot_products", "dot_products_of_halves", "grouped_sum"]

INPUT_BITS = 9
"""Bits of a byte less its zero point."""

TERMS = 4
"""Values that one cycle adds up; the next one adds all those sums."""

PAIR = 2
"""Values that one cycle of ``CORE`` adds up: less than ``TERMS``, near their multipliers."""


def dot_products(
    m: Module, config: HardwareConfig, weights: Value, act: Value, lanes: int, addends: list[Value]
) -> list[Value]:
    """The dot product of each lane's row of ``weights`` with ``act``, and what its lane adds.

    weights: a cycle before ``act``, row by row.  addends: lanes take them in turn, in the cycle
    before the result.

    Three cycles after ``act``; deep pipelines: six, with two registers on each side of a
    multiplier, of which an FPGA's multipliers have the inner ones, and with a cycle of its own for
    what all lanes add.
    """
    wgt = delayed(m, weights, "weights")
    if config.deep_pipelines:
        wgt, act = delayed(m, wgt, "weights_in"), delayed(m, act, "act_in")
    sums: list[Value] = []
    for o, products in enumerate(_products(m, config, wgt, act, lanes, "sync")):
        addend = addends[o % len(addends)]
        if config.deep_pipelines:
            products = [
                delayed(m, product, f"product_out{o}_{i}") for i, product in enumerate(products)
            ]
            whole = grouped_sum(m, products, f"sum{o}")
            sums.append(delayed(m, whole + addend, f"dot{o}"))
        else:
            sums.append(grouped_sum(m, products, f"sum{o}", addend))
    return sums


def dot_products_of_halves(
    m: Module, config: HardwareConfig, weights: Value, act: Value, lanes: int, addends: list[Value]
) -> list[Value]:
    """As ``dot_products``, from half as many multipliers in the domain ``CORE``, five cycles after
    ``act``.

    weights: in ``CORE``, in the same cycle as ``act``: those of the first half of the lanes in its
    first half, of the others in its second.

    Between the clocks are registers only.  What goes into ``CORE`` stays for both halves of a
    cycle; of what comes out, the first half waits for the second.
    """
    wgt = delayed(m, delayed(m, weights, "weights", domain=CORE), "weights_in", domain=CORE)
    act = delayed(m, act, "act_in")
    first: list[Value] = []
    second: list[Value] = []
    for o, products in enumerate(_products(m, config, wgt, act, lanes // 2, CORE)):
        pairs = [
            delayed(m, sum(products[k : k + PAIR]), f"pair{o}_{k}", domain=CORE)
            for k in range(0, len(products), PAIR)
        ]
        whole = grouped_sum(m, pairs, f"sum{o}", terms=PAIR, domain=CORE)
        waits = delayed(m, whole, f"waits{o}", domain=CORE)
        first.append(delayed(m, waits, f"first{o}"))
        second.append(delayed(m, whole, f"second{o}"))
    return [
        delayed(m, whole + addends[o % len(addends)], f"dot{o}")
        for o, whole in enumerate((*first, *second))
    ]


def grouped_sum(
    m: Module,
    values: list[Value],
    name: str,
    addend: Value | int = 0,
    *,
    terms: int = TERMS,
    domain: str = "sync",
) -> Signal:
    """The sum of ``values`` two cycles later; of ``addend`` one cycle later."""
    groups = [
        delayed(m, sum(values[k : k + terms]), f"{name}_{k}", domain=domain)
        for k in range(0, len(values), terms)
    ]
    return delayed(m, sum(groups) + addend, name, domain=domain)


def _products(
    m: Module, config: HardwareConfig, weights: Value, act: Value, lanes: int, domain: str
) -> list[list[Value]]:
    """The products of each row of weights with the inputs, or halves of paired products."""
    size = config.block
    inputs = [act.word_select(i, INPUT_BITS).as_signed() for i in range(size)]
    rows = [
        [weights.word_select(o * size + i, 8).as_signed() for i in range(size)]
        for o in range(lanes)
    ]
    if config.multiplier_bits < MULTIPLIER_BITS:
        return [
            [
                delayed(m, weight * value, f"product{o}_{i}", domain=domain)
                for i, (weight, value) in enumerate(zip(row, inputs, strict=True))
            ]
            for o, row in enumerate(rows)
        ]
    products: list[list[Value]] = [[] for _ in rows]
    for o in range(0, len(rows), 2):
        for i, value in enumerate(inputs):
            operand = paired_operand(rows[o][i], rows[o + 1][i])
            product = delayed(m, operand * value, f"product{o}_{i}", domain=domain)
            for lane, half in enumerate(split_product(product), o):
                products[lane].append(half)
    return products
