"""The documentation site, built once, and a browser."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.once import made_once

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder; a warning while it is built is an error."""
    pytest.importorskip("sphinx", reason="needs the extra docs")

    def build(folder: Path) -> None:
        doctrees = tmp_path_factory.mktemp("doctrees")
        options = ["-q", "-W", "--keep-going", "-c", "docs/site", "-d", str(doctrees)]
        command = [sys.executable, "-m", "sphinx", *options, ".", str(folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "site", build)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium; skips when there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} on PATH")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield running
        running.close()
