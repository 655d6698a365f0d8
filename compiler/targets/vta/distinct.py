"""Constants that DRAM must bring at least once: of equal ones, which may stay on chip, one."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .constants import SCALES, TABLES, parameter_words, table_rows
from .layers.definition import LoweredLayer
from .short_constants import shortest_bytes

__all__ = ["distinct_bytes", "distinct_weights"]


def distinct_weights(layers: Sequence[LoweredLayer], config: HardwareConfig) -> NDArray[np.int64]:
    """Words of WGT of each layer that are equal to none before them.

    Of weights that are rows in DRAM none are known to be equal.
    """
    size = config.word_bytes(Memory.WGT)
    seen = set[bytes]()
    counts = np.zeros(len(layers), np.int64)
    for number, layer in enumerate(layers):
        weights = layer.constants.get("weights")
        if weights is None:
            continue
        if layer.stored is not None:
            counts[number] = weights.nbytes // size
            continue
        data, before = weights.tobytes(), len(seen)
        seen.update(data[start : start + size] for start in range(0, len(data), size))
        counts[number] = len(seen) - before
    return counts


def distinct_bytes(layers: Sequence[LoweredLayer], config: HardwareConfig) -> int:
    """Bytes of all other constants, in their shortest forms: of a table whole, of taps block by
    block, of parameters word by word.
    """
    seen = set[tuple[Memory, bytes]]()
    total = 0

    def add(memory: Memory, parts: NDArray[np.generic]) -> int:
        found = 0
        for part in parts:
            key = memory, part.tobytes()
            if key not in seen:
                seen.add(key)
                short = memory is not Memory.TAP
                found += shortest_bytes(memory, part, config) if short else part.nbytes
        return found

    for layer in layers:
        for name, array in layer.constants.items():
            if name == "row_bias" and layer.given is not None:
                total += shortest_bytes(Memory.PAR, parameter_words(layer, name), config)
            elif name in SCALES:
                total += add(Memory.PAR, parameter_words(layer, name))
            elif name in TABLES:
                rows = table_rows(layer, name)
                total += add(Memory.TAB, array[None, rows.start : rows.stop])
            elif name == "taps":
                total += add(Memory.TAP, array)
    return total
