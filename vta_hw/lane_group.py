"""Some rows of the matrix core, with their multipliers, adders and sums."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig

from .paired_products import MULTIPLIER_BITS, paired_operand, split_product
from .pipeline import delayed, delays
from .ports import ADDRESS_BITS, ReadPort, WritePort

__all__ = ["ADDENDS", "LaneGroup", "Stages", "addend_bits", "grouped_sum", "slot_layout"]

ADDENDS = 2
"""What lanes add to their products: one value for even lanes, one for odd ones."""

TERMS = 4
"""Values that one cycle adds up; the next one adds all those sums."""

COMPARED = 4
"""Bits of addresses compared at once in deep pipelines."""


@dataclass(frozen=True, slots=True)
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
        if config.deep_pipelines:
            return cls(weights=1, operands=3, read=6, choose=8, add=9, write=10)
        return cls(weights=0, operands=2, read=3, choose=4, add=5, write=5)


def slot_layout(config: HardwareConfig) -> data.StructLayout:
    """What travels with a slot: one cycle of one tile."""
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
    """Bits of what a lane adds to its products: ``block`` bytes times ten bits, and a bit."""
    return 19 + (config.block - 1).bit_length()


class LaneGroup(wiring.Component):
    """Of ``rows`` of each part of a tile: ``ACC[o] (+)= WGT[w] @ ACT[a]``.

    By cycle, from that in which a slot enters: see ``Stages``.  Between operands and add are
    products, sums of four, and the whole.  Deep pipelines have two registers on each side of a
    multiplier, of which an FPGA's multipliers have the inner ones; they add what all lanes add in a
    cycle of its own, and ACC writes a cycle later.  The sums of slots that have not written when a
    slot reads replace what it reads.

    Members
    -------
    slot : In(slot_layout)
    act : In(8 * block)
        The inputs, in cycle ``operands``.
    addends : In(array of signed)
        What even and odd lanes add, in the cycle before ``add``; deep: in the one before that.
    wgt_<turn> : Out(ReadPort)
    acc_read_<turn> : Out(ReadPort), acc_write_<turn> : Out(WritePort)
        This group's rows of each turn's part of a tile.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._stages = Stages.of(config)
        self._deep = config.deep_pipelines
        self._turns = config.tile_cycles
        self._inputs = config.block
        self._lanes = config.block // config.tile_cycles // config.lane_groups
        self._paired = config.multiplier_bits >= MULTIPLIER_BITS
        row, sums = 8 * config.block, 32 * self._lanes
        ports: dict[str, wiring.Member] = {}
        for turn in range(self._turns):
            ports[f"wgt_{turn}"] = Out(ReadPort(row * self._lanes))
            ports[f"acc_read_{turn}"] = Out(ReadPort(sums))
            ports[f"acc_write_{turn}"] = Out(WritePort(sums))
        super().__init__(
            {
                "slot": In(slot_layout(config)),
                "act": In(row),
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
        weights = self._of_turn("wgt", turn[stages.operands - 1])
        words = self._of_turn("acc_read", turn[stages.choose])
        places = [Cat(a, t) for a, t in zip(address, turn, strict=True)]
        totals = self._accumulate(m, self._dot_products(m, weights), words, valid, places, keep)
        for k in range(self._turns):
            m.d.comb += getattr(self, f"acc_write_{k}").data.eq(Cat(*totals))
        return m

    def _of_turn(self, name: str, turn: Value) -> Value:
        """Data of the port ``name`` of this turn."""
        found: Value = getattr(self, f"{name}_0").data
        for k in range(1, self._turns):
            found = Mux(turn[k], getattr(self, f"{name}_{k}").data, found)
        return found

    def _dot_products(self, m: Module, weights: Value) -> list[Value]:
        """The dot product of each lane, in cycle ``add``."""
        size = self._inputs
        wgt, act = delayed(m, weights, "weights"), self.act
        if self._deep:
            wgt, act = delayed(m, wgt, "weights_in"), delayed(m, act, "act_in")
        inputs = [act.word_select(i, 8).as_signed() for i in range(size)]
        rows = [
            [wgt.word_select(o * size + i, 8).as_signed() for i in range(size)]
            for o in range(self._lanes)
        ]
        sums: list[Value] = []
        for o, products in enumerate(self._products(m, rows, inputs)):
            addend = self.addends[o % ADDENDS]
            if self._deep:
                products = [
                    delayed(m, product, f"product_out{o}_{i}") for i, product in enumerate(products)
                ]
                whole = grouped_sum(m, products, f"sum{o}")
                sums.append(delayed(m, whole + addend, f"dot{o}"))
            else:
                sums.append(grouped_sum(m, products, f"sum{o}", addend))
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
        dots: list[Value],
        words: Value,
        valid: list[Value],
        places: list[Value],
        keep: Value,
    ) -> list[Value]:
        """What is written, in cycle ``add``.

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


def grouped_sum(m: Module, values: list[Value], name: str, addend: Value | int = 0) -> Signal:
    """The sum of ``values`` two cycles later; of ``addend`` one cycle later."""
    groups = [
        delayed(m, sum(values[k : k + TERMS]), f"{name}_{k}") for k in range(0, len(values), TERMS)
    ]
    return delayed(m, sum(groups) + addend, name)
