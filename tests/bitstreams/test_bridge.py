"""Requests on the serial line, on buses of either width, held against a memory of bytes."""

from collections.abc import Iterator

import numpy as np
import pytest
from amaranth.hdl import Signal
from amaranth.sim import Simulator, SimulatorContext

from dovetail.bitstreams.bridge import HostBridge
from dovetail.isa.link import Frame, FrameDecoder, Operation, Status, encode_frame

DIVISOR = 4
"""Cycles of a bit."""
BITS = 10
"""Bits of a byte on the line: start, eight, stop."""
MOST_CYCLES = 40_000


class Bench:
    """A bridge, with a memory and registers that answer after some cycles; ``log`` holds the
    addresses of beats, with R or W before them.
    """

    def __init__(self, bus_bytes: int) -> None:
        self.bridge, self.bus_bytes = HostBridge(DIVISOR, bus_bytes), bus_bytes
        self.memory = np.random.default_rng(3).integers(0, 256, 64, np.uint8)
        self.registers: dict[int, int] = {}
        self.log: list[str] = []

    def run(self, *requests: Frame, running: bool = False) -> list[Frame]:
        """The responses, in turn."""
        sent, found, decoder = list(requests), list[Frame](), FrameDecoder()
        bridge = self.bridge

        async def host(ctx: SimulatorContext) -> None:
            ctx.set(bridge.running, running)
            for request in sent:
                for level in _levels(encode_frame(request)):
                    ctx.set(bridge.receive, level)
                    await ctx.tick().repeat(DIVISOR)
                before = len(found)
                for _ in range(MOST_CYCLES):
                    if len(found) > before:
                        break
                    await ctx.tick()

        async def line(ctx: SimulatorContext) -> None:
            while True:
                if ctx.get(bridge.transmit):
                    await ctx.negedge(bridge.transmit)
                await ctx.tick().repeat(DIVISOR // 2)
                value = 0
                for bit in range(BITS - 1):
                    value |= ctx.get(bridge.transmit) << bit
                    await ctx.tick().repeat(DIVISOR)
                found.extend(decoder.feed(bytes((value >> 1,))))

        simulator = Simulator(bridge)
        simulator.add_clock(1e-6)
        simulator.add_testbench(host)
        for each in (line, self._reads, self._writes, self._gets, self._puts):
            simulator.add_testbench(each, background=True)
        simulator.run()
        return found

    async def _reads(self, ctx: SimulatorContext) -> None:
        port, size = self.bridge.memory, self.bus_bytes
        while True:
            await _high(ctx, port.arvalid)
            address = ctx.get(port.araddr)
            assert (1 << ctx.get(port.arsize), ctx.get(port.arlen)) == (size, 0)
            self.log.append(f"R{address}")
            await _pulse(ctx, port.arready)
            ctx.set(port.rdata, int.from_bytes(self.memory[address : address + size], "little"))
            await _pulse(ctx, port.rvalid)
            ctx.set(port.rdata, 0)

    async def _writes(self, ctx: SimulatorContext) -> None:
        port, size = self.bridge.memory, self.bus_bytes
        while True:
            await _high(ctx, port.awvalid)
            address = ctx.get(port.awaddr)
            assert (1 << ctx.get(port.awsize), ctx.get(port.awlen)) == (size, 0)
            self.log.append(f"W{address}")
            await _pulse(ctx, port.awready)
            await _high(ctx, port.wvalid)
            word, kept = ctx.get(port.wdata), ctx.get(port.wstrb)
            for place in range(size):
                if kept >> place & 1:
                    self.memory[address + place] = word >> 8 * place & 255
            await _pulse(ctx, port.wready)
            await _pulse(ctx, port.bvalid)

    async def _gets(self, ctx: SimulatorContext) -> None:
        port = self.bridge.registers
        while True:
            await _high(ctx, port.arvalid)
            address = ctx.get(port.araddr)
            await _pulse(ctx, port.arready)
            ctx.set(port.rdata, self.registers.get(address, 0))
            await _pulse(ctx, port.rvalid)

    async def _puts(self, ctx: SimulatorContext) -> None:
        port = self.bridge.registers
        while True:
            await _high(ctx, port.awvalid)
            address = ctx.get(port.awaddr)
            self.registers[address] = ctx.get(port.wdata)
            await _pulse(ctx, port.awready)
            await _pulse(ctx, port.bvalid)


async def _high(ctx: SimulatorContext, signal: Signal) -> None:
    if not ctx.get(signal):
        await ctx.posedge(signal)


async def _pulse(ctx: SimulatorContext, signal: Signal) -> None:
    """High for one cycle, two later."""
    await ctx.tick().repeat(2)
    ctx.set(signal, 1)
    await ctx.tick()
    ctx.set(signal, 0)


def _levels(content: bytes) -> Iterator[int]:
    for byte in content:
        yield from (0, *(byte >> bit & 1 for bit in range(8)), 1)


@pytest.mark.parametrize("bus_bytes", [4, 8])
def test_every_byte_goes_where_it_belongs(bus_bytes: int) -> None:
    bench = Bench(bus_bytes)
    wanted = bench.memory.copy()
    content = bytes(range(0xB8, 0xC8))  # END is among them, and is escaped
    wanted[24:40] = bytearray(content)
    responses = bench.run(
        Frame(1, Operation.WRITE_MEMORY, 16, 24, content),
        Frame(2, Operation.READ_MEMORY, 24, 16),
    )
    assert np.array_equal(bench.memory, wanted)
    assert responses == [
        Frame(1, Operation.WRITE_MEMORY | 0x80, 0, Status.OK),
        Frame(2, Operation.READ_MEMORY | 0x80, 24, Status.OK, wanted[16:40].tobytes()),
    ]
    beats = [f"W{place}" for place in range(24, 40, bus_bytes)]
    assert bench.log == beats + [f"R{place}" for place in range(16, 40, bus_bytes)]


def test_registers_are_written_and_read_several_at_a_time() -> None:
    bench = Bench(8)
    bench.registers = {8: 0x01234567, 16: 0x89ABCDEF}
    responses = bench.run(
        Frame(1, Operation.WRITE_REGISTER, 4, 12, bytes((0xDB, 2, 3, 0xC0))),
        Frame(2, Operation.READ_REGISTERS, 12, 8),
    )
    content = bytes.fromhex("67452301 db0203c0 efcdab89")
    assert [each.data for each in responses] == [b"", content]
    assert bench.registers[12] == 0xC00302DB


def test_what_cannot_be_done_touches_nothing() -> None:
    bench = Bench(4)
    refused = [
        Frame(1, Operation.READ_MEMORY, 8, 4),
        Frame(2, Operation.READ_MEMORY, 12, 8),
        Frame(3, Operation.READ_MEMORY, 0, 8),
        Frame(4, Operation.READ_REGISTERS, 4, 2),
        Frame(5, Operation.READ_REGISTERS, 6, 4),
        Frame(6, Operation.WRITE_REGISTER, 8, 4, bytes(8)),
        Frame(7, 7, 8, 8),
    ]
    for running, asked, status in (
        (False, refused, Status.REFUSED),
        (True, [Frame(8, Operation.READ_MEMORY, 8, 8)], Status.BUSY),
    ):
        found = bench.run(*asked, running=running)
        answers = [(each.sequence, each.operation - 0x80, each.argument) for each in found]
        assert answers == [(each.sequence, each.operation, status) for each in asked]
        assert not any(each.length for each in found)
    assert not bench.log
    assert not bench.registers


def test_a_request_that_comes_again_is_answered_but_not_done_again() -> None:
    bench = Bench(8)
    write = Frame(4, Operation.WRITE_MEMORY, 8, 8, bytes(8))
    responses = bench.run(write, write, Frame(5, Operation.WRITE_MEMORY, 8, 8, bytes(8)))
    assert [each.argument for each in responses] == [Status.OK] * 3
    assert bench.log == ["W8", "W8"]
