"""Files that are none, without end, or larger than memory, wherever a command is told of one."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dovetail.compiler.__main__ import main
from dovetail.compiler.cli.output import clear_errors
from dovetail.compiler.cli.paths import PATH

from .commands import invoke, refused

DEEP = "[" * 100_000


def parameters(group: click.Group) -> Iterator[click.Parameter]:
    for command in group.commands.values():
        yield from parameters(command) if isinstance(command, click.Group) else command.params


def test_every_place_is_of_the_type_that_refuses_devices() -> None:
    places = [each for each in parameters(main) if isinstance(each.type, click.Path)]
    assert len(places) > 40
    assert all(each.type is PATH for each in places)


@pytest.mark.parametrize(
    "command",
    ["run /dev/zero", "inspect /dev/zero", "compile x.onnx --records /dev/zero -o /dev/null"],
)
def test_a_device_is_refused(command: str) -> None:
    refused(invoke(*command.split()), "is a device; required a file or a folder", code=2)


@pytest.mark.parametrize("option", ["--plans", "--records"])
def test_lists_in_lists_without_end_are_refused(
    option: str, digits_model: Path, tmp_path: Path
) -> None:
    (tmp_path / "deep.json").write_text(DEEP)
    compiling = "compile", digits_model, "--target", "vta:tiny", "-o", tmp_path / "x.dvt"
    refused(invoke(*compiling, option, tmp_path / "deep.json"), "deep.json")
    assert not (tmp_path / "x.dvt").exists()


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e400", "-1", "1e30"])
@pytest.mark.parametrize(
    "option",
    [
        *("compile --most-work", "compile --most-compile-seconds", "compile --most-memory"),
        *("run --sandbox-memory", "check --tolerance", "tune --minutes", "benchmark --mhz"),
    ],
)
def test_a_number_that_cannot_be_meant_is_refused(option: str, number: str) -> None:
    refused(invoke(*option.split(), number, "x.onnx"), "Invalid value for '--", code=2)


def test_what_quantising_is_told_is_looked_at_before_it_begins(
    digits_model: Path, tmp_path: Path
) -> None:
    given = "quantize", digits_model, "--data", tmp_path / "x.npy", "-o", tmp_path / "q.onnx"
    refused(invoke(*given, "--target", "vat"), "no target is called 'vat'")
    for metric in ("../..", ".:f", "no_such_module:f", "math:no_such_function"):
        refused(invoke(*given, "--metric", metric), f"--metric {metric}: ", code=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seconds", ["-1", "0", "99999999999999999999"])
def test_a_number_of_seconds_that_cannot_be_is_refused(seconds: str) -> None:
    refused(invoke("run", "x.dvt", "--sandbox-seconds", seconds), "is not in the range", code=2)


def test_a_prompt_that_is_no_text_is_refused() -> None:
    refused(invoke("generate", "x.dvt", "--prompt", "\udcff"), "not text in UTF-8", code=2)


def test_a_file_larger_than_memory_is_an_error(digits_model: Path, tmp_path: Path) -> None:
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(1 << 43)  # No byte of it takes room.
    given = "compile", digits_model, "--target", "cpu", "-o", tmp_path / "x.dvt"
    refused(invoke(*given, "--records", huge), "not enough memory")

    @click.command()
    @clear_errors
    def fill() -> None:
        bytearray(1 << 62)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(main.commands, "fill", fill)
        refused(invoke("fill"), "there is not enough memory for what was asked")


def test_what_a_run_is_checked_by_is_read_first(digits_model: Path, tmp_path: Path) -> None:
    """So a mistake there costs no run, and leaves no outputs."""
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    given = "run", digits_model, "--target", "vta:tiny", "--output-dir", tmp_path / "outputs"
    refused(invoke(*given, "--check", tmp_path / "image.png"), "image.png is not an ONNX model")
    assert not (tmp_path / "outputs").exists()
    refused(invoke(*given, "--check", digits_model, "--config", "tiny"), "a program has none", 2)
