"""Records of bitstreams, and the page that shows them."""

from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Signal

from dovetail.bitstreams.boards import find_board
from dovetail.bitstreams.document import read_records, write_page
from dovetail.bitstreams.flow import Placement
from dovetail.bitstreams.pll import find_pll, pll_instance
from dovetail.bitstreams.record import Record, make_record, portable_report, read_record
from dovetail.isa.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
CLOCK = find_board("ulx3s-85f").config.clock_hz


def example(folder: Path) -> Record:
    for name in ("top.il", "top.lpf", "top.bit"):
        (folder / name).write_text(name)
    placement = Placement(
        3,
        folder / "seed3.config",
        folder / "seed3.json",
        {"clk": (61.25e6, CLOCK), "clk25": (300e6, 25e6)},
        {"TRELLIS_COMB": (8364, 83640), "MULT18X18D": (78, 156)},
    )
    return make_record(find_board("ulx3s-85f"), placement, folder, folder / "top.bit")


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    record = example(tmp_path)
    (tmp_path / "manifest.json").write_text(record.to_json())
    assert read_record(tmp_path / "manifest.json") == record


def test_the_table_shows_what_was_reached(tmp_path: Path) -> None:
    record = example(tmp_path)
    row = record.row()
    assert row["LUT"] == "8,364 (10 %)"
    assert row["multipliers"] == "78 (50 %)"
    assert row["Fmax, MHz"] == "61.2"
    assert row["peak GOP/s"] == f"{2 * record.macs_per_cycle * CLOCK / 1e9:.1f}"


def test_the_page_is_that_of_the_records() -> None:
    page = (ROOT / "docs" / "boards.md").read_text()
    assert write_page(page, read_records(ROOT / "bitstreams")) == page


def test_a_placement_passes_when_every_clock_does(tmp_path: Path) -> None:
    good = Placement(1, tmp_path, tmp_path, {"a": (51e6, 50e6), "b": (30e6, 25e6)}, {})
    assert good.passes
    assert good.slack == pytest.approx(1.02)
    assert not replace(good, clocks={**good.clocks, "b": (24e6, 25e6)}).passes


@pytest.mark.parametrize("megahertz", [25, 40, 50, 62.5, 75, 100])
def test_a_pll_gives_the_clock_within_its_limits(megahertz: float) -> None:
    """Limits from Lattice's FPGA-TN-02200: oscillator 400 to 800 MHz."""
    pll = find_pll(25_000_000, int(megahertz * 1e6), 0.25)
    assert pll.clock_hz == megahertz * 1e6
    assert 400e6 <= pll.clock_hz * pll.divisor <= 800e6
    assert pll.shift / (8 * pll.divisor) == pytest.approx(0.25, abs=0.02)


def test_a_clock_without_a_pll_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no PLL setting gives 33\.3333 MHz"):
        find_pll(25_000_000, 33_333_333, 0.5)


@pytest.mark.parametrize("megahertz", [40, 50, 62.5, 75])
def test_a_second_clock_of_twice_the_rate_rises_with_the_first(megahertz: float) -> None:
    pll = find_pll(25_000_000, int(megahertz * 1e6), 0.5, multiple=2)
    cell = pll_instance(pll, *(Signal() for _ in range(4)), Signal())
    periods, edges = {}, {}
    for output in ("CLKOP", "CLKOS2"):
        divisor, phase = (cell.parameters[f"{output}_{each}"] for each in ("DIV", "CPHASE"))
        assert cell.parameters[f"{output}_FPHASE"] == 0
        periods[output] = divisor
        # In periods of the oscillator: an output first rises one after its phase.
        edges[output] = {phase + 1 + k * divisor for k in range(64)}
    assert periods["CLKOP"] == 2 * periods["CLKOS2"]
    assert min(edges["CLKOP"]) in edges["CLKOS2"]
    assert pll.clock_hz * periods["CLKOP"] <= 800e6


def test_a_report_does_not_say_where_the_sources_lay(tmp_path: Path) -> None:
    found = portable_report_of(tmp_path, f'{{"src": "{ROOT}/vta_hw/load.py:1"}}')
    assert found == b'{"src": "vta_hw/load.py:1"}'


def portable_report_of(folder: Path, text: str) -> bytes:
    (folder / "report.json").write_text(text)
    return portable_report(folder / "report.json")


def test_an_unknown_board_is_refused() -> None:
    with pytest.raises(ConfigError, match="there are: ulx3s-85f"):
        find_board("de10")
