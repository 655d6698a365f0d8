"""Memory that tiles may use, and whether a layer's constants fit beside each other."""

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .constant_loads import CONSTANTS
from .layers.definition import LoweredLayer
from .row_problems import ROW_PARTS
from .schedules import Limits, has_own_taps

__all__ = ["constants_fit", "limits_of"]


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
