"""Counts of a synthesis and its page, with another program in the place of Yosys."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

pytest.importorskip("amaranth", reason="Amaranth is not installed")

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import CONFIGS
from dovetail.vta_hw import synthesis
from dovetail.vta_hw.synthesis import FAMILIES, Family, Resources, synthesize, write_page
from dovetail.vta_hw.verilog import HardwareError

ECP5, XILINX = FAMILIES
ZYNQ, PARTED, LARGE = (CONFIGS[name] for name in ("zynq7020", "ecp5_85", "large"))
RAM = {"ECP5": "$__ECP5_DP16KD_", "Xilinx 7": "$__XILINX_BLOCKRAM_TDP_"}
PAGE = Path(__file__).parents[2] / "docs" / "resources.md"
Run = Callable[..., Resources]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Synthesises with a program that gives ``memories`` and ``cells``; keeps run.ys."""
    program = tmp_path / "yosys"
    monkeypatch.setattr(synthesis, "find_yosys", lambda: str(program))

    def synthesised(
        family: Family,
        memories: Mapping[str, str],
        cells: Mapping[str, int],
        code: int = 0,
        config: HardwareConfig = ZYNQ,
    ) -> Resources:
        lines = [f"line {number}" for number in range(20)]
        lines += [f"mapping memory {name} via {cell}" for name, cell in memories.items()]
        (tmp_path / "given.log").write_text("\n".join(lines) + "\n")
        (tmp_path / "cells.json").write_text(json.dumps({"design": {"num_cells_by_type": cells}}))
        program.write_text(
            f"#!/bin/sh\ncp {tmp_path}/given.log log; cp {tmp_path}/cells.json .\n"
            f"cp run.ys {tmp_path}; echo no wire >&2; exit {code}\n"
        )
        program.chmod(0o700)
        return synthesize(config, family, "module m; endmodule")

    return synthesised


def test_cells_count_as_the_page_says(run: Run, tmp_path: Path) -> None:
    cells = {"LUT4": 3, "CCU2C": 5, "TRELLIS_DPR16X4": 2, "TRELLIS_FF": 7, "MULT18X18D": 4}
    cells |= {"DP16KD": 1, "PDPW16KD": 2, "LUT40": 99}
    assert run(ECP5, {"act_bank0": RAM["ECP5"]}, cells) == Resources(25, 7, 4, 3)
    script = (tmp_path / "run.ys").read_text().splitlines()
    assert script[:2] == [
        "read_verilog dovetail_zynq7020.v",
        "hierarchy -check -top " + script[-4][16:],
    ]
    assert script.count("check -assert") == 2
    cells = {"LUT1": 1, "LUT6": 2, "RAM32M": 3, "RAM64X1D": 5, "SRL16E": 7, "SRLC32E": 11}
    cells |= {"FDRE": 13, "FDCE": 17, "DSP48E1": 19, "RAMB36E1": 2, "RAMB18E1": 3}
    found = run(XILINX, {"wgt_bank1": RAM["Xilinx 7"]}, cells)
    assert found == Resources(43, 30, 19, 3.5)
    script = (tmp_path / "run.ys").read_text().splitlines()
    assert script[0] == f"read_verilog -lib {XILINX.library}"


@pytest.mark.parametrize(
    ("config", "name", "bits"),
    [
        (ZYNQ, "act_bank0", 8 * 16 * ZYNQ.act_depth // ZYNQ.act_banks),
        (ZYNQ, "wgt_bank0", 8 * 16 * 16 * ZYNQ.wgt_depth),
        (PARTED, "acc_bank1", 32 * 16 * PARTED.acc_depth // PARTED.acc_banks // 8),
        (LARGE, "tap_part1", 1 << 14),
    ],
    ids=["act", "wgt", "acc", "tap"],
)
def test_large_memories_have_to_be_block_ram(
    run: Run, config: HardwareConfig, name: str, bits: int
) -> None:
    for family in FAMILIES:
        ram, other = RAM[family.name], "$__LUTRAM_"
        run(family, {name: ram, "queue": other, "tab_lane3": other}, {}, config=config)
        with pytest.raises(HardwareError) as caught:
            run(family, {name: other}, {}, config=config)
        said = f"{config.name}: {name} ({bits} bits) became {other} on {family.name}; required blo"
        assert said in str(caught.value)


def test_what_goes_wrong_is_told(run: Run) -> None:
    with pytest.raises(HardwareError, match=r"zynq7020: Yosys names no scratchpad among \['q'\]"):
        run(ECP5, {"q": RAM["ECP5"]}, {})
    with pytest.raises(HardwareError) as caught:
        run(ECP5, {}, {}, code=1)
    first, *lines = str(caught.value).splitlines()
    assert first == "zynq7020: synthesis for ECP5 failed:"
    assert lines == [*(f"line {number}" for number in range(6, 20)), "no wire"]


def test_the_page_keeps_the_rows_of_others(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text())
    write_page(page, {})
    assert page.read_text() == PAGE.read_text()
    write_page(page, {("tiny", "Xilinx 7"): Resources(53_200, 10_600, 22, 70.5)})
    before, after = (each.read_text().splitlines() for each in (PAGE, page))
    (row,) = set(after) - set(before)
    assert row == "| tiny | Xilinx 7 | 53,200 (100 %) | 10,600 (10 %) | 22 (10 %) | 70.5 (50 %) |"
    assert len(after) == len(before)
    page.unlink()
    write_page(page, {(name, "ECP5"): Resources(1, 2, 3, 4.0) for name in ("large", "tiny")})
    rows = [line.split(" | ")[0] for line in page.read_text().splitlines()[-2:]]
    assert rows == ["| tiny", "| large"]


def test_the_command_goes_through_configurations_and_families(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written: list[tuple[Path, object]] = []
    used = Resources(1, 2, 3, 4.0)
    monkeypatch.setattr(synthesis, "synthesize", lambda config, family: used)
    monkeypatch.setattr(synthesis, "write_page", lambda *given: written.append(given))
    assert synthesis.main(["tiny"]) == 0
    assert written == [(PAGE, {("tiny", family.name): used}) for family in FAMILIES]
    written.clear()
    assert synthesis.main([]) == 0
    assert len(written) == len(CONFIGS) * len(FAMILIES)
    capsys.readouterr()
    assert synthesis.main(["tinny"]) == 1
    assert capsys.readouterr().err.startswith("error: ")
