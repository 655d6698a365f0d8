"""The browser that tests open reports in, and runs of networks."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dovetail.runtime.module import Module
from dovetail.runtime.profile.profile import Profile

from .browser import profile_of, profiled

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
def digits(digits_model: Path) -> Profile:
    """A run of the digits network on tiny."""
    return profiled("digits", digits_model, "vta:tiny")


@pytest.fixture(scope="session")
def resnet8(shared_models: Path) -> Profile:
    """A run of ResNet-8 on zynq7020."""
    path = shared_models / "mlperf_tiny" / "ic_resnet8_int8.onnx"
    return profiled("resnet8", path, "vta:zynq7020")


@pytest.fixture(scope="session")
def resnet18(resnet18_module: Module) -> Profile:
    """A run of it on zynq7020."""
    return profile_of("resnet18", resnet18_module)
