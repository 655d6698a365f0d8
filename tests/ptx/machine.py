"""An interpreter of PTX: all threads of a grid at once, as elements of arrays.

Threads that part run in turns: always those at the earliest instruction, so that they meet again.
At a barrier the threads of a block wait for each other.  What no buffer holds may not be touched.
An instruction that is not known is refused by name.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .copies import Copies
from .operations import KINDS, UnknownInstructionError, compute
from .text import Instruction, Kernel
from .warpgroups import GroupProducts
from .warps import WARP, matrix_rows, multiplied

__all__ = ["Machine", "PtxError", "run_kernel"]

Array = NDArray[Any]
GLOBAL, SHARED, LOCAL = 1 << 32, 1 << 24, 1 << 44
"""Where memories begin: the buffers, and in generic addresses a thread's own."""
GAP = 1 << 12
MOST_STEPS = 1 << 20
SPECIAL = {"%tid.x", "%ctaid.x", "%ntid.x", "%nctaid.x", "%laneid"}


SINK = "_"
"""In place of a register: that part of a vector is read for nothing."""


class PtxError(RuntimeError):
    """A kernel did what none may."""


def run_kernel(
    kernel: Kernel, blocks: int, threads: int, buffers: Sequence[Array], shared_bytes: int = 0
) -> None:
    """Run it on uint8 arrays, one for each parameter, which it changes.

    shared_bytes: that the launch gives each block.

    Raises PtxError for an access outside of them and for a kernel that does not end,
    UnknownInstructionError for an instruction that it does not know.
    """
    Machine(kernel, blocks, threads, buffers, shared_bytes).run()


