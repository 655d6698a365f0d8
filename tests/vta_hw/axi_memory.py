"""AXI4 memories: cocotbext-axi's subordinate with random pauses, and one that shuffles."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, ReadOnly
from cocotbext.axi import AxiBus, AxiSlave

__all__ = ["AXI_MEMORIES", "Dram", "attach_memory", "random_pauses"]

AXI_MEMORIES = ("prompt", "paused", "shuffled")
"""Always ready; with random pauses on every channel; answering the two read ids in any order."""

SLAVE_ERROR = 2


class AccessError(Exception):
    """An access that memory refuses."""


@dataclass
class Dram:
    """Bytes from address 0, and the address ranges that answer with an error."""

    data: bytearray
    bad: list[range] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    """Address of every byte written, in order."""

    async def read(self, address: int, length: int) -> bytes:
        self._check(address)
        return bytes(self.data[address : address + length])

    async def write(self, address: int, data: bytes) -> None:
        self._check(address)
        self.data[address : address + len(data)] = data
        self.written.extend(range(address, address + len(data)))

    def _check(self, address: int) -> None:
        if any(address in bad for bad in self.bad):
            raise AccessError(hex(address))


def attach_memory(dut: Any, kind: str, dram: Dram, rng: np.random.Generator) -> None:
    """Let ``dram`` answer the AXI4 port ``memory`` of ``dut`` as a memory of ``kind`` does.

    From then on, what is on offer and not accepted may not change.
    """
    cocotb.start_soon(_watch_offers(dut))
    if kind == "shuffled":
        cocotb.start_soon(_ShuffledMemory(dut, dram, rng).run())
        return
    slave = AxiSlave(AxiBus.from_prefix(dut, "memory_"), dut.clk, dut.rst, target=dram)
    if kind == "paused":
        channels = (
            *(slave.read_if.ar_channel, slave.read_if.r_channel),
            *(slave.write_if.aw_channel, slave.write_if.w_channel, slave.write_if.b_channel),
        )
        for channel in channels:
            channel.set_pause_generator(random_pauses(rng))


OFFERS = {
    "ar": ("arid", "araddr", "arlen", "arsize", "arburst"),
    "aw": ("awid", "awaddr", "awlen", "awsize", "awburst"),
    "w": ("wdata", "wstrb", "wlast"),
}


async def _watch_offers(dut: Any) -> None:
    """Hold AR, AW and W to the rule that an offer stays as it is until it is accepted."""
    channels = [
        (
            channel,
            getattr(dut, f"memory__{channel}valid"),
            getattr(dut, f"memory__{channel}ready"),
            [getattr(dut, f"memory__{name}") for name in names],
        )
        for channel, names in OFFERS.items()
    ]
    waiting: dict[str, list[int]] = {}
    while True:
        await FallingEdge(dut.clk)
        await ReadOnly()
        for channel, valid, ready, signals in channels:
            offered = valid.value == 1
            accepted = offered and ready.value == 1
            if not offered or (accepted and channel not in waiting):
                assert channel not in waiting, f"{channel} withdrew its offer"
                continue
            offer = [int(signal.value) for signal in signals]
            assert offer == waiting.pop(channel, offer), f"{channel} changed its offer"
            if not accepted:
                waiting[channel] = offer


def random_pauses(rng: np.random.Generator) -> Iterator[bool]:
    """Stretches of pauses and of none, each with a density of its own."""
    while True:
        density = rng.choice([0.0, 0.1, 0.5, 0.9])
        yield from (bool(pause) for pause in rng.random(40) < density)


@dataclass
class _Burst:
    address: int
    beats: int
    done: int = 0


class _ShuffledMemory:
    """Takes commands, moves beats and answers at random; beats of the two read ids mix.

    Acts at falling edges: what it sees there is settled, what it sets there belongs to the same
    cycle.
    """

    def __init__(self, dut: Any, dram: Dram, rng: np.random.Generator) -> None:
        self._dut, self._dram, self._rng = dut, dram, rng
        self._bytes = len(dut.memory__wstrb)
        self._reads: dict[int, deque[_Burst]] = {0: deque(), 1: deque()}
        self._writes: deque[_Burst] = deque()
        self._beats: deque[tuple[int, int, bool]] = deque()
        self._answers: deque[int] = deque()

    async def run(self) -> None:
        while True:
            await FallingEdge(self._dut.clk)
            self._read()
            self._write()

    def _get(self, name: str) -> int:
        return int(getattr(self._dut, f"memory__{name}").value)

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            getattr(self._dut, f"memory__{name}").value = value

    def _maybe(self, chance: float = 0.6) -> bool:
        return bool(self._rng.random() < chance)

    def _command(self, channel: str) -> _Burst | None:
        """Accept, or not, what ``channel`` announces."""
        ready = self._maybe()
        self._set(**{f"{channel}ready": ready})
        if not (ready and self._get(f"{channel}valid")):
            return None
        burst = _Burst(self._get(f"{channel}addr"), self._get(f"{channel}len") + 1)
        assert burst.address // 4096 == (burst.address + burst.beats * self._bytes - 1) // 4096
        assert self._get(f"{channel}burst") == 1
        assert 1 << self._get(f"{channel}size") == self._bytes
        return burst

    def _read(self) -> None:
        ids = [identity for identity, bursts in self._reads.items() if bursts]
        self._set(rvalid=0)
        if ids and self._maybe():
            assert self._get("rready")
            identity = int(self._rng.choice(ids))
            burst = self._reads[identity][0]
            address = burst.address + burst.done * self._bytes
            burst.done += 1
            data = self._dram.data[address : address + self._bytes]
            refused = any(address in bad for bad in self._dram.bad)
            self._set(
                rvalid=1,
                rid=identity,
                rdata=int.from_bytes(data, "little"),
                rresp=SLAVE_ERROR if refused else 0,
                rlast=burst.done == burst.beats,
            )
            if burst.done == burst.beats:
                self._reads[identity].popleft()
        identity = self._get("arid")
        if new := self._command("ar"):
            self._reads[identity].append(new)

    def _write(self) -> None:
        self._set(bvalid=0)
        if self._answers and self._maybe(0.3):
            assert self._get("bready")
            self._set(bvalid=1, bid=0, bresp=self._answers.popleft())
        while self._writes and self._beats:
            self._store()
        if new := self._command("aw"):
            self._writes.append(new)
        ready = self._maybe()
        self._set(wready=ready)
        if ready and self._get("wvalid"):
            self._beats.append((self._get("wdata"), self._get("wstrb"), bool(self._get("wlast"))))

    def _store(self) -> None:
        burst, (data, strobe, last) = self._writes[0], self._beats.popleft()
        address = burst.address + burst.done * self._bytes
        burst.done += 1
        assert last == (burst.done == burst.beats)
        refused = any(burst.address in bad for bad in self._dram.bad)
        for lane in range(self._bytes):
            if strobe >> lane & 1 and not refused:
                self._dram.data[address + lane] = data >> 8 * lane & 0xFF
                self._dram.written.append(address + lane)
        if last:
            self._writes.popleft()
            self._answers.append(SLAVE_ERROR if refused else 0)
