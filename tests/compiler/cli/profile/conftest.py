"""Runs of networks."""

from pathlib import Path

import pytest

from dovetail.runtime.module import Module
from dovetail.runtime.profile.profile import Profile

from .browser import profile_of, profiled


@pytest.fixture(scope="module")
def digits(digits_model: Path) -> Profile:
    """A run of the digits network on tiny."""
    return profiled("digits", digits_model, "vta:tiny")


@pytest.fixture(scope="module")
def resnet8(shared_models: Path) -> Profile:
    """A run of ResNet-8 on zynq7020."""
    path = shared_models / "mlperf_tiny" / "ic_resnet8_int8.onnx"
    return profiled("resnet8", path, "vta:zynq7020")


@pytest.fixture(scope="session")
def resnet18(resnet18_module: Module) -> Profile:
    """A run of it on zynq7020."""
    return profile_of("resnet18", resnet18_module)
