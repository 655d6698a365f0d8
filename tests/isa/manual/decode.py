"""From 64 bytes to an instruction, and the manual's "Rules for programs"."""

from dataclasses import dataclass

from . import page

WORD_BYTES = {0: 1, 1: None, 2: 4, 3: 8, 4: 1, 5: 1}
"""Bytes a lane of a memory's word; a word of WGT has a byte for each pair of lanes."""
LEVELS = {"GEMM": 6, "VECTOR": 5}


class IllegalInstructionError(Exception):
    """The hardware refuses the instruction ``index``."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(f"instruction {index}: {why}")
        self.index = index


@dataclass(frozen=True, slots=True)
class Instruction:
    """The unit's name and the values of its fields."""

    unit: str
    values: dict[str, int]

    def __getitem__(self, name: str) -> int:
        return self.values[name]

    def levels(self, name: str) -> list[int]:
        """The field ``name`` for each loop level, level 0 first; 0 where a level has none."""
        return [self.values.get(f"{name}{level}", 0) for level in range(LEVELS[self.unit])]


def word_bytes(memory: int, block: int) -> int:
    """Bytes of a word of memory number ``memory``."""
    each = WORD_BYTES[memory]
    return block * (block if each is None else each)


def decode(raw: bytes, config: dict[str, int], index: int = 0) -> Instruction:
    """The instruction in the 64 bytes ``raw``.

    Raises:
        IllegalInstructionError: a rule that the hardware enforces is broken.
    """
    word = int.from_bytes(raw, "little")
    opcode = word & 15
    if not 1 <= opcode <= len(page.UNITS):
        raise IllegalInstructionError(index, f"opcode {opcode}")
    unit = page.UNITS[opcode - 1]
    values = {}
    for field in page.fields(unit):
        if field.name != "reserved":
            values[field.name] = field.read(word)
        elif field.read(word):
            raise IllegalInstructionError(index, "a reserved bit is 1")
    instruction = Instruction(unit, values)
    why = _broken(instruction, config)
    if why is not None:
        raise IllegalInstructionError(index, why)
    return instruction


def _broken(it: Instruction, config: dict[str, int]) -> str | None:
    """The rule that ``it`` breaks, if any."""
    if (it["wait"] | it["post"]) >> page.UNITS.index(it.unit) & 1:
        return "waits for or posts to its own unit"
    match it.unit:
        case "LOAD":
            return _broken_load(it, config)
        case "STORE":
            if 0 in (it["count_x"], it["count_y"], it["count_z"]):
                return "a count is 0"
            return _unaligned(it, config["block"], with_address=True)
        case _:
            if 0 in it.levels("extent"):
                return "an extent is 0"
            return _broken_vector(it, config) if it.unit == "VECTOR" else None


def _broken_load(it: Instruction, config: dict[str, int]) -> str | None:
    if it["memory"] > 5:
        return "no such memory"
    rows = it["pad_y_before"] + it["count_y"] + it["pad_y_after"]
    columns = it["pad_x_before"] + it["count_x"] + it["pad_x_after"]
    if 0 in (it["count_z"], rows, columns):
        return "an empty block"
    if it["nibbles"]:
        needs = {1: "nibble_weights", 3: "short_constants", 5: "short_constants"}
        if it["memory"] not in needs or not config[needs[it["memory"]]]:
            return "nibbles that are no weights"
        rows = ("sram_address", "sram_stride_y", "sram_stride_z", "count_x", "pad_x_before")
        if it["memory"] == 5 and any(it[name] % 4 for name in rows):
            return "words of TAB that are not four by four"
    if it["nibbles"]:
        return _unaligned(it, config["bus_bytes"], with_address=True) or (
            "nibbles with a step" if it["step"] else None
        )
    if not it["step"]:
        return _unaligned(it, word_bytes(it["memory"], config["block"]), with_address=True)
    if it["memory"] != 0:
        return "windows go to ACT only"
    if it["pad_x_before"] or it["pad_x_after"]:
        return "windows have no padding columns"
    if it["step"] < config["bus_bytes"]:
        return "step below the bus's width"
    return _unaligned(it, config["bus_bytes"], with_address=False)


def _unaligned(it: Instruction, size: int, with_address: bool) -> str | None:
    named = ("dram_address", "dram_stride_y", "dram_stride_z")[0 if with_address else 1 :]
    odd = [name for name in named if it[name] % size]
    return f"{odd[0]} is no multiple of {size}" if odd else None


def _broken_vector(it: Instruction, config: dict[str, int]) -> str | None:
    broken = {
        "fold": it["fold"] > 4,
        "finish": it["finish"] > 2,  # the named configurations have none of their own
        "rounding": it["rounding"] > 2,
        "fixed": it["rounding"] == 1 and not config["fixed_rounding"],
        "wide": it["rounding"] == 2 and not (config["row_parameters"] and it["destination"]),
        "row": it["row"] > 3 * config["row_parameters"],
        "reduction_levels": not 1 <= it["reduction_levels"] <= 5,
        "lookup to ACC": it["lookup"] == 1 and it["destination"] == 1,
        "tab_address": it["tab_address"] % 256 != 0,
        "low above high": it["low"] > it["high"],
    }
    return next((name for name, bad in broken.items() if bad), None)
