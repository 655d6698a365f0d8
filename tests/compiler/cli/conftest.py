"""Arguments of commands: an image, a module."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.cli.output import FILE_WIDTH, human

from .commands import invoke


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """As wide as a file, on whatever terminal the tests run."""
    monkeypatch.setattr(human, "_width", FILE_WIDTH)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image.npy"
    np.save(path, np.random.default_rng(0).random((1, 1, 8, 8), np.float32))
    return path


@pytest.fixture(scope="session")
def module_file(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("module") / "digits.dvt"
    done = invoke("compile", digits_model, "--target", "vta:tiny", "-o", path)
    assert done.exit_code == 0, done.output
    return path
