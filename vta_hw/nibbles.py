"""From nibbles to weights: what LOAD makes of the beats of WGT words that are in DRAM so."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig

from .pipeline import delayed

__all__ = ["NibbleWeights"]

NIBBLE = 4


class NibbleWeights(wiring.Component):
    """Two beats of weights for each beat of nibbles.

        weight = nibble * (1 + multiplier of its output lane)

    The multipliers, in the first beats of a word, are kept.  With each later beat those of its
    lanes are chosen, and 0 to 7 times each worked out; in the cycle after it, each weight is one
    of these products, less 8 times the factor where the nibble is negative.  No multiplier.

    Members
    -------
    beat : In(1), data : In(8 * bus_bytes)
        A beat of a word.
    index : In(8)
        Its number in the word.
    weights : Out(16 * bus_bytes)
        In the next cycle, where the beat is none of the first.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._block, self._bus_bits = config.block, 8 * config.bus_bytes
        self._head = config.nibble_head_bytes // config.bus_bytes
        self._beats = config.nibble_bytes // config.bus_bytes - self._head
        super().__init__(
            {
                "beat": In(1),
                "data": In(self._bus_bits),
                "index": In(8),
                "weights": Out(2 * self._bus_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        multipliers = Signal(self._head * self._bus_bits, reset_less=True)
        for k in range(self._head):
            with m.If(self.beat & (self.index == k)):
                m.d.sync += multipliers.word_select(k, self._bus_bits).eq(self.data)

        # Weights of a beat, in as many runs of one lane.
        count = self._bus_bits // NIBBLE
        run = min(count, self._block)
        number = self.index[: (self._beats - 1).bit_length()]
        nibbles = delayed(m, self.data, "nibbles")
        weights: list[Value] = []
        for first in range(0, count, run):
            lanes = [
                (beat - self._head) % self._beats * count + first for beat in range(self._beats)
            ]
            choices = [multipliers.word_select(lane // self._block, NIBBLE) for lane in lanes]
            factor = Signal(NIBBLE + 1, name=f"factor{first}")
            m.d.comb += factor.eq(Array(choices)[number] + 1)
            kept = delayed(m, factor, f"kept{first}")
            products = Array(
                delayed(m, self._times(factor, times), f"times{times}_{first}")
                for times in range(1 << NIBBLE - 1)
            )
            for n in range(first, first + run):
                nibble = nibbles.word_select(n, NIBBLE)
                below = Cat(0, 0, 0, Mux(nibble[-1], kept, 0))
                weights.append((products[nibble[:-1]] - below)[:8])
        m.d.comb += self.weights.eq(Cat(*weights))
        return m

    def _times(self, factor: Value, times: int) -> Value:
        """``factor * times``, of at most 8 bits, by one adder at most."""
        shifted = [factor << bit for bit in range(NIBBLE) if times >> bit & 1]
        if len(shifted) == 3:
            return ((factor << 3) - factor)[:8]
        return sum(shifted[1:], shifted[0])[:8] if shifted else Signal(8)
