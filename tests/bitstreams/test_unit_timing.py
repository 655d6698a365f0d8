"""Measuring units alone: what is placed, and how nextpnr's report is read."""

from pathlib import Path

import pytest

pytest.importorskip("amaranth", reason="Amaranth is not installed")

from amaranth.back import rtlil

from dovetail.bitstreams import unit_timing
from dovetail.isa.configs import find_config


def step(kind: str, delay: float, name: str) -> dict[str, object]:
    return {"type": kind, "delay": delay, "to": {"cell": name}, "net": name}


REPORT = {
    "fmax": {"clk": {"achieved": 80.5, "constraint": 105.0}},
    "utilization": {"TRELLIS_FF": {"used": 7, "available": 83640}},
    "critical_paths": [
        {"from": "<async>", "to": "posedge clk", "path": []},
        {
            "from": "posedge clk",
            "to": "posedge clk",
            "path": [
                step("clk-to-q", 0.5, "unit.count_TRELLIS_FF_Q"),
                step("routing", 1.2, "unit.count[3]"),
                step("logic", 0.4, "unit.sum_CCU2C_S0$CCU2_COMB0"),
                step("routing", 0.0, "unit.sum_CCU2C_S0$CCU2_FCI_INT"),
                step("logic", 0.1, "unit.sum_CCU2C_S1$CCU2_COMB1"),
                step("setup", 0.0, "unit.sum_TRELLIS_FF_Q"),
            ],
        },
    ],
}


def test_a_path_of_the_report_has_a_line_for_each_cell_and_wire() -> None:
    found = unit_timing._read(REPORT, 105e6)
    assert found.clock_hz == pytest.approx(80.5e6)
    assert found.used == {"TRELLIS_FF": 7}
    assert found.path == (
        (0.5, "unit.count"),
        (1.2, "-> unit.count[3]"),
        (0.5, "unit.sum"),
    )


@pytest.mark.parametrize("name", sorted(unit_timing.UNITS.keys() - {"accelerator"}))
def test_every_unit_can_be_put_between_registers(name: str, tmp_path: Path) -> None:
    alone = unit_timing._Alone(unit_timing.UNITS[name](find_config("ecp5_85")))
    ports = [alone.serial, alone.parity]
    assert "unit" in rtlil.convert(alone, name="top", ports=ports, emit_src=False)


def test_the_command_measures_what_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given: list[tuple[object, ...]] = []

    def measure(unit: object, folder: Path, *, clock_hz: float, seed: int) -> object:
        given.append((unit, folder, clock_hz, seed))
        used = {"FF": {"used": 7000}, "M": {"used": 0}}
        return unit_timing._read({**REPORT, "utilization": used}, 105e6)

    monkeypatch.setattr(unit_timing, "measure", measure)
    monkeypatch.setattr(unit_timing, "UNITS", {"one": lambda config: config.name})

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["unit_timing", "--unit", "one", *arguments])
        return unit_timing.main(), *capsys.readouterr()

    code, out, _ = run()
    first, *path = out.splitlines()
    assert (code, first) == (0, "one of ecp5_85: 80.5 MHz; 7,000 FF")
    assert path[1] == "    1.20 ns  -> unit.count[3]"
    kept = tmp_path / "deep" / "kept"
    run("--config", "tiny", "--clock", "50", "--seed", "7", "--keep", str(kept))
    assert kept.is_dir()
    code, _, problem = run("--config", "tinny")
    assert (code, problem.split(";")[0]) == (1, "error: no configuration is called 'tinny'")
    (before, last) = given
    assert before[::2] == ("ecp5_85", 105e6)
    assert before[3] == 1
    assert last == ("tiny", kept, 50e6, 7)
