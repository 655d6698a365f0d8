"""The browser that tests open reports in, and a run of a large network."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from dovetail.runtime.module import Module
from dovetail.runtime.profile.profile import Profile

from .browser import profile_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


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


@pytest.fixture(scope="session")
def resnet18(resnet18_module: Module) -> Profile:
    """A run of it on zynq7020."""
    return profile_of("resnet18", resnet18_module)
