"""State of the accelerator: scratchpads and DRAM as NumPy arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .config import HardwareConfig
from .frozen import frozen
from .memories import Memory

__all__ = ["MachineState", "Parameters"]


@frozen
class Parameters:
    """The PAR memory: ``bias`` int32[depth, block], ``scale`` float32[depth, block]."""

    bias: NDArray[np.int32]
    scale: NDArray[np.float32]


@frozen
class MachineState:
    """Every byte a program can read or write; instructions change the arrays in place.

    act, tap, tab: int8[depth, block]; wgt: int8[depth, block out, block in]; acc: int32[depth,
    block]. dram: uint8[size]; its first byte has the address ``dram_base``.
    """

    config: HardwareConfig
    act: NDArray[np.int8]
    wgt: NDArray[np.int8]
    acc: NDArray[np.int32]
    par: Parameters
    tap: NDArray[np.int8]
    tab: NDArray[np.int8]
    dram: NDArray[np.uint8]
    dram_base: int = 0

    @classmethod
    def zeros(
        cls, config: HardwareConfig, dram: NDArray[np.uint8], dram_base: int = 0
    ) -> "MachineState":
        """Scratchpads of zeros, and ``dram``, which is not copied."""
        lanes, parameter = config.block, config.element(Memory.PAR)

        def words(memory: Memory) -> NDArray[Any]:
            return np.zeros((config.depth(memory), lanes), config.element(memory))

        return cls(
            config,
            act=words(Memory.ACT),
            wgt=np.zeros((config.wgt_depth, lanes, lanes), config.element(Memory.WGT)),
            acc=words(Memory.ACC),
            par=Parameters(
                np.zeros((config.par_depth, lanes), parameter["bias"]),
                np.zeros((config.par_depth, lanes), parameter["scale"]),
            ),
            tap=words(Memory.TAP),
            tab=words(Memory.TAB),
            dram=dram,
            dram_base=dram_base,
        )

    def words(self, memory: Memory) -> NDArray[np.uint8]:
        """The words of ``memory`` as bytes, uint8[depth, word_bytes]; a copy for PAR, a view
        otherwise.
        """
        if memory is Memory.PAR:
            parts = (self.par.bias.view(np.uint8), self.par.scale.view(np.uint8))
            return np.concatenate(parts, axis=1)
        array: NDArray[np.generic] = getattr(self, memory.value)
        return array.reshape(len(array), -1).view(np.uint8)

    def write_words(
        self, memory: Memory, addresses: NDArray[np.int64], data: NDArray[np.uint8]
    ) -> None:
        """Write ``data`` uint8[n, word_bytes] to the words ``addresses`` of ``memory``."""
        if memory is Memory.PAR:
            half = self.par.bias[0].nbytes
            self.par.bias.view(np.uint8)[addresses] = data[:, :half]
            self.par.scale.view(np.uint8)[addresses] = data[:, half:]
        else:
            self.words(memory)[addresses] = data
