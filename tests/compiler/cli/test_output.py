"""Output on the terminal, whatever names and files hold."""

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dovetail.compiler.cli.output import clear_errors, human, progress, table
from dovetail.isa.errors import DovetailError

from .commands import invoke, refused

NAME = "conv\x1b]0;title\x07\x1b[31m\u202e\x9b2J[/x] [red]:smile:"
SHOWN = r"conv\x1b]0;title\x07\x1b[31m\u202e\x9b2J[/x] [red]:smile:"


def test_names_do_not_speak_to_the_terminal() -> None:
    with human.capture() as captured:
        human.print(f"made {NAME}")
        human.print(table(NAME, {NAME: "left"}, [(NAME,)]))
        with progress(NAME):
            pass
    shown = captured.get()
    assert shown.count(SHOWN) >= 4
    assert all(each.isprintable() or each == "\n" for each in shown)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (DovetailError(f"node {NAME}:\n\tfirst"), f"node {SHOWN}:\n\tfirst"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (PermissionError(13, "Permission denied", NAME), f"{SHOWN}: Permission denied"),
    ],
)
def test_errors_are_one_clear_message(error: Exception, shown: str) -> None:
    @click.command()
    @clear_errors
    def fail() -> None:
        raise error

    found = CliRunner().invoke(fail)
    assert (found.exit_code, found.stderr) == (1, f"Error: {shown}\n")


def test_files_that_cannot_be_written_while_compiling_are_named(
    digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    compiling = "compile", digits_model, "--target", "vta:tiny", "-o", tmp_path / "x.dvt"
    refused(invoke(*compiling, "--plans", tmp_path), f"{tmp_path} cannot be read: Is a directory")
    found = invoke(*compiling, "--dump", tmp_path / "file" / "dump")
    refused(found, "cannot write")
    assert ": Not a directory" in found.stderr

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    found = invoke(*compiling, "--dump", tmp_path / "dump")
    refused(found, "cannot write")
    assert "No space left on device" in found.stderr
    assert sorted(os.listdir(tmp_path)) == ["dump", "file"]


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [
        ("profile", "perfetto", "'dovetail[profile]'"),
        ("explore", "pyarrow", "'dovetail[explore]'"),
        ("tune", "xgboost", "'dovetail[tune]'"),
        ("run", "serial", "'dovetail[board]'"),
        ("bitstream", "amaranth_boards.ulx3s", "'dovetail[hw,board]'"),
        ("bitstream", "amaranth", "'dovetail[hw,board]'"),
        ("benchmark", "onnxruntime", "'dovetail[benchmark]'"),
        ("run", "absent_package", "pip install absent-package"),
    ],
)
def test_a_missing_package_names_the_extra_of_the_command(
    command: str, package: str, extra: str
) -> None:
    @click.command(command)
    @clear_errors
    def broken() -> None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    done = CliRunner().invoke(broken)
    assert done.exit_code == 1
    assert (
        f"which is not installed; {'' if 'absent' in extra else 'install the extra: '}"
        in done.output
    )
    assert extra in done.output
