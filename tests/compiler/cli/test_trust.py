"""The command line: signatures, sandboxes, and the note about code from elsewhere."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from .commands import invoke, refused

NOTE = "holds machine code that you did not compile here"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[4] x) => (float[4] y) { y = Abs (x) }'
    )
    onnx.save(model, "m.onnx")
    np.save("x.npy", np.array([-1, 2, -3, 4], np.float32))
    assert invoke("compile", "m.onnx", "--target", "cpu", "-o", "m.dvt").exit_code == 0
    return tmp_path / "m.dvt"


RUN = ("--device", "cpu", "--input", "x=x.npy")


def test_code_from_elsewhere_is_told_and_ones_own_is_not(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = invoke("run", module, *RUN)
    assert done.exit_code == 0
    assert NOTE not in done.output
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "another"))
    done = invoke("run", module, *RUN)
    assert done.exit_code == 0
    assert " ".join(done.output.split()).count(NOTE) == 1


def test_a_required_signature_is_asked_for(module: Path) -> None:
    pytest.importorskip("cryptography")
    assert invoke("keygen", "mine").exit_code == 0
    required = (*RUN, "--require-signature", "mine.pub")
    refused(invoke("run", module, *required), "is not signed")
    assert invoke("sign", module, "--key", "mine.key").exit_code == 0
    done = invoke("run", module, *required)
    assert done.exit_code == 0
    assert NOTE not in done.output
    refused(invoke("run", "m.onnx", *required), "required a module")


def test_a_sandbox_gives_the_same_outputs(module: Path) -> None:
    pytest.importorskip("pyseccomp")
    done = invoke("run", module, *RUN, "--sandbox")
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(np.load("y.npy"), np.array([1, 2, 3, 4], np.float32))
