"""The top level of ECP5 boards with an SDRAM: clocks, reset, pins."""

from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from dovetail.vta_hw.pipeline import CORE
from dovetail.vta_hw.sdram import SdramCommand

from .boards import Board
from .core import BoardCore
from .pll import find_pll, pll_instance

__all__ = ["Ecp5Top"]

SLOW_CLOCK = 66_000_000
"""Up to here the chip's clock is half a period late, above it a quarter: read data come up to 6 ns
after it and are captured at the end of the period.
"""


class Ecp5Top(Elaboratable):
    """``BoardCore`` on the pins of a platform with ``uart`` and ``sdram``.

    The outputs of the SDRAM are registered in the cells of the pins, and its data on their way in;
    its clock comes from the second output of the PLL, that of the matrix core from the third.
    """

    def __init__(self, board: Board) -> None:
        self._board = board

    def elaborate(self, platform: object) -> Module:
        m = Module()
        board = self._board
        core = BoardCore(board.config, board.baud)
        m.submodules.core = core
        self._clocks(m, platform)
        self._sdram(m, platform, core)
        uart = platform.request("uart", 0)  # type: ignore[attr-defined]
        m.d.comb += [core.receive.eq(uart.rx.i), uart.tx.o.eq(core.transmit)]
        for number, lit in enumerate((core.ready, core.running)):
            led = platform.request("led", number)  # type: ignore[attr-defined]
            m.d.comb += led.o.eq(lit)
        return m

    def _clocks(self, m: Module, platform: object) -> None:
        board = self._board
        hertz = board.config.clock_hz
        source = platform.request(platform.default_clk, 0)  # type: ignore[attr-defined]
        ratio = board.config.core_clock_ratio
        lag = 0.5 if hertz <= SLOW_CLOCK else 0.25
        pll = find_pll(board.oscillator_hz, hertz, lag, ratio)
        locked = Signal()
        m.domains.sync = ClockDomain()
        m.domains.memory = ClockDomain(reset_less=True)
        fast = None
        if ratio > 1:
            m.domains += ClockDomain(CORE, reset_less=True)
            fast = ClockSignal(CORE)
        m.submodules.pll = pll_instance(
            pll, source.i, ClockSignal("sync"), ClockSignal("memory"), locked, fast
        )
        m.submodules.reset = ResetSynchronizer(~locked, domain="sync")

    def _sdram(self, m: Module, platform: object, core: BoardCore) -> None:
        port = platform.request("sdram", 0, dir="-")  # type: ignore[attr-defined]
        pins = core.sdram

        def output(name: str, pad: object, value: object) -> None:
            buffer = io.FFBuffer("o", pad)  # type: ignore[arg-type]
            m.submodules[f"sdram_{name}"] = buffer
            m.d.comb += buffer.o.eq(value)

        clock = io.DDRBuffer("o", port.clk, o_domain="memory")
        m.submodules.sdram_clk = clock
        m.d.comb += [clock.o[0].eq(1), clock.o[1].eq(0)]
        output("clk_en", port.clk_en, 1)
        output("cs", port.cs, 1)
        active = {
            "ras": SdramCommand.ACTIVE,
            "cas": SdramCommand.READ,
            "we": SdramCommand.WRITE & ~SdramCommand.READ,
        }
        for name, bit in active.items():
            output(name, getattr(port, name), (pins.command & bit) != 0)
        output("ba", port.ba, pins.bank)
        output("a", port.a, pins.address)
        output("dqm", port.dqm, pins.mask)
        # One buffer a pin: each has its own register of the output's enable.
        for number in range(16):
            buffer = io.FFBuffer("io", port.dq[number])
            m.submodules[f"sdram_dq{number}"] = buffer
            m.d.comb += [
                buffer.o.eq(pins.dq_out[number]),
                buffer.oe.eq(pins.drive),
                pins.dq_in[number].eq(buffer.i),
            ]
