"""The clock generator of ECP5: EHXPLLL.

Source: Lattice, ECP5 sysCLOCK PLL/DLL Design and Usage Guide (FPGA-TN-02200).
"""

from amaranth.hdl import Const, Instance, Signal

from dovetail.isa.errors import ConfigError
from dovetail.isa.frozen import frozen

__all__ = ["Pll", "find_pll", "pll_instance"]

VCO = (400_000_000, 800_000_000)
PHASE_DETECTOR = (3_125_000, 400_000_000)
MOST_DIVISOR = 128


@frozen
class Pll:
    """``source / reference * feedback`` Hz, by an oscillator at ``divisor`` times that.

    shift: the second output rises this many eighths of an oscillator period later.  multiple: of
    that frequency, what the third output has; every rising edge of the first is one of it.
    """

    source: int
    reference: int
    feedback: int
    divisor: int
    shift: int
    multiple: int

    @property
    def clock_hz(self) -> float:
        """Frequency of the first two outputs, Hz."""
        return self.source / self.reference * self.feedback


def find_pll(source: int, wanted: int, lag: float, multiple: int = 1) -> Pll:
    """The PLL for ``wanted`` Hz, exact, whose second output lags by ``lag`` of a period, and whose
    third has ``multiple`` times the frequency.

    Raises ConfigError when there is none.
    """
    for reference in range(1, MOST_DIVISOR + 1):
        feedback, rest = divmod(wanted * reference, source)
        if rest or not 1 <= feedback <= MOST_DIVISOR:
            continue
        if not PHASE_DETECTOR[0] <= source // reference <= PHASE_DETECTOR[1]:
            continue
        for divisor in range(MOST_DIVISOR, 0, -1):
            if VCO[0] <= wanted * divisor <= VCO[1] and divisor % multiple == 0:
                shift = round(8 * divisor * lag)
                return Pll(source, reference, feedback, divisor, shift, multiple)
    raise ConfigError(
        f"no PLL setting gives {wanted / 1e6:g} MHz from {source / 1e6:g} MHz; choose a clock that "
        "is a ratio of small numbers of it"
    )


def pll_instance(
    pll: Pll,
    source: Signal,
    clock: Signal,
    late: Signal,
    locked: Signal,
    fast: Signal | None = None,
) -> Instance:
    """The cell: ``clock`` is its first output, ``late`` the second, ``fast`` the third if given."""
    middle = pll.divisor - 1
    whole, eighths = divmod(pll.shift, 8)
    third: dict[str, object] = {}
    if fast is not None:
        divisor = pll.divisor // pll.multiple
        third = {
            "a_FREQUENCY_PIN_CLKOS2": f"{pll.multiple * pll.clock_hz / 1e6:g}",
            "p_OUTDIVIDER_MUXC": "DIVC",
            "p_CLKOS2_ENABLE": "ENABLED",
            "p_CLKOS2_DIV": divisor,
            "p_CLKOS2_CPHASE": divisor - 1,
            "p_CLKOS2_FPHASE": 0,
            "i_ENCLKOS2": Const(0),
            "o_CLKOS2": fast,
        }
    return Instance(
        "EHXPLLL",
        a_FREQUENCY_PIN_CLKI=f"{pll.source / 1e6:g}",
        a_FREQUENCY_PIN_CLKOP=f"{pll.clock_hz / 1e6:g}",
        a_FREQUENCY_PIN_CLKOS=f"{pll.clock_hz / 1e6:g}",
        p_PLLRST_ENA="DISABLED",
        p_INTFB_WAKE="DISABLED",
        p_STDBY_ENABLE="DISABLED",
        p_DPHASE_SOURCE="DISABLED",
        p_OUTDIVIDER_MUXA="DIVA",
        p_OUTDIVIDER_MUXB="DIVB",
        p_CLKI_DIV=pll.reference,
        p_CLKFB_DIV=pll.feedback,
        p_FEEDBK_PATH="CLKOP",
        p_CLKOP_ENABLE="ENABLED",
        p_CLKOP_DIV=pll.divisor,
        p_CLKOP_CPHASE=middle,
        p_CLKOP_FPHASE=0,
        p_CLKOS_ENABLE="ENABLED",
        p_CLKOS_DIV=pll.divisor,
        p_CLKOS_CPHASE=middle + whole,
        p_CLKOS_FPHASE=eighths,
        i_CLKI=source,
        i_CLKFB=clock,
        i_RST=Const(0),
        i_STDBY=Const(0),
        i_PHASESEL0=Const(0),
        i_PHASESEL1=Const(0),
        i_PHASEDIR=Const(0),
        i_PHASESTEP=Const(0),
        i_PHASELOADREG=Const(0),
        i_PLLWAKESYNC=Const(0),
        i_ENCLKOP=Const(0),
        i_ENCLKOS=Const(0),
        o_CLKOP=clock,
        o_CLKOS=late,
        o_LOCK=locked,
        **third,
    )
