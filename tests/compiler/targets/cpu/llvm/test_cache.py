"""Machine code on disk: found again, never trusted when damaged."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.ir import Function, LoopKind
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.targets.cpu.llvm import build
from dovetail.compiler.targets.cpu.llvm.cache import content_key
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget

from ....loops.strategies import functions
from .kernels import elementwise


def scaled(factor: float, name: str = "map") -> Function:
    function = elementwise(8, (DType.FLOAT32,), lambda x: x * factor, LoopKind.VECTOR)
    return replace(function, name=name)


def run(function: Function, folder: Path) -> np.ndarray:
    module = compile_functions([function], LlvmOptions(cache=folder))
    return module.run(function.name, [np.arange(8, dtype=np.float32)])[0]


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_code_is_found_again_whatever_the_function_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(scaled(3.0), tmp_path)
    assert len(entries(tmp_path)) == 1
    monkeypatch.setattr(build, "build_function", None)
    np.testing.assert_array_equal(run(scaled(3.0, "another name"), tmp_path), first)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_entry_is_made_anew(tmp_path: Path, damage: str) -> None:
    first = run(scaled(3.0), tmp_path)
    (entry,) = entries(tmp_path)
    whole = entry.read_bytes()
    flipped = whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]
    entry.write_bytes({"cut": whole[:300], "flipped": flipped, "empty": b""}[damage])
    np.testing.assert_array_equal(run(scaled(3.0), tmp_path), first)
    assert entries(tmp_path) == [entry]
    assert entry.read_bytes() == whole


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert run(scaled(2.0), blocked)[3] == 6


def test_content_cpu_and_threads_are_told_apart() -> None:
    native, old = CpuTarget.at_level("native"), CpuTarget.at_level("x86-64")
    keys = [
        content_key(scaled(3.0), native, 1),
        content_key(scaled(2.0), native, 1),
        content_key(scaled(3.0), old, 1),
        content_key(scaled(3.0), native, 2),
    ]
    assert len(set(keys)) == 4
    assert content_key(scaled(3.0, "other"), native, 1) == keys[0]


@given(functions(), functions())
def test_functions_of_one_key_are_equal(first: Function, second: Function) -> None:
    target = CpuTarget.at_level("x86-64")
    same = content_key(first, target, 1) == content_key(second, target, 1)
    assert same == (to_text(first) == to_text(second))
    again = parse(to_text(first))
    assert content_key(again, target, 1) == content_key(first, target, 1)
