"""The browser that tests open reports in, and a run of a large network."""

import shutil
from collections.abc import Iterator
from typing import Any

import onnx
import pytest
from networks import build, calibration_images

from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.runtime.profile.profile import Profile

from .browser import profiled

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
def resnet18_model() -> onnx.ModelProto:
    """ResNet-18 at 224x224, quantised by one image."""
    return quantize_model(build("resnet18"), [{"image": calibration_images(1, 224)}]).model


@pytest.fixture(scope="session")
def resnet18(resnet18_model: onnx.ModelProto) -> Profile:
    """A run of it on zynq7020."""
    return profiled("resnet18", resnet18_model, "vta:zynq7020")
