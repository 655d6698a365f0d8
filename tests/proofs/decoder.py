"""The decoder refuses what the manual's "Rules for programs" refuse, and nothing else.

The bits of fields are read from the tables of docs/isa.md, the rules written from its text.
"""

from types import ModuleType

from amaranth.hdl import Cat, Const, Mux, Value

from dovetail.isa.config import HardwareConfig
from tests.isa.manual.decode import LEVELS, word_bytes
from tests.isa.manual.page import UNITS, fields

from .bench import Bench

COUNTS = ("count_x", "count_y", "count_z")
PLACES = ("dram_address", "dram_stride_y", "dram_stride_z")
BY_FOURS = ("sram_address", "sram_stride_y", "sram_stride_z", "count_x", "pad_x_before")


def legality(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """``legal`` for every word of 512 bits, and the unit of a legal one."""
    bench = Bench(strengthen)
    port = bench.add(source.Legality(config)).component
    word = port.word
    legal, number = Const(0), Const(0, 2)
    for unit in UNITS:
        bits = {field.name: word[field.low : field.high + 1] for field in fields(unit)}
        signs = {field.name for field in fields(unit) if field.signed}
        value = {name: each.as_signed() if name in signs else each for name, each in bits.items()}
        mine = word[:4] == UNITS.index(unit) + 1
        broken = _common(unit, value) | RULES[unit](value, config)
        legal = legal | (mine & ~broken)
        number = Mux(mine, UNITS.index(unit), number)
    bench.check(port.legal == legal, "legal")
    bench.check(~legal | (port.unit == number), "the unit")
    for unit in range(len(UNITS)):
        bench.cover(port.legal & (port.unit == unit))
    return bench


def _common(unit: str, value: dict[str, Value]) -> Value:
    own = (value["wait"] | value["post"])[UNITS.index(unit)]
    return own | (value["reserved"] != 0)


def _unaligned(value: dict[str, Value], names: tuple[str, ...], size: int) -> Value:
    return Cat(*(value[name].as_unsigned() % size != 0 for name in names)).any()


def _load(value: dict[str, Value], config: HardwareConfig) -> Value:
    rows = value["pad_y_before"] + value["count_y"] + value["pad_y_after"]
    columns = value["pad_x_before"] + value["count_x"] + value["pad_x_after"]
    plain: Value = Const(0)
    for memory in range(6):
        size = word_bytes(memory, config.block)
        plain = plain | ((value["memory"] == memory) & _unaligned(value, PLACES, size))
    windows = (
        (value["memory"] != 0)
        | (value["pad_x_before"] != 0)
        | (value["pad_x_after"] != 0)
        | (value["step"] < config.bus_bytes)
        | _unaligned(value, PLACES[1:], config.bus_bytes)
    )
    weights = (value["memory"] == 1) & config.nibble_weights
    constants = ((value["memory"] == 3) | (value["memory"] == 5)) & config.short_constants
    packed = (
        ~(weights | constants)
        | (value["step"] != 0)
        | _unaligned(value, PLACES, config.bus_bytes)
        | ((value["memory"] == 5) & _unaligned(value, BY_FOURS, 4))
    )
    empty = (value["count_z"] == 0) | (rows == 0) | (columns == 0)
    placed = Mux(value["step"] == 0, plain, windows)
    return (value["memory"] > 5) | empty | Mux(value["nibbles"], packed, placed)


def _store(value: dict[str, Value], config: HardwareConfig) -> Value:
    none = Cat(*(value[name] == 0 for name in COUNTS)).any()
    return none | _unaligned(value, PLACES, word_bytes(0, config.block))


def _gemm(value: dict[str, Value], config: HardwareConfig) -> Value:
    return Cat(*(value[f"extent{level}"] == 0 for level in range(LEVELS["GEMM"]))).any()


def _vector(value: dict[str, Value], config: HardwareConfig) -> Value:
    levels = value["reduction_levels"]
    return Cat(
        *(value[f"extent{level}"] == 0 for level in range(LEVELS["VECTOR"])),
        value["fold"] > 4,
        value["finish"] > 2,
        value["rounding"] > (2 if config.row_parameters else config.fixed_rounding),
        (value["rounding"] == 1) & (not config.fixed_rounding),
        (value["rounding"] == 2) & ~value["destination"],
        value["row"] > 3 * config.row_parameters,
        (levels < 1) | (levels > 5),
        value["lookup"] & value["destination"],
        value["tab_address"] % 256 != 0,
        value["low"] > value["high"],
    ).any()


RULES = {"LOAD": _load, "GEMM": _gemm, "VECTOR": _vector, "STORE": _store}
