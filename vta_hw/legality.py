"""Instruction words that the hardware refuses; the same as ``dovetail.isa.legality``."""

from collections.abc import Iterable

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import INSTRUCTION_BYTES, SHORT_ROWS, HardwareConfig
from dovetail.isa.instruction_formats import GEMM_LEVELS, VECTOR_LEVELS
from dovetail.isa.instructions import FORMATS, Finish, Fold, Rounding, Row
from dovetail.isa.legality import BY_ROWS
from dovetail.isa.memories import Memory, Unit

from . import layouts

__all__ = ["Legality"]

ALIGNED = ("dram_address", "dram_stride_y", "dram_stride_z")


class Legality(wiring.Component):
    """Tells if ``word`` is a legal instruction of this configuration, and whose; combinational.

    Members
    -------
    word : In(512)
    legal : Out(1)
    unit : Out(2)
        Meaningful when ``legal``.
    rules, opcodes : Out(4)
        Bit per unit: the word would be legal, if it were that unit's; its opcode is that unit's.
    """

    word: In(8 * INSTRUCTION_BYTES)
    legal: Out(1)
    unit: Out(2)
    rules: Out(4)
    opcodes: Out(4)

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rules = {
            Unit.LOAD: (layouts.LOAD, self._load),
            Unit.GEMM: (layouts.GEMM, self._gemm),
            Unit.VECTOR: (layouts.VECTOR, self._vector),
            Unit.STORE: (layouts.STORE, self._store),
        }
        opcode = self.word[:4]
        m.d.comb += self.unit.eq(opcode - 1)
        for unit, (layout, rule) in rules.items():
            fields = Signal(layout, name=unit.name.lower())
            reserved = self.word[FORMATS[unit].used_bits :]
            own = fields.wait[unit] | fields.post[unit]
            m.d.comb += [
                fields.eq(self.word[: layout.size]),
                self.rules[unit].eq(~reserved.any() & ~own & rule(fields)),
                self.opcodes[unit].eq(opcode == unit + 1),
            ]
        m.d.comb += self.legal.eq((self.rules & self.opcodes).any())
        return m

    def _aligned(self, fields: Value, memory: Memory) -> Value:
        bits = (self._config.word_bytes(memory) - 1).bit_length()
        return ~_any(fields[name][:bits].any() for name in ALIGNED)

    def _load(self, fields: Value) -> Value:
        bus_bits = (self._config.bus_bytes - 1).bit_length()
        aligned = _any(
            (fields.memory == memory.code) & self._aligned(fields, memory) for memory in Memory
        )
        rows = fields.pad_y_before.any() | fields.count_y.any() | fields.pad_y_after.any()
        columns = fields.pad_x_before.any() | fields.count_x.any() | fields.pad_x_after.any()
        strides = ("dram_stride_y", "dram_stride_z")
        windows = (
            (fields.memory == Memory.ACT.code)
            & (fields.step >= self._config.bus_bytes)
            & ~(fields.pad_x_before.any() | fields.pad_x_after.any())
            & ~_any(fields[name][:bus_bits].any() for name in strides)
        )
        if self._config.short_memories:
            short = _any(fields.memory == memory.code for memory in self._config.short_memories)
            beats = ~_any(fields[name][:bus_bits].any() for name in ALIGNED)
            if self._config.short_constants:
                bits = (SHORT_ROWS - 1).bit_length()
                rows_apart = _any(fields[name][:bits].any() for name in BY_ROWS)
                short = short & ~((fields.memory == Memory.TAB.code) & rows_apart)
            aligned = Mux(fields.nibbles, short & beats, aligned)
            windows = windows & ~fields.nibbles
        else:
            rows = rows & ~fields.nibbles
        placed = Mux(fields.step.any(), windows, aligned)
        return placed & rows & columns & fields.count_z.any()

    def _store(self, fields: Value) -> Value:
        some = fields.count_x.any() & fields.count_y.any() & fields.count_z.any()
        return self._aligned(fields, Memory.ACT) & some

    def _gemm(self, fields: Value) -> Value:
        return ~_any(~fields[f"extent{level}"].any() for level in range(GEMM_LEVELS))

    def _vector(self, fields: Value) -> Value:
        empty = _any(~fields[f"extent{level}"].any() for level in range(VECTOR_LEVELS))
        illegal = (
            empty
            | (fields.fold >= len(Fold))
            | (fields.finish >= (len(Finish) if self._config.finish else Finish.CUSTOM))
            | self._bad_rounding(fields)
            | (fields.row >= (len(Row) if self._config.row_parameters else 1))
            | (fields.reduction_levels == 0)
            | (fields.reduction_levels > VECTOR_LEVELS)
            | (fields.lookup & fields.destination)
            | fields.tab_address[:8].any()
            | (fields.low > fields.high)
        )
        return ~illegal

    def _bad_rounding(self, fields: Value) -> Value:
        """True if a VECTOR's rounding is none of this configuration's."""
        if not self._config.row_parameters:
            return fields.rounding >= (
                Rounding.WIDE if self._config.fixed_rounding else Rounding.FIXED
            )
        wide = (fields.rounding == Rounding.WIDE) & fields.destination
        fixed = (fields.rounding == Rounding.FIXED) & self._config.fixed_rounding
        return ~(wide | fixed | (fields.rounding == Rounding.FLOAT))


def _any(values: Iterable[Value]) -> Value:
    result: Value | None = None
    for value in values:
        result = value if result is None else result | value
    assert result is not None
    return result
