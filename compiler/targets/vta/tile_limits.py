"""Memory that tiles may use, whether a layer's constants fit into it, and its cycles."""

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .constant_loads import CONSTANTS
from .constants import constant_bytes
from .layers.definition import LoweredLayer
from .model import unit_cycles
from .row_problems import ROW_PARTS
from .schedules import Limits, has_own_taps

__all__ = ["constants_fit", "layer_cycles", "limits_of", "sums_pixels"]


def limits_of(config: HardwareConfig) -> Limits:
    """Memory that a tile may use: one bank of ACC, and half of WGT and TAP, so that those of the
    next tile can be loaded meanwhile.
    """
    rows, taps = config.par_depth // ROW_PARTS, config.tap_depth // 2
    return Limits(config.bank_words(Memory.ACC), config.wgt_depth // 2, taps, rows)


def constants_fit(layer: LoweredLayer, config: HardwareConfig) -> bool:
    """True if half of WGT holds the weights of one channel block, TAP the taps of a tile, and PAR
    all parameters.
    """
    nothing = np.zeros((1, 0))
    taps = layer.constants.get("taps", nothing)
    if has_own_taps(layer.kernel, config.tap_depth):
        taps = taps[0]
    parameters = (name for name, (memory, _) in CONSTANTS.items() if memory is Memory.PAR)
    sizes = {
        Memory.WGT: 2 * layer.constants.get("weights", nothing)[0].size,
        Memory.TAP: taps.size,
        Memory.PAR: sum(layer.constants.get(name, nothing).size for name in parameters),
    }
    return all(
        size <= config.depth(memory) * config.lanes(memory) for memory, size in sizes.items()
    )


def sums_pixels(layer: LoweredLayer, config: HardwareConfig) -> bool:
    """True if a layer sums up the channels of each pixel of one row, as layers of tokens do, and
    half of WGT holds all its weights.
    """
    extents, weights = layer.kernel.extents, layer.constants.get("weights")
    if weights is None or layer.stored is not None or extents["y"] > 1 or extents["x"] == 1:
        return False
    room = config.wgt_depth * config.lanes(Memory.WGT)
    return weights.shape[2:4] == (1, 1) and 2 * weights.size <= room


def layer_cycles(layer: LoweredLayer, config: HardwareConfig) -> tuple[int, int] | None:
    """Cycles with all activations on chip, and those in which DRAM works; None when constants have
    to come in parts.
    """
    if not constants_fit(layer, config):
        return None
    beats = constant_bytes(layer, config) // config.bus_bytes * config.dram.beat_interval_cycles
    return max(beats, *unit_cycles(layer.kernel, config).values()), beats
