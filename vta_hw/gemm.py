"""The matrix core: one ``block x block`` tile a cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instruction_formats import GEMM_LEVELS
from dovetail.isa.memories import Memory

from . import layouts
from .affine import NestWalker
from .pipeline import delayed, delays
from .ports import ADDRESS_BITS, ReadPort, UnitControl, WritePort

__all__ = ["Gemm"]

OPERANDS = ("act", "wgt", "acc")


class Gemm(wiring.Component):
    """For each iteration ``ACC[o] (+)= WGT[w] @ ACT[a]``; int8 products, int32 sums that wrap.

    An iteration issued in cycle ``t`` writes ACC in ``t + LATENCY``.  One iteration a cycle,
    always: also across instructions, and for one ACC word again and again (the sum written in the
    cycle before is forwarded).

    By cycle: t reads ACT and WGT; t+1 words arrive; t+2 products; t+3 partial sums; t+4 sums
    complete, ACC is read; t+5 add, write.

    Resources: ``block**2`` 8x8 multipliers.

    Members
    -------
    control : In(UnitControl(layouts.GEMM))
    act, wgt, acc_read : Out(ReadPort)
    acc_write : Out(WritePort)
    """

    LATENCY = 5

    def __init__(self, config: HardwareConfig) -> None:
        self._lanes = config.block
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
        m.submodules.walker = walker = NestWalker(
            GEMM_LEVELS, 12, dict.fromkeys(OPERANDS, ADDRESS_BITS)
        )
        first = self._issue(m, walker)
        # Beside the data: valid, last, address and "overwrite", one register a cycle.
        valid = delays(m, walker.valid, "valid", self.LATENCY, reset=True)
        last = delays(m, walker.last, "last", self.LATENCY)
        address = delays(m, walker.acc, "address", self.LATENCY)
        overwrite = delays(m, first, "overwrite", self.LATENCY)
        sums = self._multiply(m)
        self._accumulate(m, sums, valid, address, overwrite)
        m.d.comb += [
            self.control.free.eq(~walker.valid | walker.last),
            self.control.busy.eq(walker.valid),
            self.control.done.eq(valid[self.LATENCY] & last[self.LATENCY]),
        ]
        return m

    def _issue(self, m: Module, walker: NestWalker) -> Value:
        """Feed the walker; return whether the tile issued now overwrites (cycle t)."""
        taken = self.control.instruction
        m.d.comb += walker.start.eq(self.control.start)
        for level in range(GEMM_LEVELS):
            m.d.comb += walker.extents[level].eq(taken[f"extent{level}"])
        for name in OPERANDS:
            m.d.comb += getattr(walker, f"{name}_base").eq(taken[f"{name}_address"])
            for level in range(GEMM_LEVELS):
                strides = getattr(walker, f"{name}_strides")
                m.d.comb += strides[level].eq(taken[f"{name}_stride{level}"])
        reduction = Signal(GEMM_LEVELS)
        accumulate = Signal()
        with m.If(self.control.start):
            m.d.sync += [reduction.eq(taken.reduction), accumulate.eq(taken.accumulate)]
        m.d.comb += [
            self.act.enable.eq(walker.valid),
            self.act.address.eq(walker.act),
            self.wgt.enable.eq(walker.valid),
            self.wgt.address.eq(walker.wgt),
        ]
        return ~accumulate & ((walker.index_zero | ~reduction) == (1 << GEMM_LEVELS) - 1)

    def _multiply(self, m: Module) -> list[Value]:
        """The dot product of each output lane, complete in cycle t+4 (a register, visible in
        t+5).
        """
        lanes = range(self._lanes)
        act = [delayed(m, self.act.data.word_select(i, 8).as_signed(), f"act{i}") for i in lanes]
        sums = []
        for o in lanes:
            terms: list[Value] = []
            for i in lanes:
                tile = self.wgt.data.word_select(o * self._lanes + i, 8).as_signed()
                weight = delayed(m, tile, f"wgt{o}_{i}")
                terms.append(delayed(m, weight * act[i], f"product{o}_{i}"))
            partial = [
                delayed(m, sum(terms[k : k + 4]), f"partial{o}_{k}")
                for k in range(0, self._lanes, 4)
            ]
            sums.append(delayed(m, sum(partial), f"sum{o}"))
        return sums

    def _accumulate(
        self,
        m: Module,
        sums: list[Value],
        valid: list[Value],
        address: list[Value],
        overwrite: list[Value],
    ) -> None:
        """Read ACC in cycle t+4; add and write in t+5, with the word written in t+4 forwarded."""
        read, write = self.LATENCY - 1, self.LATENCY
        forwarded = Signal(self.acc_write.data.shape())
        forward = Signal()
        wrapped = self._acc_bits
        m.d.comb += [
            self.acc_read.enable.eq(valid[read]),
            self.acc_read.address.eq(address[read]),
            self.acc_write.enable.eq(valid[write]),
            self.acc_write.address.eq(address[write]),
        ]
        m.d.sync += [
            forwarded.eq(self.acc_write.data),
            forward.eq(valid[write] & (address[write][:wrapped] == address[read][:wrapped])),
        ]
        held = Signal.like(forwarded)
        m.d.comb += held.eq(Mux(forward, forwarded, self.acc_read.data))
        totals = []
        for o, lane_sum in enumerate(sums):
            total = Signal(signed(32), name=f"total{o}")
            old = Mux(overwrite[write], 0, held.word_select(o, 32))
            m.d.comb += total.eq(old + lane_sum)
            totals.append(total)
        m.d.comb += self.acc_write.data.eq(Cat(*totals))
