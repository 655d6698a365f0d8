"""The matrix core: one ``block x block`` tile a cycle."""

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instruction_formats import GEMM_LEVELS
from dovetail.isa.latency import compute_latency
from dovetail.isa.memories import Memory, Unit

from . import layouts
from .affine import NestWalker
from .dot_products import INPUT_BITS, grouped_sum
from .lane_group import LaneGroup, addend_bits, slot_layout
from .paired_products import MULTIPLIER_BITS, high_excess, low_excess
from .pipeline import delayed, delays
from .ports import ReadPort, UnitControl, WritePort

__all__ = ["Gemm", "matrix_parts"]

OPERANDS = ("act", "wgt", "acc")
PARTED = {"wgt": Memory.WGT, "acc_read": Memory.ACC, "acc_write": Memory.ACC}


def matrix_parts(config: HardwareConfig) -> int:
    """Parts of a word of WGT and ACC, each with memories of its own: part ``turn * lane_groups +
    group`` has the rows of a group in a turn.
    """
    return config.tile_cycles * config.lane_groups


class Gemm(wiring.Component):
    """For each iteration ``ACC[o] (+)= WGT[w] @ ACT[a]``; int32 sums that wrap.

    A slot issued in cycle ``t``, one cycle of a tile, writes ACC in ``t + compute_latency(config)[
    GEMM]``.  One iteration in ``tile_cycles``, always: also across instructions, and for one ACC
    word again and again.

    The rows of a tile are taken in ``tile_cycles`` turns, each by all groups of lanes, of which
    each works a cycle behind its neighbour, on inputs that come from it.

    By cycle, for the first group: t reads ACT and WGT; t+1 words arrive; t+2 products; t+3 partial
    sums, ACC is read; t+4 dot products complete, the ACC word arrives; t+5 adds and writes.  Deep
    pipelines: t+1 reads ACT, t+2 WGT, t+5 products, t+7 partial sums, ACC is read; t+9 the ACC word
    arrives, t+10 adds, t+11 writes.  Multipliers with a clock of their own: t+3 WGT, t+5.5 and t+6
    products, t+6 ACC is read, t+9 adds, t+10 writes.

    The weight offset costs no cycle: the inputs are added up while products are made, their sum is
    multiplied by the offset and added to every lane's dot product.  Nor does the inputs' zero
    point, which is taken from them on their way to the multipliers.

    Resources: ``block * multiplier_rows`` 8x9 multipliers, and one for the weight offset; or, with
    paired products, half as many 25x9 multipliers and two.

    Members
    -------
    control : In(UnitControl(layouts.GEMM))
    act : Out(ReadPort)
        Deep pipelines: data follow two cycles after the address.
    wgt_<part> : Out(ReadPort)
        Of the part, or of half of it (``HalvedScratchpad``).
    acc_read_<part> : Out(ReadPort), acc_write_<part> : Out(WritePort)
        Reads as for ``act``.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        self._deep = config.deep_pipelines
        self._latency = compute_latency(config)[Unit.GEMM]
        self._paired = config.multiplier_bits >= MULTIPLIER_BITS
        parts = matrix_parts(config)
        ports: dict[str, wiring.Member] = {}
        for name, memory in PARTED.items():
            signature = WritePort if name == "acc_write" else ReadPort
            for part in range(parts):
                width = 8 * config.word_bytes(memory) // parts
                if memory is Memory.WGT:
                    width //= config.core_clock_ratio
                ports[f"{name}_{part}"] = Out(signature(width))
        super().__init__(
            {
                "control": In(UnitControl(layouts.GEMM)),
                "act": Out(ReadPort(8 * config.word_bytes(Memory.ACT))),
                **ports,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.walker = walker = NestWalker(GEMM_LEVELS, 12, OPERANDS, config.tile_cycles)
        first, offset, zero = self._issue(m, walker)
        slot = Signal(slot_layout(config), name="slot0")
        m.d.comb += [
            slot.valid.eq(walker.valid),
            slot.turn.eq(walker.turn),
            slot.overwrite.eq(first),
            slot.wgt.eq(walker.wgt),
            slot.acc.eq(walker.acc),
        ]
        act_address = walker.act
        if self._deep:
            slot, act_address = self._next(m, slot, 0), delayed(m, act_address, "act_address")
        m.d.comb += [self.act.enable.eq(slot.valid), self.act.address.eq(act_address)]
        # The zero point of the slot whose word arrives.
        zero = delays(m, zero, "zero_point", 3 if self._deep else 1)[-1]
        word = [
            (self.act.data.word_select(i, 8).as_signed() - zero).as_signed()
            for i in range(config.block)
        ]
        inputs = Cat(*word)
        act = delayed(m, inputs, "act0")
        even, odd = self._addends(m, act if self._deep else inputs, offset)
        if self._deep:
            # As much later as the products, for the registers of multipliers.
            later = 2 if config.core_clock_ratio == 1 else 1
            even, odd = delays(m, even, "even", later)[-1], delays(m, odd, "odd", later)[-1]
        for group in range(config.lane_groups):
            if group:
                slot = self._next(m, slot, group)
                act, even, odd = (
                    delayed(m, value, f"{name}{group}")
                    for name, value in (("act", act), ("even", even), ("odd", odd))
                )
            m.submodules[f"group{group}"] = lanes = LaneGroup(config)
            m.d.comb += [
                lanes.slot.eq(slot),
                lanes.act.eq(act),
                lanes.addends[0].eq(even),
                lanes.addends[1].eq(odd),
            ]
            for turn in range(config.tile_cycles):
                part = turn * config.lane_groups + group
                for name in PARTED:
                    own, port = getattr(self, f"{name}_{part}"), getattr(lanes, f"{name}_{turn}")
                    connect(m, port, flipped(own))
        m.d.comb += [
            self.control.free.eq(~walker.valid | walker.last),
            self.control.busy.eq(walker.valid),
            self.control.done.eq(delays(m, walker.last, "last", self._latency, reset=True)[-1]),
        ]
        return m

    def _next(self, m: Module, slot: Signal, group: int) -> Signal:
        """``slot``, one cycle later; inverted in between.

        What a group delays is what its neighbour has delayed a cycle more; were it the same
        register, it would be near only one of them.
        """
        layout = slot_layout(self._config)
        off = Signal(name=f"off_at_group{group}", init=1)
        kept = Signal(layout.size, name=f"inverted_at_group{group}", reset_less=True)
        later = Signal(layout, name=f"slot_at_group{group}")
        m.d.sync += [off.eq(~slot.valid), kept.eq(~slot.as_value())]
        m.d.comb += [later.as_value().eq(~kept), later.valid.eq(~off)]
        return later

    def _issue(self, m: Module, walker: NestWalker) -> tuple[Value, Value, Value]:
        """Feed the walker; return whether the tile issued now overwrites, what is added to its
        weights, and what is taken from its inputs (cycle t).
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
        zero = Signal(signed(8), reset_less=True)
        with m.If(self.control.start):
            m.d.sync += [reduction.eq(taken.reduction), accumulate.eq(taken.accumulate)]
            m.d.sync += [offset.eq(taken.weight_offset), zero.eq(taken.act_zero_point)]
        return ~accumulate & (walker.index_zero | ~reduction).all(), offset, zero

    def _addends(self, m: Module, inputs: Value, offset: Value) -> tuple[Value, Value]:
        """Values that even and odd lanes add to their products: ``offset`` times the sum of the
        inputs, and the correction for halves of paired products.
        """
        shape = signed(addend_bits(self._config))
        arrives = 4 if self._deep else 1
        words = [inputs.word_select(i, INPUT_BITS).as_signed() for i in range(self._config.block)]
        total = grouped_sum(m, words, "inputs")
        offset = delays(m, offset, "offset", arrives + 2)[-1]
        even, odd = Signal(shape), Signal(shape)
        if not self._paired:
            product = delayed(m, total * offset, "offset_product")
            m.d.comb += [even.eq(product), odd.eq(product)]
            return even, odd
        low = grouped_sum(m, [low_excess(word) for word in words], "low_excess")
        high = grouped_sum(m, [high_excess(word) for word in words], "high_excess")
        m.d.comb += [
            even.eq(delayed(m, total * (offset - 128) - (low + (high << 16)), "offset_low")),
            odd.eq(delayed(m, total * offset + high, "offset_high")),
        ]
        return even, odd
