"""The commands ``dovetail assemble`` and ``dovetail disassemble``."""

from pathlib import Path

import pytest

from dovetail.isa.assembly import assemble
from dovetail.isa.configs import find_config
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.module import Module

from .commands import PROGRAM, invoke, refused


def test_a_program_survives_assembly_and_disassembly(tmp_path: Path, module_file: Path) -> None:
    text, code = tmp_path / "program.s", tmp_path / "program.bin"
    shown = invoke("disassemble", module_file)
    assert shown.exit_code == 0, shown.output
    text.write_text(shown.stdout)
    done = invoke("assemble", text, "--config", "tiny", "-o", code)
    assert done.exit_code == 0, done.output
    assert code.read_bytes() == accelerator_part(Module.load(module_file)).code
    assert invoke("disassemble", code).stdout == shown.stdout
    again = tmp_path / "again.s"
    assert invoke("disassemble", code, "-o", again).exit_code == 0
    assert again.read_text() == shown.stdout


def test_a_hand_written_program_is_assembled(tmp_path: Path) -> None:
    text, code = tmp_path / "program.s", tmp_path / "program.bin"
    text.write_text(PROGRAM)
    assert invoke("assemble", text, "--config", "tiny", "-o", code).exit_code == 0
    assert len(code.read_bytes()) == 2 * 64
    assert len(assemble(PROGRAM, find_config("tiny"))) == 2


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("jump somewhere", "line 1"),
        ("\nload memory=act sram_address=0 dram_address=0 count_x=70000", "line 2"),
        ("load memory=act sram_address=0 dram_address=1", "dram_address"),
        ("load memory=act sram_address=0 dram_address=0 count_x=4 count_y=2", "one address"),
        ("load memory=act sram_address=0 speed=9", "speed"),
    ],
)
def test_assemble_refuses_wrong_programs(tmp_path: Path, program: str, message: str) -> None:
    path, out = tmp_path / "program.s", tmp_path / "program.bin"
    path.write_text(program)
    refused(invoke("assemble", path, "--config", "tiny", "-o", out), message)
    assert not out.exists()
