"""Rules for instructions that the hardware takes."""

from .config import SHORT_ROWS, HardwareConfig
from .instruction_formats import VECTOR_LEVELS
from .instructions import Finish, Gemm, Instruction, Load, Rounding, Row, Store, Vector
from .memories import Memory

__all__ = ["BY_ROWS", "legality_problem", "word_problem"]

SHORT = {
    Memory.WGT: "nibble_weights",
    Memory.PAR: "short_constants",
    Memory.TAB: "short_constants",
}
"""Memories with a short form of words in DRAM, and what of a configuration each needs."""

BY_ROWS = ("sram_address", "sram_stride_y", "sram_stride_z", "count_x", "pad_x_before")
"""Fields that are multiples of ``SHORT_ROWS`` where as many words of TAB come in a beat."""


def word_problem(instruction: Instruction) -> str | None:
    """Reason why the instruction is illegal in every configuration."""
    if instruction.unit in instruction.wait | instruction.post:
        return "a unit can neither wait for nor post to itself"
    match instruction:
        case Load():
            if not instruction.count_z * instruction.columns * instruction.rows:
                return "the block has no cells"
            if instruction.step and instruction.memory is not Memory.ACT:
                return f"step = {instruction.step} needs memory act"
            if instruction.step and instruction.columns != instruction.count_x:
                return f"step = {instruction.step} needs pad_x_before and pad_x_after 0"
            if instruction.nibbles and instruction.memory not in SHORT:
                return "nibbles needs memory wgt, par or tab"
        case Store():
            if not instruction.count_z * instruction.count_y * instruction.count_x:
                return "the block has no words"
        case Gemm():
            if 0 in instruction.extent:
                return f"extent = {instruction.extent}; required 1 and up"
        case Vector():
            if 0 in instruction.extent:
                return f"extent = {instruction.extent}; required 1 and up"
            if not 1 <= instruction.reduction_levels <= VECTOR_LEVELS:
                return (
                    f"reduction_levels = {instruction.reduction_levels}; "
                    f"required 1 to {VECTOR_LEVELS}"
                )
            if instruction.lookup and instruction.destination is not Memory.ACT:
                return "lookup needs destination act"
            wide = instruction.rounding is Rounding.WIDE
            if wide and instruction.destination is not Memory.ACC:
                return "rounding = wide needs destination acc"
            if instruction.tab_address % 256:
                return f"tab_address = {instruction.tab_address}; required a multiple of 256"
            if instruction.low > instruction.high:
                return f"low = {instruction.low} is above high = {instruction.high}"
    return None


def legality_problem(instruction: Instruction, config: HardwareConfig) -> str | None:
    """Reason why the hardware of ``config`` refuses the instruction; None when it is legal.

    Beyond what ``decode`` refuses, DRAM addresses and strides must be multiples of the word size;
    with nibbles of the bus; with a step, strides of the bus only, and a step of at least a beat.
    The roundings FIXED and WIDE, the finish CUSTOM, parameters of rows and short forms must be
    there.
    """
    problem = word_problem(instruction)
    if problem is None and isinstance(instruction, Vector):
        return _absent(instruction, config)
    if problem is None and isinstance(instruction, Load | Store):
        if isinstance(instruction, Load) and instruction.step:
            return _window_problem(instruction, config)
        memory = instruction.memory if isinstance(instruction, Load) else Memory.ACT
        size, what = config.word_bytes(memory), f"the bytes of a {memory.value} word"
        if isinstance(instruction, Load) and instruction.nibbles:
            if memory not in config.short_memories:
                return f"nibbles = 1 of {memory.value}; {config.name} has no {SHORT[memory]}"
            size, what = config.bus_bytes, "the bytes of a beat, with nibbles"
            for name in BY_ROWS if memory is Memory.TAB else ():
                if getattr(instruction, name) % SHORT_ROWS:
                    return (
                        f"{name} = {getattr(instruction, name)}; required a multiple of "
                        f"{SHORT_ROWS}, the words in a beat, with nibbles of tab"
                    )
        for name in ("dram_address", "dram_stride_y", "dram_stride_z"):
            value = getattr(instruction, name)
            if value % size:
                return f"{name} = {value}; required a multiple of {size}, {what}"
    return problem


def _absent(vector: Vector, config: HardwareConfig) -> str | None:
    """Feature of a VECTOR that the configuration lacks."""
    if vector.rounding is Rounding.FIXED and not config.fixed_rounding:
        return f"rounding = fixed; {config.name} has no fixed_rounding"
    if vector.rounding is Rounding.WIDE and not config.row_parameters:
        return f"rounding = wide; {config.name} has no row_parameters"
    if vector.finish is Finish.CUSTOM and not config.finish:
        return f"finish = custom; {config.name} has no finish of its own"
    if vector.row is not Row.NONE and not config.row_parameters:
        return f"row = {vector.row.name.lower()}; {config.name} has no row_parameters"
    return None


def _window_problem(load: Load, config: HardwareConfig) -> str | None:
    """Reason why the hardware refuses a LOAD with a step."""
    if load.step < config.bus_bytes:
        return f"step = {load.step}; required 0, or {config.bus_bytes} and up, the bytes of a beat"
    for name in ("dram_stride_y", "dram_stride_z"):
        value = getattr(load, name)
        if value % config.bus_bytes:
            return f"{name} = {value}; required a multiple of {config.bus_bytes} with a step"
    return None
