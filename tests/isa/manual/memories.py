"""The six scratchpads as the manual lays them out, and DRAM."""

import numpy as np
from numpy.typing import NDArray

from .decode import word_bytes

NAMES = ("act", "wgt", "acc", "par", "tap", "tab")


class WindowError(Exception):
    """An access outside of the DRAM that the program may touch."""


class Memories:
    """Scratchpads of a configuration, all 0, and the bytes of DRAM from ``base``.

    Members:
        raw: by number, uint8[depth, bytes of a word].
        act, wgt, acc, bias, scale, tap, tab: views of them, as the table "Memories" types them.
    """

    def __init__(self, config: dict[str, int], dram: NDArray[np.uint8], base: int = 0) -> None:
        block = config["block"]
        self.config = config
        self.dram = dram
        self.base = base
        self.raw = [
            np.zeros((config[f"{name}_depth"], word_bytes(number, block)), np.uint8)
            for number, name in enumerate(NAMES)
        ]
        self.act, self.tap, self.tab = (self.raw[each].view(np.int8) for each in (0, 4, 5))
        self.wgt = self.raw[1].view(np.int8).reshape(-1, block, block)
        self.acc = self.raw[2].view("<i4")
        self.bias = self.raw[3].view("<i4")[:, :block]
        self.scale = self.raw[3].view("<u4")[:, block:]

    def read_dram(self, address: int, count: int) -> NDArray[np.uint8]:
        """``count`` bytes from byte ``address``, modulo 2^32."""
        return self.dram[self._places(address, count)]

    def write_dram(self, address: int, data: NDArray[np.uint8]) -> None:
        self.dram[self._places(address, len(data))] = data

    def _places(self, address: int, count: int) -> NDArray[np.int64]:
        places = (address + np.arange(count)) % (1 << 32) - self.base
        if places.min() < 0 or places.max() >= len(self.dram):
            raise WindowError(f"{count} bytes from {address % (1 << 32):#x}")
        return places
