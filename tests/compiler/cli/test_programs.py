"""Modules and models that commands open, and what reaches the compiler."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.compiler import driver
from dovetail.compiler.cli import programs
from dovetail.isa.configs import find_config
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.errors import InputError, ModuleError
from dovetail.runtime.generate.roles import Named
from tests.runtime.sample import COPY, copy_module

NAMED = Named("token")
Called = list[tuple[Any, ...]]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Called:
    """Calls of the compiler, which compiles nothing."""
    found: Called = []
    monkeypatch.setattr(driver, "compile_model", lambda *given: found.append(given))
    monkeypatch.setattr(programs, "block_model", lambda *given: ("blocks", *given))
    return found


def test_options_of_a_model_reach_the_compiler(called: Called) -> None:
    model = Path("model.onnx")
    programs.open_module(model, "vta:tiny", [Path("a.json")], dims={"n": 3}, effort=0.5)
    ((given, target, options, dims),) = called
    assert (given, target, dims) == (model, "vta:tiny", {"n": 3})
    assert (options.records, options.effort) == ((Path("a.json"),), 0.5)
    assert programs.opening(model) == "compiling"


def test_options_of_blocks_reach_the_compiler(called: Called) -> None:
    model = Path("model.onnx")
    programs.open_blocks("4", model, "vta:tiny", NAMED, {"n": 3}, 0.25)
    ((given, target, options),) = called
    assert given == ("blocks", model, 4, NAMED, {"n": 3})
    assert (target, options.effort) == ("vta:tiny", 0.25)


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda path: programs.open_module(path, "vta", [path]), "--records with the module"),
        (lambda path: programs.open_module(path, "vta", dims={"n": 1}), "--dim with the module"),
        (lambda path: programs.open_module(path, "vta", effort=2), "--effort with the module"),
        (
            lambda path: programs.open_module(path.with_suffix(".onnx"), "vta", key=path),
            "--require-signature with the model",
        ),
        (
            lambda path: programs.open_blocks("4", path, "vta", NAMED),
            "blocks of 4 tokens of the mod",
        ),
    ],
)
def test_options_for_another_kind_of_file_are_refused(
    give: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.dvt"
    copy_module().save(path)
    assert programs.open_module(path, "vta") == copy_module()
    assert programs.open_blocks(str(path), Path("a.onnx"), "vta", NAMED) == copy_module()
    assert programs.opening(path) == "reading"
    with pytest.raises(InputError, match=f"{message}.* {tmp_path}/m"):
        give(path)


def test_code_is_read_of_modules_and_of_other_files(tmp_path: Path) -> None:
    copy_module().save(tmp_path / "m.dvt")
    code = programs.read_code(tmp_path / "m.dvt")
    assert code == accelerator_part(copy_module()).code
    (tmp_path / "m.bin").write_bytes(code[64:])
    assert programs.read_code(tmp_path / "m.bin") == code[64:]
    (tmp_path / "m.s").write_text(COPY)
    assert programs.assemble_file(tmp_path / "m.s", find_config("tiny")) == code
    for read in (
        programs.read_code,
        lambda path: programs.assemble_file(path, find_config("tiny")),
    ):
        with pytest.raises(ModuleError, match=f"cannot read {tmp_path}/none: "):
            read(tmp_path / "none")
