"""Some rows of the matrix core, with their multipliers, adders and sums."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen

from .dot_products import INPUT_BITS, dot_products, dot_products_of_halves
from .pipeline import delayed, delays
from .ports import ADDRESS_BITS, ReadPort, WritePort

__all__ = ["ADDENDS", "LaneGroup", "Stages", "addend_bits", "slot_layout"]

ADDENDS = 2
"""Addends of the lanes' products: one value for even lanes, one for odd ones."""

COMPARED = 4
"""Bits of addresses compared at once in deep pipelines."""


@frozen
class Stages:
    """Cycles from the one in which a slot enters a group.

    weights: WGT is read.  operands: weights and inputs are in registers.  read: ACC is read.
    choose: the sum so far is chosen.  add: the dot product is added to it, and ACC given the sum.
    write: ACC is written.
    """

    weights: int
    operands: int
    read: int
    choose: int
    add: int
    write: int

    @classmethod
    def of(cls, config: HardwareConfig) -> "Stages":
        """The stages of a configuration."""
        if config.core_clock_ratio > 1:
            return cls(weights=2, operands=3, read=5, choose=7, add=8, write=9)
        if config.deep_pipelines:
            return cls(weights=1, operands=3, read=6, choose=8, add=9, write=10)
        return cls(weights=0, operands=2, read=3, choose=4, add=5, write=5)


def slot_layout(config: HardwareConfig) -> data.StructLayout:
    """Data that travels with a slot, which is one cycle of one tile."""
    return data.StructLayout(
        {
            "valid": 1,
            "turn": unsigned(config.tile_cycles),
            "overwrite": 1,
            "wgt": ADDRESS_BITS,
            "acc": (config.acc_depth - 1).bit_length(),
        }
    )


def addend_bits(config: HardwareConfig) -> int:
    """Bits of what a lane adds to its products: ``block`` inputs times ten bits, and a bit."""
    return INPUT_BITS + 11 + (config.block - 1).bit_length()


class LaneGroup(wiring.Component):
    """The products of ``rows`` of each part of a tile: ``ACC[o] (+)= WGT[w] @ ACT[a]``.

    By cycle, from that in which a slot enters: see ``Stages``.  Between operands and add are
    products, sums of four, and the whole (``dot_products``).  With deep pipelines ACC writes a
    cycle later.  The sums of slots that have not written when a slot reads replace what it reads.

    Members
    -------
    slot : In(slot_layout)
    act : In(9 * block)
        The inputs, in cycle ``operands``.
    addends : In(array of signed)
        What even and odd lanes add, in the cycle before ``add``.
    wgt_<turn> : Out(ReadPort)
        With ``core_clock_ratio`` 2 half of them, as ``HalvedScratchpad`` gives it.
    acc_read_<turn> : Out(ReadPort), acc_write_<turn> : Out(WritePort)
        This group's rows of each turn's part of a tile.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        self._stages = Stages.of(config)
        self._deep = config.deep_pipelines
        self._turns = config.tile_cycles
        self._lanes = config.block // config.tile_cycles // config.lane_groups
        row, sums = 8 * config.block, 32 * self._lanes
        ports: dict[str, wiring.Member] = {}
        for turn in range(self._turns):
            ports[f"wgt_{turn}"] = Out(ReadPort(row * self._lanes // config.core_clock_ratio))
            ports[f"acc_read_{turn}"] = Out(ReadPort(sums))
            ports[f"acc_write_{turn}"] = Out(WritePort(sums))
        super().__init__(
            {
                "slot": In(slot_layout(config)),
                "act": In(INPUT_BITS * config.block),
                "addends": In(data.ArrayLayout(signed(addend_bits(config)), ADDENDS)),
                **ports,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages = self._stages
        oldest = stages.choose - 1 + stages.write - stages.read
        length = max(stages.write, oldest)
        valid = delays(m, self.slot.valid, "valid", length, reset=True)
        turn = delays(m, self.slot.turn, "turn", length)
        address = delays(m, self.slot.acc, "address", length)
        keep = delays(m, ~self.slot.overwrite, "keep", stages.choose)[-1]
        wgt_address = delays(m, self.slot.wgt, "wgt_address", stages.weights)[-1]
        for k in range(self._turns):
            wgt = getattr(self, f"wgt_{k}")
            read, write = getattr(self, f"acc_read_{k}"), getattr(self, f"acc_write_{k}")
            m.d.comb += [
                wgt.enable.eq(valid[stages.weights]),
                wgt.address.eq(wgt_address),
                read.enable.eq(valid[stages.read] & turn[stages.read][k]),
                read.address.eq(address[stages.read]),
                write.enable.eq(valid[stages.add] & turn[stages.add][k]),
                write.address.eq(address[stages.add]),
            ]
        weights = self._of_turn("wgt", turn[stages.weights + 1])
        words = self._of_turn("acc_read", turn[stages.choose])
        places = [Cat(a, t) for a, t in zip(address, turn, strict=True)]
        multiply = dot_products if self._config.core_clock_ratio == 1 else dot_products_of_halves
        addends = [self.addends[k] for k in range(ADDENDS)]
        dots = multiply(m, self._config, weights, self.act, self._lanes, addends)
        totals = self._accumulate(m, dots, words, valid, places, keep)
        for k in range(self._turns):
            m.d.comb += getattr(self, f"acc_write_{k}").data.eq(Cat(*totals))
        return m

    def _of_turn(self, name: str, turn: Value) -> Value:
        """Data of the port ``name`` of this turn."""
        found: Value = getattr(self, f"{name}_0").data
        for k in range(1, self._turns):
            found = Mux(turn[k], getattr(self, f"{name}_{k}").data, found)
        return found

    def _accumulate(
        self,
        m: Module,
        dots: list[Value],
        words: Value,
        valid: list[Value],
        places: list[Value],
        keep: Value,
    ) -> list[Value]:
        """Values to write, in cycle ``add``.

        Of the slots at most ``write - read`` before this one, those of the same word have not
        written it when it reads.  The last of them counts.
        """
        choose, hidden = self._stages.choose, self._stages.write - self._stages.read

        def same(stage: int, distance: int) -> Value:
            return valid[stage + distance] & (places[stage + distance] == places[stage])

        one_before: Value = Const(0)
        if self._turns == 1:
            one_before = delayed(m, same(choose, 1) & keep, "one_before")
        before: dict[int, Value] = {}
        for distance in range(2, hidden + 1):
            name = f"before{distance}"
            if self._deep:
                # A cycle for the bits of the address, one for all of them.
                stage = choose - 2
                equal = ~(places[stage + distance] ^ places[stage])
                thirds = [equal[k : k + COMPARED].all() for k in range(0, len(equal), COMPARED)]
                parts = Cat(valid[stage + distance], *thirds)
                before[distance] = delayed(m, delayed(m, parts, f"{name}_parts").all(), name)
            else:
                before[distance] = delayed(m, same(choose - 1, distance), name)
        written = []
        for o, dot in enumerate(dots):
            total = Signal(signed(32), name=f"total{o}")
            history = delays(m, total, f"written{o}", max(1, hidden - 1))
            so_far: Value = words.word_select(o, 32)
            for distance in reversed(before):
                so_far = Mux(before[distance], history[distance - 1], so_far)
            held = delayed(m, Mux(keep, so_far, 0), f"held{o}")
            m.d.comb += total.eq(Mux(one_before, history[1], held) + dot)
            written.append(total)
        return written
