"""The matrix core: one ``block x block`` tile a cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instruction_formats import GEMM_LEVELS
from dovetail.isa.latency import compute_latency
from dovetail.isa.memories import Memory, Unit

from . import layouts
from .affine import NestWalker
from .paired_products import (
    MULTIPLIER_BITS,
    high_excess,
    low_excess,
    paired_operand,
    split_product,
)
from .pipeline import delayed, delays
from .ports import ReadPort, UnitControl, WritePort

__all__ = ["Gemm"]

OPERANDS = ("act", "wgt", "acc")
LANE_GROUP = 4
"""Products that one cycle adds up; the next one adds all those sums."""


class Gemm(wiring.Component):
    """For each iteration ``ACC[o] (+)= WGT[w] @ ACT[a]``; int8 products, int32 sums that wrap.

    An iteration issued in cycle ``t`` writes ACC in ``t + compute_latency(config)[GEMM]``.  One
    iteration a cycle, always: also across instructions, and for one ACC word again and again.

    By cycle: t reads ACT and WGT; t+1 words arrive; t+2 products; t+3 partial sums, ACC is read;
    t+4 dot products complete, the ACC word arrives; t+5 adds and writes.  The sums of the two
    tiles before are not yet to be seen in what t+3 reads: that of two cycles before replaces the
    word in t+4, that of the cycle before in t+5.

    The weight offset costs no cycle: the inputs are added up beside the products, their sum is
    multiplied by the offset in t+3 and added to every lane's dot product in t+4.

    Resources: ``block**2`` 8x8 multipliers, and one for the weight offset; or, with paired
    products, ``block**2 / 2`` 25x8 multipliers and two.

    Members
    -------
    control : In(UnitControl(layouts.GEMM))
    act, wgt, acc_read : Out(ReadPort)
    acc_write : Out(WritePort)
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._lanes = config.block
        self._latency = compute_latency(config)[Unit.GEMM]
        self._paired = config.multiplier_bits >= MULTIPLIER_BITS
        self._acc_bits = (config.acc_depth - 1).bit_length()
        acc_width = 8 * config.word_bytes(Memory.ACC)
        super().__init__(
            {
                "control": In(UnitControl(layouts.GEMM)),
                "act": Out(ReadPort(8 * config.word_bytes(Memory.ACT))),
                "wgt": Out(ReadPort(8 * config.word_bytes(Memory.WGT))),
                "acc_read": Out(ReadPort(acc_width)),
                "acc_write": Out(WritePort(acc_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.walker = walker = NestWalker(GEMM_LEVELS, 12, OPERANDS)
        first, offset = self._issue(m, walker)
        # The result's way beside the data, one register a cycle.
        valid = delays(m, walker.valid, "valid", self._latency, reset=True)
        last = delays(m, walker.last, "last", self._latency)
        address = delays(m, walker.acc[: self._acc_bits], "address", self._latency)
        overwrite = delays(m, first, "overwrite", self._latency)
        self._accumulate(m, self._multiply(m, offset), valid, address, overwrite)
        m.d.comb += [
            self.control.free.eq(~walker.valid | walker.last),
            self.control.busy.eq(walker.valid),
            self.control.done.eq(valid[self._latency] & last[self._latency]),
        ]
        return m

    def _issue(self, m: Module, walker: NestWalker) -> tuple[Value, Value]:
        """Feed the walker; return whether the tile issued now overwrites, and what is added to its
        weights (cycle t).
        """
        taken = self.control.instruction
        m.d.comb += walker.start.eq(self.control.start)
        for level in range(GEMM_LEVELS):
            m.d.comb += walker.extents[level].eq(taken[f"extent{level}"])
        for name in OPERANDS:
            m.d.comb += getattr(walker, f"{name}_base").eq(taken[f"{name}_address"])
            for level in range(GEMM_LEVELS):
                strides = getattr(walker, f"{name}_strides")
                m.d.comb += strides[level].eq(taken[f"{name}_stride{level}"])
        reduction = Signal(GEMM_LEVELS, reset_less=True)
        accumulate = Signal(reset_less=True)
        offset = Signal(signed(9), reset_less=True)
        with m.If(self.control.start):
            m.d.sync += [reduction.eq(taken.reduction), accumulate.eq(taken.accumulate)]
            m.d.sync += offset.eq(taken.weight_offset)
        m.d.comb += [
            self.act.enable.eq(walker.valid),
            self.act.address.eq(walker.act),
            self.wgt.enable.eq(walker.valid),
            self.wgt.address.eq(walker.wgt),
        ]
        return ~accumulate & (walker.index_zero | ~reduction).all(), offset

    def _input_sums(self, m: Module, offset: Value) -> list[Value]:
        """What each output lane adds to its products: ``offset`` times the sum of the inputs, and
        what puts halves of paired products right; complete in cycle t+4.
        """
        lanes = self._lanes
        words = [self.act.data.word_select(i, 8).as_signed() for i in range(lanes)]
        total = self._grouped_sum(m, words, "inputs")
        offset = delays(m, offset, "offset", 3)[-1]
        if not self._paired:
            return [delayed(m, total * offset, "offset_product")] * lanes
        low = self._grouped_sum(m, [low_excess(word) for word in words], "low_excess")
        high = self._grouped_sum(m, [high_excess(word) for word in words], "high_excess")
        return [
            delayed(m, total * (offset - 128) - low, "offset_low"),
            delayed(m, total * offset + high, "offset_high"),
        ] * (lanes // 2)

    def _grouped_sum(self, m: Module, values: list[Value], name: str) -> Signal:
        """The sum of ``values`` two cycles later."""
        groups = [
            delayed(m, sum(values[k : k + LANE_GROUP]), f"{name}{k}")
            for k in range(0, len(values), LANE_GROUP)
        ]
        return delayed(m, sum(groups), name)

    def _multiply(self, m: Module, offset: Value) -> list[Value]:
        """The dot product of each output lane: a register that is complete in cycle t+5."""
        lanes = self._lanes
        input_sums = self._input_sums(m, offset)
        act = delayed(m, self.act.data, "act2")
        wgt = delayed(m, self.wgt.data, "wgt2")
        inputs = [act.word_select(i, 8).as_signed() for i in range(lanes)]
        rows = [
            [wgt.word_select(o * lanes + i, 8).as_signed() for i in range(lanes)]
            for o in range(lanes)
        ]
        sums = []
        for o, products in enumerate(self._products(m, rows, inputs)):
            partial = [
                delayed(m, sum(products[k : k + LANE_GROUP]), f"partial{o}_{k}")
                for k in range(0, lanes, LANE_GROUP)
            ]
            sums.append(delayed(m, sum(partial) + input_sums[o], f"sum{o}"))
        return sums

    def _products(
        self, m: Module, rows: list[list[Value]], inputs: list[Value]
    ) -> list[list[Value]]:
        """Of each row of weights its products with the inputs, or halves of paired products."""
        if not self._paired:
            return [
                [
                    delayed(m, weight * act, f"product{o}_{i}")
                    for i, (weight, act) in enumerate(zip(row, inputs, strict=True))
                ]
                for o, row in enumerate(rows)
            ]
        products: list[list[Value]] = [[] for _ in rows]
        for o in range(0, len(rows), 2):
            for i, act in enumerate(inputs):
                operand = paired_operand(rows[o][i], rows[o + 1][i])
                halves = split_product(delayed(m, operand * act, f"product{o}_{i}"))
                for lane, half in enumerate(halves, o):
                    products[lane].append(half)
        return products

    def _accumulate(
        self,
        m: Module,
        sums: list[Value],
        valid: list[Value],
        address: list[Value],
        overwrite: list[Value],
    ) -> None:
        """Read ACC in cycle t+3, choose the sum so far in t+4, add and write in t+5."""
        read, choose, write = self._latency - 2, self._latency - 1, self._latency
        m.d.comb += [
            self.acc_read.enable.eq(valid[read]),
            self.acc_read.address.eq(address[read]),
            self.acc_write.enable.eq(valid[write]),
            self.acc_write.address.eq(address[write]),
        ]
        keep = ~overwrite[choose]
        follows = valid[write] & (address[write] == address[choose])
        follows_second = valid[write] & (address[write] == address[read])
        one_before = delayed(m, follows & keep, "one_before")
        two_before = delayed(m, follows_second, "two_before")
        totals = []
        for o, lane_sum in enumerate(sums):
            total = Signal(signed(32), name=f"total{o}")
            written = delayed(m, total, f"written{o}")
            word = self.acc_read.data.word_select(o, 32)
            so_far = Mux(keep, Mux(two_before, written, word), 0)
            held = delayed(m, so_far, f"held{o}")
            m.d.comb += total.eq(Mux(one_before, written, held) + lane_sum)
            totals.append(total)
        m.d.comb += self.acc_write.data.eq(Cat(*totals))
