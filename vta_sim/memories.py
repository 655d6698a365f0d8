"""The machine's memories, as native code sees them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory
from dovetail.isa.rows import ROOT_TABLE
from dovetail.isa.state import MachineState

from .errors import SimulationError
from .native.language import Bytes, Float32s, Int8s, Int32s, Int64s, Record

__all__ = ["Memories", "memories_of"]


class Memories(Record):
    """The arrays of a ``MachineState``, and of each its depth less one, to wrap addresses with.

    multiplier: the bits of ``scale``.  nibble_head: bytes before the nibbles of a word of WGT.
    raises: 1 where something is added to elements that are multiplied with taps.
    short_row, short_same: bytes of a word of TAB in its short form, and of one of PAR that has one
    bias and one scale.

    lanes: of the core. stored: what the STORE at work has read.  folded: lanes of a word at work.
    roots: ``isa.rows.ROOT_TABLE``.
    """

    lanes: int
    nibble_head: int
    raises: int
    short_row: int
    short_same: int
    act: Int8s
    act_wrap: int
    wgt: Int8s
    wgt_wrap: int
    acc: Int32s
    acc_wrap: int
    bias: Int32s
    scale: Float32s
    multiplier: Int32s
    par_wrap: int
    tap: Int8s
    tap_wrap: int
    tab: Int8s
    tab_wrap: int
    dram: Bytes
    dram_base: int
    stored: Bytes
    folded: Int32s
    roots: Int64s


def memories_of(state: MachineState, stored: Bytes) -> Memories:
    """The memories of ``state``, which native code changes in place.

    Raises SimulationError for an array that is not contiguous, or has not the size that the
    configuration gives it.
    """
    config: HardwareConfig = state.config
    arrays: dict[str, NDArray[Any]] = {
        "act": state.act,
        "wgt": state.wgt,
        "acc": state.acc,
        "bias": state.par.bias,
        "scale": state.par.scale,
        "multiplier": state.par.scale.view(np.int32),
        "tap": state.tap,
        "tab": state.tab,
        "dram": state.dram,
    }
    lanes = config.block
    shapes: dict[str, tuple[int, ...]] = {
        memory.value: (config.depth(memory), lanes)
        for memory in (Memory.ACT, Memory.ACC, Memory.TAP, Memory.TAB)
    }
    shapes["bias"] = shapes["scale"] = shapes["multiplier"] = (config.par_depth, lanes)
    shapes["wgt"] = (config.wgt_depth, lanes, lanes)
    for name, array in arrays.items():
        if not array.flags.c_contiguous:
            raise SimulationError(
                f"{name} has strides {array.strides}; required a contiguous array; copy it first"
            )
        shape = shapes.get(name, array.shape)
        if array.shape != shape:
            raise SimulationError(
                f"{name} has shape {array.shape}; required {shape} for {config.name}"
            )
    wraps = {f"{memory.value}_wrap": config.depth(memory) - 1 for memory in Memory}
    scratch = {"stored": stored, "folded": np.zeros(lanes, np.int32), "roots": ROOT_TABLE}
    sizes = {
        "lanes": lanes,
        "nibble_head": config.nibble_head_bytes,
        "raises": int(config.short_constants),
        "short_row": config.short_bytes(Memory.TAB),
        "short_same": config.short_bytes(Memory.PAR, same=True),
    }
    return Memories(dram_base=state.dram_base, **sizes, **scratch, **arrays, **wraps)
