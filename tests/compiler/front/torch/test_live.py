"""Modules and programs of torch in memory, with a torch that exports nothing."""

import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, BinaryIO

import pytest

from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.torch.live import exported, saved


class Module:
    """A module, or one whose code does not run."""

    problem = ""


class Program:
    """The export of a module for inputs."""

    def __init__(self, module: Module, inputs: tuple[Any, ...]) -> None:
        if module.problem:
            raise RuntimeError(f"\n{module.problem}\nand more\n")
        self.content = f"{len(inputs)} inputs".encode()


def save(program: Program, file: BinaryIO) -> None:
    file.write(program.content)


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    export = SimpleNamespace(export=Program, ExportedProgram=Program, save=save)
    nn = SimpleNamespace(Module=Module)
    fake = SimpleNamespace(export=export, nn=nn, no_grad=nullcontext)
    monkeypatch.setitem(sys.modules, "torch", fake)  # type: ignore[arg-type]


def test_a_module_is_exported_for_its_inputs_and_saved_as_a_file() -> None:
    assert saved(exported(Module(), (1, 2, 3))) == b"3 inputs"


def test_anything_else_is_refused_by_its_type() -> None:
    with pytest.raises(ModelError, match=r"a dict with inputs; required a torch\.nn\.Module"):
        exported({}, ())
    with pytest.raises(ModelError, match=r"a Module; required the path of a \.pt2 file, an Export"):
        saved(Module())


def test_what_torch_raises_is_said_in_one_line() -> None:
    module = Module()
    module.problem = "data decides a shape"
    with pytest.raises(ModelError, match=r"^torch cannot export the module: data decides a shape$"):
        exported(module, ())
