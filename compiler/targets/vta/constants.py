"""The constants in DRAM, in the order in which LOADs read them."""

from copy import copy

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.memories import Memory

from ...loops.expressions import Buffer
from .layers.definition import LoweredLayer
from .nest import Requantized
from .short_constants import shortest_bytes

__all__ = ["SCALES", "TABLES", "DramMap", "constant_bytes", "parameter_words", "table_rows"]

SCALES = {"bias": "scale", "add_bias": "add_scale", "row_bias": "row_scale"}
"""Biases to the scales that are in one word with them."""

TABLES = ("table", "table_low", "table_high")
"""Constants that are in TAB."""


def constant_bytes(layer: LoweredLayer, config: HardwareConfig) -> int:
    """Bytes of a layer's constants in DRAM."""
    whole = sum(
        array.nbytes // len(array) * len(table_rows(layer, name))
        if name in TABLES
        else array.nbytes
        for name, array in layer.constants.items()
    )
    whole -= _saved(layer, config)
    if not (layer.nibbles and config.nibble_weights):
        return whole
    word = config.word_bytes(Memory.WGT)
    return whole - layer.constants["weights"].nbytes // word * (word - config.nibble_bytes)


def _saved(layer: LoweredLayer, config: HardwareConfig) -> int:
    """Bytes that short forms of parameters and tables save, of each word that has one."""
    if not config.short_constants:
        return 0
    saved = 0
    for name, array in layer.constants.items():
        if name in SCALES:
            words = parameter_words(layer, name)
            saved += words.nbytes - shortest_bytes(Memory.PAR, words, config)
        elif name in TABLES:
            rows = table_rows(layer, name)
            cut = array[rows.start : rows.stop]
            saved += cut.nbytes - shortest_bytes(Memory.TAB, cut, config)
    return saved


def parameter_words(layer: LoweredLayer, name: str) -> NDArray[np.uint8]:
    """Biases ``name`` and their scales together, as words of PAR: uint8[n, word bytes]."""
    bias = layer.constants[name].astype(np.int32)
    scale = np.ascontiguousarray(layer.constants[SCALES[name]])
    return np.concatenate([bias.view(np.uint8), scale.view(np.uint8)], axis=1)


def table_rows(layer: LoweredLayer, name: str) -> range:
    """The rows of a table that the limits of what is looked up leave."""
    for nest in layer.kernel.nests:
        reads = isinstance(nest.table, Buffer) and nest.table.name == name
        if reads and isinstance(nest.finish, Requantized):
            return range(nest.finish.low + 128, nest.finish.high + 129)
    return range(256)


class DramMap:
    """Hands out DRAM from address 0, and keeps the bytes that are known at compile time."""

    def __init__(self, config: HardwareConfig) -> None:
        words = (config.word_bytes(memory) for memory in Memory)
        self._align = max(config.burst_bytes, INSTRUCTION_BYTES, *words)
        self._parts: dict[bytes, int] = {}
        self.size = 0
        """Bytes handed out."""

    def reserve(self, size: int) -> int:
        """Address of ``size`` bytes that the run fills."""
        address = self.size
        self.size = -(-(address + size) // self._align) * self._align
        return address

    def add(self, array: NDArray[np.generic]) -> int:
        """Address of a constant; equal ones share one."""
        data = np.ascontiguousarray(array).tobytes()
        if data not in self._parts:
            self._parts[data] = self.reserve(len(data))
        return self._parts[data]

    def copy(self, size: int) -> "DramMap":
        """The same constants, with only the first ``size`` bytes handed out."""
        other = copy(self)
        other._parts, other.size = dict(self._parts), size
        return other

    def known(self) -> NDArray[np.bool_]:
        """True for each byte that is constant: bool[size]."""
        found = np.zeros(self.size, bool)
        for data, address in self._parts.items():
            found[address : address + len(data)] = True
        return found

    def image(self) -> bytes:
        """All of it, zeros where nothing is known."""
        image = bytearray(self.size)
        for data, address in self._parts.items():
            image[address : address + len(data)] = data
        return bytes(image)