class Machine:
    """All lanes of a grid: registers, memories, and where each lane is."""

    def __init__(
        self, kernel: Kernel, blocks: int, threads: int, buffers: Sequence[Array], shared_bytes: int
    ) -> None:
        self.kernel, self.lanes = kernel, blocks * threads
        lane = np.arange(self.lanes)
        self.block, self.blocks = lane // threads, blocks
        self.special = {
            "%tid.x": (lane % threads).astype(np.uint32),
            "%ctaid.x": (lane // threads).astype(np.uint32),
            "%laneid": (lane % threads % WARP).astype(np.uint32),
            "%ntid.x": np.full(self.lanes, threads, np.uint32),
            "%nctaid.x": np.full(self.lanes, blocks, np.uint32),
        }
        self.registers: dict[str, Array] = {}
        for stem, (count, size) in kernel.registers.items():
            kind = np.dtype(bool) if stem == "%p" else np.dtype(f"u{size}")
            for number in range(count):
                self.registers[f"{stem}{number}"] = np.zeros(self.lanes, kind)
            self.registers[stem] = np.zeros(self.lanes, kind)
        self.starts: dict[str, int] = {}
        place = GLOBAL
        self.buffers = list(buffers)
        self.ranges = []
        for buffer in buffers:
            self.ranges.append((place, place + buffer.size))
            place += -(-buffer.size // GAP) * GAP + GAP
        self.memory = np.zeros(place - GLOBAL, np.uint8)
        self.known = np.zeros(place - GLOBAL, bool)
        for buffer, (start, end) in zip(buffers, self.ranges, strict=True):
            self.memory[start - GLOBAL : end - GLOBAL] = buffer
            self.known[start - GLOBAL : end - GLOBAL] = True
        # What the launch gives begins at a multiple of 16 bytes, and of no more.
        self.shared = self._arrays({**kernel.shared, "": 16, "given": shared_bytes}, SHARED, blocks)
        self.starts |= dict.fromkeys(kernel.given, self.starts["given"])
        self.local = self._arrays(kernel.local, LOCAL, self.lanes)
        self.counter = np.zeros(self.lanes, np.int64)
        self.waiting = np.zeros(self.lanes, bool)
        self.end = len(kernel.instructions)
        self.copies = Copies(self.lanes)
        self.products = GroupProducts(self)

    def _arrays(self, sizes: dict[str, int], start: int, copies: int) -> Array:
        place = start
        for name, size in sizes.items():
            self.starts[name] = place
            place += -(-size // 16) * 16
        return np.zeros((copies, place - start), np.uint8)

    def run(self) -> None:
        """All instructions of all lanes."""
        for _ in range(MOST_STEPS):
            alive = self.counter < self.end
            if not alive.any():
                for buffer, (start, end) in zip(self.buffers, self.ranges, strict=True):
                    buffer[:] = self.memory[start - GLOBAL : end - GLOBAL]
                return
            ready = alive & ~self.waiting
            number = int(self.counter[ready].min())
            self.step(self.kernel.instructions[number], ready & (self.counter == number))
        raise PtxError(f"the kernel has not ended after {MOST_STEPS} steps")

    def step(self, instruction: Instruction, lanes: Array) -> None:
        """One instruction of the lanes that are at it."""
        chosen = np.flatnonzero(lanes)
        self.counter[chosen] += 1
        if instruction.guard is not None:
            name, wanted = instruction.guard
            chosen = chosen[self.registers[name][chosen] == wanted]
        if not chosen.size:
            return
        name, *words = instruction.words
        operands = instruction.operands
        match name:
            case "bra":
                self.counter[chosen] = self.kernel.labels[operands[0]]
            case "ret" | "exit":
                self.counter[chosen] = self.end
            case "bar" | "barrier":
                self._wait(chosen)
            case "ld":
                self._load(words, operands, chosen)
            case "st":
                self._store(words, operands, chosen)
            case "cp":
                self.copies.step(self, instruction, chosen)
            case "wgmma":
                self.products.step(instruction, chosen)
            case "fence":
                if words != ["proxy", "async", "shared::cta"]:
                    raise UnknownInstructionError(".".join(instruction.words))
                self.products.show(chosen)
            case "mma":
                self._multiply(instruction, chosen)
            case "ldmatrix":
                self._load_matrices(instruction, chosen)
            case "shfl":
                self._exchange(instruction, chosen)
            case "cvta":
                self._write(operands[0], self.read(operands[1], KINDS["u64"], chosen), chosen)
            case _:
                found, kind = compute(
                    list(instruction.words),
                    lambda place, kind: self.read(operands[place + 1], kind, chosen),
                )
                self._write(operands[0], np.asarray(found).astype(kind, copy=False), chosen)

    def _wait(self, chosen: Array) -> None:
        """Blocks of which all that have not ended are there go on."""
        self.waiting[chosen] = True
        alive = self.counter < self.end
        missing = np.bincount(self.block[alive & ~self.waiting], minlength=self.blocks)
        self.waiting &= missing[self.block] > 0

    def error(self, text: str) -> PtxError:
        """A kernel's fault as an error."""
        return PtxError(text)

    def read(self, text: str, kind: Any, chosen: Array) -> Array:
        """An operand's elements of some lanes, its bits read as ``kind``."""
        if text in SPECIAL:
            return self.special[text][chosen].astype(kind)
        if text in self.registers:
            self.products.touch(text)
            held = self.registers[text][chosen]
            if "b" in (kind.kind, held.dtype.kind):
                return held
            unsigned = np.dtype(f"u{kind.itemsize}")
            return np.ascontiguousarray(held.astype(unsigned)).view(kind)
        if text.startswith("{"):
            names = [each.strip() for each in text.strip("{}").split(",")]
            parts = np.stack([self.registers[each][chosen] for each in names], axis=1)
            return np.ascontiguousarray(parts).view(kind).reshape(-1)
        if text in self.starts:
            return np.full(chosen.size, self.starts[text]).astype(kind)
        return np.full(chosen.size, _literal(text, kind), kind)

    def _write(self, name: str, value: Array, chosen: Array) -> None:
        if name.startswith("{"):
            names = [each.strip() for each in name.strip("{}").split(",")]
            parts = value.reshape(-1, 1).view(self.registers[names[0]].dtype)
            for number, each in enumerate(names):
                self.registers[each][chosen] = parts[:, number]
            return
        register = self.registers.get(name)
        if register is None:
            raise UnknownInstructionError(f"a result in {name}")
        self.products.touch(name)
        if register.dtype == bool:
            register[chosen] = value
            return
        bits = np.ascontiguousarray(value).view(np.dtype(f"u{value.dtype.itemsize}"))
        if value.dtype.kind == "i":
            bits = value.astype(np.dtype(f"i{register.itemsize}")).view(register.dtype)
        register[chosen] = bits.astype(register.dtype)

    def places(self, text: str, chosen: Array) -> Array:
        """The addresses of ``[register+offset]``."""
        inside = re.fullmatch(r"\[([^\]+]+)\+?(-?\d+)?\]", text)
        if not inside:
            raise UnknownInstructionError(f"an address {text}")
        base, offset = inside[1], int(inside[2] or 0)
        return self.read(base, KINDS["u64"], chosen).astype(np.int64) + offset

    def _load(self, words: list[str], operands: tuple[str, ...], chosen: Array) -> None:
        kind = KINDS[words[-1]]
        if words[0] == "param":
            number = self.kernel.parameters.index(operands[1].strip("[]"))
            start = np.full(chosen.size, self.ranges[number][0], np.uint64)
            self._write(operands[0], start, chosen)
            return
        names = [each.strip() for each in operands[0].strip("{}").split(",")]
        places = self.places(operands[1], chosen)
        for number, name in enumerate(names):
            memory, index = self.memory_of(places + number * kind.itemsize, kind.itemsize, chosen)
            if name == SINK:
                continue
            found = memory[index].reshape(chosen.size, kind.itemsize)
            self._write(name, np.ascontiguousarray(found).view(kind).reshape(-1), chosen)

    def _store(self, words: list[str], operands: tuple[str, ...], chosen: Array) -> None:
        kind = KINDS[words[-1]]
        places = self.places(operands[0], chosen)
        for number, name in enumerate(operands[1].strip("{}").split(",")):
            value = np.ascontiguousarray(self.read(name.strip(), kind, chosen))
            memory, index = self.memory_of(places + number * kind.itemsize, kind.itemsize, chosen)
            memory[index] = value.view(np.uint8).reshape(chosen.size, kind.itemsize)
            if memory is self.shared:
                self.products.wrote(memory, *index, chosen)

    def _warps(self, what: str, chosen: Array) -> int:
        """How many warps there are.  Raises PtxError unless all threads of each are there."""
        lane = self.special["%laneid"][chosen]
        whole = chosen.size % WARP == 0 and (lane == np.arange(chosen.size) % WARP).all()
        if not whole:
            raise PtxError(f"{what}: some threads of a warp are elsewhere")
        return chosen.size // WARP

    def _multiply(self, instruction: Instruction, chosen: Array) -> None:
        warps = self._warps("mma", chosen)
        target, *given = instruction.operands
        fragments = []
        for each in given:
            names = _names(each)
            held = [self.read(name, KINDS["b32"], chosen) for name in names]
            fragments.append(np.stack(held, axis=1).reshape(warps, WARP, len(names)))
        found = multiplied(instruction.words, *fragments).reshape(chosen.size, -1)
        for number, name in enumerate(_names(target)):
            self._write(name, np.ascontiguousarray(found[:, number]), chosen)

    def _load_matrices(self, instruction: Instruction, chosen: Array) -> None:
        """Rows of 16 bytes; thread 8 i + j of a warp gives the address of row j of matrix i."""
        name = ".".join(instruction.words)
        turned = ".trans" in name
        if name.replace(".trans", "") != "ldmatrix.sync.aligned.m8n8.x4.shared.b16":
            raise UnknownInstructionError(name)
        warps = self._warps("ldmatrix", chosen)
        names = _names(instruction.operands[0])
        places = self.places(instruction.operands[1], chosen)
        memory, index = self.memory_of(places, 16, chosen)
        self.require_multiples(places, 16)
        rows = memory[index].reshape(warps, WARP, 16)
        threads, first = matrix_rows(len(names), turned)
        for number, each in enumerate(names):
            own = rows[:, threads[:, number], first[:, number]]
            self._write(each, np.ascontiguousarray(own).view(np.uint32).reshape(-1), chosen)

    def _exchange(self, instruction: Instruction, chosen: Array) -> None:
        """Each thread of a warp has what the one has whose number differs in some bits."""
        name, operands = ".".join(instruction.words), instruction.operands
        if name != "shfl.sync.bfly.b32" or operands[3:] != ("31", "-1"):
            raise UnknownInstructionError(f"{name} {', '.join(operands[2:])}")
        warps = self._warps("shfl", chosen)
        held = self.read(operands[1], KINDS["b32"], chosen).reshape(warps, WARP)
        other = np.arange(WARP) ^ int(operands[2])
        self._write(operands[0], np.ascontiguousarray(held[:, other]).reshape(-1), chosen)

    def memory_of(self, places: Array, size: int, chosen: Array) -> tuple[Array, Any]:
        """The array that holds some bytes, and where; all lanes are in one memory."""
        first = int(places.min())
        if first >= LOCAL:
            return self._own(self.local, chosen, places - LOCAL, size)
        if first < GLOBAL:
            return self._own(self.shared, self.block[chosen], places - SHARED, size)
        index = (places - GLOBAL)[:, None] + np.arange(size)
        wrong = (index < 0) | (index >= self.memory.size)
        wrong |= ~self.known[np.where(wrong, 0, index)]
        if wrong.any():
            found = int(places[np.flatnonzero(wrong.any(axis=1))[0]])
            before = [start for start, _ in self.ranges if start <= found] or [GLOBAL]
            raise PtxError(
                f"byte {found - before[-1]} of buffer {len(before) - 1}, which ends before"
            )
        self.require_multiples(places, size)
        return self.memory, index

    def require_multiples(self, places: Array, size: int) -> None:
        """Raise PtxError for an address that no access of so many bytes may have."""
        if (places % size).any():
            raise PtxError(f"an address of {size} bytes that is no multiple of them")

    def _own(self, memory: Array, rows: Array, places: Array, size: int) -> tuple[Array, Any]:
        if int(places.min()) < 0 or int(places.max()) + size > memory.shape[1]:
            raise PtxError(f"byte {int(places.max())} of {memory.shape[1]} of a block or thread")
        return memory, (rows[:, None], places[:, None] + np.arange(size))


def _names(text: str) -> list[str]:
    """The registers of ``{a, b}``."""
    return [each.strip() for each in text.strip("{}").split(",")]


def _literal(text: str, kind: Any) -> Any:
    """A number: ``0f3F800000`` and ``0d...`` are bits of floats."""
    if text.startswith(("0f", "0F")):
        return np.array(int(text[2:], 16), np.uint32).view(kind)[()]
    if text.startswith(("0d", "0D")):
        return np.array(int(text[2:], 16), np.uint64).view(kind)[()]
    if text.startswith("0x"):
        bits = int(text[2:].rstrip("U"), 16)
        return np.array(bits & (1 << 8 * kind.itemsize) - 1, f"u{kind.itemsize}").view(kind)[()]
    if not re.fullmatch(r"-?\d+", text):
        raise UnknownInstructionError(f"an operand {text}")
    if kind.kind == "b":
        return bool(int(text))
    whole = int(text) & (1 << 8 * kind.itemsize) - 1
    return np.array(whole, f"u{kind.itemsize}").view(kind)[()]
