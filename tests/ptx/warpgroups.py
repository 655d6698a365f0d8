"""Products of warpgroups: descriptors of shared memory, fragments, and when sums are there.

A product reads memory from when it begins to when a thread waits for its group: what it reads must
be the same at both ends, and shown to the asynchronous proxy.  Until then its registers are nobody
else's.  Elements of operands lie where the descriptor's canonical layout has them, those of sums as
in the figure of the fragment of D.

Source: PTX ISA 8.5 (NVIDIA), 9.7.15 (wgmma) and 9.7.13.4 (fence.proxy.async); CUTLASS's comments on
make_gmma_desc<Major::K> and CLayout_64xN (include/cute/atom/mma_traits_sm90_gmma.hpp): in the mode
of 128 bytes row 8 m + r begins m times the stride and r times 128 bytes after the start, and bits
4-6 of an address are those XOR bits 7-9.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .operations import KINDS, UnknownInstructionError
from .text import Instruction

if TYPE_CHECKING:
    from .machine import Machine

__all__ = ["GroupProducts"]

Array = NDArray[Any]
THREADS, ROWS, STEP_BYTES = 128, 64, 32
SHAPE = re.compile(r"m64n(\d+)k(\d+)")
TYPES = {("f32", "f16", "f16"), ("f32", "bf16", "bf16")} | {
    ("s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")
}
MODE_128 = 1


@dataclass(frozen=True, slots=True)
class _Begun:
    """A product of the lanes of some warpgroups; places, first: bytes of its operands, and what
    they were; group: of each lane's.
    """

    lanes: Array
    group: Array
    registers: tuple[str, ...]
    kinds: tuple[str, ...]
    places: tuple[Array, Array]
    first: tuple[Array, Array]
    added: bool


@dataclass(slots=True)
class GroupProducts:
    """The products that have begun; hidden: for each byte of shared memory, one more than the lane
    whose write the asynchronous proxy does not see yet.
    """

    machine: "Machine"
    begun: list[_Begun] = field(default_factory=list)
    groups: Array = field(init=False)
    hidden: Array = field(init=False)
    held: set[str] = field(default_factory=set)
    """Registers of products that have begun."""
    fenced: set[str] = field(default_factory=set)
    """Registers that nothing has touched since a fence."""

    def __post_init__(self) -> None:
        self.groups = np.zeros(self.machine.lanes, np.int64)
        self.hidden = np.zeros(self.machine.shared.shape, np.int64)

    def wrote(self, memory: Array, rows: Array, columns: Array, lanes: Array) -> None:
        """Lanes wrote bytes by ordinary stores, or copies."""
        if memory is self.machine.shared:
            self.hidden[rows, columns] = lanes[:, None] + 1

    def show(self, chosen: Array) -> None:
        """A fence between the proxies, by some lanes."""
        self.hidden[np.isin(self.hidden, chosen + 1)] = 0

    def touch(self, name: str) -> None:
        """Another instruction reads or writes a register.  Raises PtxError where none may."""
        self.fenced.discard(name)
        if name in self.held:
            raise self.machine.error(f"{name} is of a product that nothing has waited for")

    def step(self, instruction: Instruction, chosen: Array) -> None:
        """One instruction of some lanes.  Raises UnknownInstructionError, PtxError."""
        words, operands = instruction.words, instruction.operands
        self._groups(chosen)
        match words[1:4]:
            case ("fence", "sync", "aligned"):
                self.fenced = set(self.machine.registers)
            case ("mma_async", "sync", "aligned"):
                self._begin(words[4:], operands, chosen)
            case ("commit_group", "sync", "aligned"):
                self.groups[chosen] += 1
            case ("wait_group", "sync", "aligned"):
                self._end(chosen, self.groups[chosen] - int(operands[0]))
            case _:
                raise UnknownInstructionError(".".join(words))

    def _groups(self, chosen: Array) -> int:
        """How many warpgroups there are.  Raises PtxError unless all threads of each are there."""
        thread = self.machine.special["%tid.x"][chosen] % THREADS
        if chosen.size % THREADS or (thread != np.arange(chosen.size) % THREADS).any():
            raise self.machine.error("wgmma: some threads of a warpgroup are elsewhere")
        return chosen.size // THREADS

    def _begin(self, words: tuple[str, ...], operands: tuple[str, ...], chosen: Array) -> None:
        shape = SHAPE.fullmatch(words[0])
        kinds = words[1:]
        integers = kinds[0] == "s32"
        sizes = {KINDS[each].itemsize for each in kinds[1:]}
        known = shape and kinds in TYPES and sizes == {STEP_BYTES // int(shape[2])}
        if not known or operands[4:] != (() if integers else ("1", "1", "0", "0")):
            raise UnknownInstructionError(".".join(("wgmma", *words, *operands[3:])))
        assert shape
        columns = int(shape[1])
        if columns % 8 or not 8 <= columns <= 256:
            raise UnknownInstructionError(f"wgmma with {columns} columns")
        names = tuple(each.strip() for each in operands[0].strip("{}").split(","))
        if len(names) != columns // 2:
            raise self.machine.error(f"wgmma: {len(names)} registers for {columns} columns")
        if not set(names) <= self.fenced | self.held:
            raise self.machine.error("wgmma: registers were touched since the last fence")
        added = self.machine.read(operands[3], KINDS["pred"], chosen)
        places = (
            self._places(operands[1], ROWS, chosen),
            self._places(operands[2], columns, chosen),
        )
        first = self._bytes(places[0], chosen), self._bytes(places[1], chosen)
        self.held |= set(names)
        group = self.groups[chosen].copy()
        self.begun.append(_Begun(chosen, group, names, kinds, places, first, bool(added.all())))

    def _places(self, descriptor: str, rows: int, chosen: Array) -> Array:
        """[warpgroup, row, byte] of shared memory of the warpgroup's block."""
        every = self.machine.read(descriptor, KINDS["u64"], chosen).reshape(-1, THREADS)
        if (every != every[:, :1]).any():
            raise self.machine.error("wgmma: threads of a warpgroup have several descriptors")
        bits = every[:, 0].astype(object)
        start, stride = ((bits >> low & 0x3FFF) << 4 for low in (0, 32))
        if ((bits >> 62) != MODE_128).any() or (bits >> 49 & 7).any():
            raise UnknownInstructionError(f"a matrix descriptor {bits[0]:#x}")
        row, byte = np.arange(rows)[:, None], np.arange(STEP_BYTES)
        first = start.astype(np.int64)[:, None, None] + (row % 8) * 128 + byte
        plain = first + stride.astype(np.int64)[:, None, None] * (row // 8)
        return np.asarray(plain ^ (plain >> 7 & 7) << 4)

    def _bytes(self, places: Array, chosen: Array) -> Array:
        """Bytes there.  Raises PtxError for what a block has not, or nothing has shown."""
        block = self.machine.block[chosen[::THREADS]][:, None, None]
        size = self.machine.shared.shape[1]
        if places.max(initial=0) >= size:
            raise self.machine.error(f"wgmma: byte {places.max()} of {size} of a block")
        if self.hidden[block, places].any():
            raise self.machine.error("wgmma: reads what no fence has shown to the proxy")
        return np.asarray(self.machine.shared[block, places])

    def _end(self, chosen: Array, below: Array) -> None:
        limits = np.full(self.machine.lanes, np.iinfo(np.int64).min)
        limits[chosen] = below
        kept = []
        for each in self.begun:
            ended = each.group < limits[each.lanes]
            if not ended.any():
                kept.append(each)
            elif not ended.all():
                raise UnknownInstructionError("wgmma: warpgroups that wait for different groups")
            else:
                self._add(each)
        self.begun = kept
        self.held = {name for each in kept for name in each.registers}

    def _add(self, each: _Begun) -> None:
        for places, first in zip(each.places, each.first, strict=True):
            if (self._bytes(places, each.lanes) != first).any():
                raise self.machine.error("wgmma: an operand was written while a product read it")
        total, *kinds = each.kinds
        wide = np.int64 if total == "s32" else np.float64
        a, b = (
            np.ascontiguousarray(held).view(KINDS[kind]).astype(wide)
            for held, kind in zip(each.first, kinds, strict=True)
        )
        product = a @ b.swapaxes(1, 2)
        thread = np.arange(THREADS)
        for number, name in enumerate(each.registers):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (number // 2 % 2)
            column = 8 * (number // 4) + 2 * (thread % 4) + number % 2
            register = self.machine.registers[name]
            new = product[:, row, column].reshape(-1)
            if each.added:
                held = np.ascontiguousarray(register[each.lanes]).view(KINDS[total])
                new = new + held.astype(wide)
            register[each.lanes] = new.astype(KINDS[total]).view(np.uint32)
