"""Records of tuned kernels belong to the compiler that they were found with."""

from pathlib import Path

import pytest

from dovetail.compiler.tune import kernel


def digest(root: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(kernel, "__file__", str(root / "tune" / "kernel.py"))
    found: str = kernel._compiler_digest.__wrapped__()
    return found


def test_any_change_of_what_makes_code_makes_another_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = ("define", "loops", "schedule/steps", "schedule/rules/cpu", "targets/cpu/llvm")
    for folder in (*folders, "cli"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("one = 1")
    keys = [digest(tmp_path, monkeypatch)]
    for folder in folders:
        (tmp_path / folder / "a.py").write_text("one = 2")
        keys.append(digest(tmp_path, monkeypatch))
        (tmp_path / folder / "a.py").rename(tmp_path / folder / "b.py")
        keys.append(digest(tmp_path, monkeypatch))
    assert len(set(keys)) == 1 + 2 * len(folders)
    (tmp_path / "cli" / "a.py").write_text("one = 2")
    assert digest(tmp_path, monkeypatch) == keys[-1]
