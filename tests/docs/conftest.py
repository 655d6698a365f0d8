"""The documentation site, built once."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.once import made_once

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder, without the compiler's inner packages; a warning is an error."""
    pytest.importorskip("sphinx", reason="needs the extra docs")

    def build(folder: Path) -> None:
        doctrees = tmp_path_factory.mktemp("doctrees")
        options = ["-qW", "--keep-going", "-t", "brief", "-c", "docs/site", "-d", str(doctrees)]
        command = [sys.executable, "-m", "sphinx", *options, ".", str(folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "site", build)
