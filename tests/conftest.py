"""Settings and fixtures that every test may use."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# The same examples every time, and no time limit: machines differ.
settings.register_profile(
    "dovetail",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("dovetail")


@pytest.fixture(scope="session")
def digits_model() -> Path:
    """The quantised digits network of the repository."""
    return ROOT / "examples" / "digits" / "digits_int8.onnx"


@pytest.fixture(scope="session")
def shared_models() -> Path:
    """The folder of real models beside the repository; skips when it is absent."""
    folder = ROOT.parent / "shared" / "models"
    if not folder.is_dir():
        pytest.skip("no folder ../shared/models")
    return folder
