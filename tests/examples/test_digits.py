"""The digits example: the shipped model is as good as its page says, and the demonstration runs."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import onnxruntime
import pytest

from dovetail import compiler
from dovetail.runtime import run

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def data() -> ModuleType:
    """The example's ``data`` module, which is not part of the package."""
    return imported("data")


def imported(name: str) -> ModuleType:
    """A module of the example's folder."""
    spec = importlib.util.spec_from_file_location(f"digits_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_split_is_fixed_and_disjoint(data: ModuleType) -> None:
    digits = data.load()
    assert digits.train_images.shape == (1257, 8, 8, 1)
    assert digits.test_images.shape == (540, 8, 8, 1)
    counts = np.bincount(digits.test_labels)
    assert counts.min() >= 52
    assert counts.max() <= 56
    again = data.load()
    np.testing.assert_array_equal(digits.test_images, again.test_images)


def test_the_model_reaches_its_accuracy_byte_for_byte_like_onnxruntime(
    data: ModuleType, digits_model: Path
) -> None:
    digits = data.load()
    images = np.ascontiguousarray(digits.test_images.transpose(0, 3, 1, 2))
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(
        digits_model, options, providers=["CPUExecutionProvider"]
    )
    expected = np.concatenate([session.run(None, {"image": image[None]})[0] for image in images])
    module = compiler.compile(digits_model, target="cpu")
    results = [run(module, {"image": image[None]}, device="cpu") for image in images]
    found = np.concatenate([result.outputs["logits"] for result in results])
    np.testing.assert_array_equal(found, expected)
    accuracy = (found.argmax(axis=1) == digits.test_labels).mean()
    assert accuracy >= 0.97
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{accuracy:.2%}".replace("%", " %") in page


def test_the_demonstration_runs_on_simulator_and_rtl(
    data: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # In this process, whose simulations of RTL are shared and compiled quickly.
    monkeypatch.setitem(sys.modules, "data", data)
    monkeypatch.setattr(sys, "argv", ["demo.py", "--config", "tiny", "--rtl-images", "2"])
    demo = imported("demo")
    code = demo.main()
    said = capsys.readouterr()
    assert code == 0, said.out + said.err
    accuracy = re.search(r"accuracy on the test split: ([\d.]+)%", said.out)
    assert accuracy is not None
    assert float(accuracy.group(1)) >= 97
    cycles = re.search(r"cycles: simulator ([\d,]+), RTL ([\d,]+)", said.out)
    assert cycles is not None
    assert cycles.group(1) == cycles.group(2)
    assert "equal to the graph interpreter: 540 of 540" in said.out
