"""Exported folders: a page that runs a model in the browser, by WebGPU."""

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dovetail.compiler import compile
from dovetail.compiler.cli.export.folder import FILES
from dovetail.runtime.session import Session

from ..targets.gpu.browser import opened, run_page
from .commands import invoke


def exported(model: Path, folder: Path) -> None:
    done = invoke("export", "web", model, "-o", folder)
    assert done.exit_code == 0, done.output
    assert {each.name for each in folder.iterdir()} == set(FILES)


def compare(page: Any, session: Session, inputs: dict[str, Any], atol: float = 0) -> None:
    """The page gives the session's outputs."""
    found, expected = run_page(page, inputs), session.run(inputs).outputs
    assert found.keys() == expected.keys()
    for name, want in expected.items():
        array = np.frombuffer(found[name], want.dtype).reshape(want.shape)
        np.testing.assert_allclose(array, want, rtol=atol, atol=atol)


def test_digits_in_a_browser_gives_the_bytes_of_the_cpu(
    digits_model: Path, browser: Any, tmp_path: Path
) -> None:
    exported(digits_model, tmp_path / "web")
    session = Session(compile(digits_model, "cpu"))
    rng = np.random.default_rng(5)
    with opened(browser, tmp_path / "web") as page:
        for _ in range(3):
            compare(page, session, {"image": rng.random((1, 1, 8, 8), np.float32)})
        message = page.evaluate("() => model.run({image: [1, 2]}).catch(error => error.message)")
        assert message == "input image: 2 numbers; required 64, float32 of shape [1,1,8,8]"


def test_a_file_of_numbers_and_a_picture_are_shown_with_their_outputs(
    digits_model: Path, browser: Any, tmp_path: Path
) -> None:
    image_module = pytest.importorskip("PIL.Image", reason="needs Pillow")
    exported(digits_model, tmp_path / "web")
    pixels = np.random.default_rng(6).integers(0, 256, (8, 8), np.uint8)
    numbers = pixels.astype(np.float32) / 255
    (expected,) = Session(compile(digits_model, "cpu")).run(None, numbers.reshape(1, 1, 8, 8))
    want = sorted(expected.reshape(-1).tolist(), reverse=True)
    kept = io.BytesIO()
    image_module.fromarray(pixels).save(kept, "PNG")
    texts = {
        ("x.txt", "text/plain"): " ".join(map(str, numbers.reshape(-1).tolist())).encode(),
        ("x.png", "image/png"): kept.getvalue(),
    }
    with opened(browser, tmp_path / "web") as page:
        for (name, kind), content in texts.items():
            page.set_input_files("input", {"name": name, "mimeType": kind, "buffer": content})
            page.evaluate("() => byId('state').textContent = ''")
            page.click("button")
            page.wait_for_function("/ ms$/.test(document.getElementById('state').textContent)")
            shown = page.locator("td:last-child").all_text_contents()
            np.testing.assert_allclose(np.array(shown, float), want, rtol=1e-5, err_msg=name)


def test_a_loop_that_ends_by_its_condition_runs_in_a_browser(browser: Any, tmp_path: Path) -> None:
    """x doubles while it is less than 100: the condition is read back after every iteration."""
    two = helper.make_tensor("two", TensorProto.FLOAT, [], [2])
    hundred = helper.make_tensor("hundred", TensorProto.FLOAT, [], [100])
    nodes = [
        helper.make_node("Mul", ["v", "two"], ["w"]),
        helper.make_node("Less", ["w", "hundred"], ["again"]),
    ]
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        nodes,
        "body",
        [
            info("i", TensorProto.INT64, []),
            info("c", TensorProto.BOOL, []),
            info("v", TensorProto.FLOAT, []),
        ],
        [info("again", TensorProto.BOOL, []), info("w", TensorProto.FLOAT, [])],
        [two, hundred],
    )
    loop = helper.make_node("Loop", ["", "", "x"], ["y"], body=body)
    graph = helper.make_graph(
        [loop], "g", [info("x", TensorProto.FLOAT, [])], [info("y", TensorProto.FLOAT, [])]
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx"
    )
    exported(tmp_path / "m.onnx", tmp_path / "web")
    steps = json.loads((tmp_path / "web" / "manifest.json").read_text())["steps"]
    assert any("condition" in step for step in steps)
    with opened(browser, tmp_path / "web") as page:
        assert run_page(page, {"x": np.float32(3)}) == {"y": np.float32(192).tobytes()}


@pytest.mark.skipif("SLOW_WEB" not in os.environ, reason="make web: compiles for ten seconds")
@pytest.mark.parametrize("name", ["ic_resnet8_int8", "ic_resnet8_fp32"])
def test_resnet8_in_a_browser_gives_the_answers_of_the_cpu(
    name: str, shared_models: Path, browser: Any, tmp_path: Path
) -> None:
    model = shared_models / "mlperf_tiny" / f"{name}.onnx"
    exported(model, tmp_path / "web")
    session = Session(compile(model, "cpu"))
    rng = np.random.default_rng(5)
    manifest = json.loads((tmp_path / "web" / "manifest.json").read_text())
    with opened(browser, tmp_path / "web") as page:
        for _ in range(12):
            inputs = {}
            for each in manifest["inputs"]:
                shape = each["shape"]
                whole = each["dtype"] == "int8"
                values = rng.integers(-128, 128, shape) if whole else rng.random(shape)
                inputs[each["name"]] = values.astype(each["dtype"])
            compare(page, session, inputs, 0 if name.endswith("int8") else 1e-5)
