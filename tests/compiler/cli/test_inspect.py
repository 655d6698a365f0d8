"""Contents of a file, told without running it."""

import json
from collections import Counter
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from dovetail.runtime.module import Module

from .commands import invoke, refused


@pytest.fixture
def float_model(tmp_path: Path) -> Path:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])
    w = helper.make_tensor("w", TensorProto.FLOAT, [4, 3], [0.5] * 12)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "f", [x], [y], [w])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "f.onnx"
    )
    return tmp_path / "f.onnx"


def test_a_module_is_described(module_file: Path) -> None:
    found = json.loads(invoke("inspect", module_file, "--json").stdout)
    module = Module.load(module_file)
    assert (found["kind"], found["target"]) == ("module", "vta:tiny")
    assert found["inputs"] == [{"name": "image", "shape": [1, 1, 8, 8], "dtype": "float32"}]
    assert found["outputs"] == [{"name": "logits", "shape": [1, 10], "dtype": "float32"}]
    assert found["bytes"] == module_file.stat().st_size
    assert found["macs_on_accelerator"] == 1.0
    assert (found["signed_by"], found["holds_machine_code"]) == (None, False)
    (part,) = found["parts"]
    assert (part["macs"], part["layers"], part["macs_per_cycle"]) == (609_856, 9, 16)
    assert part["bytes"] < found["bytes"]
    assert found["operators"] == Counter(each.operator for each in module.placement)
    said = invoke("inspect", module_file)
    assert said.stdout == ""
    assert "100.0% of the MACs on the accelerator" in said.stderr
    assert "not signed; compiled here; holds data only" in said.stderr


def test_a_model_is_described_with_what_the_target_would_run(digits_model: Path) -> None:
    found = json.loads(invoke("inspect", digits_model, "--target", "vta:tiny", "--json").stdout)
    nodes = onnx.load(digits_model).graph.node
    assert found["operators"] == Counter(node.op_type for node in nodes)
    assert (found["kind"], found["quantised"], found["problem"]) == ("model", True, None)
    assert (found["macs_on_accelerator"], found["parts"]) == (1.0, [{"target": "vta:tiny"}])


def test_a_float_model_is_told_to_be_quantised(float_model: Path, tmp_path: Path) -> None:
    found = json.loads(invoke("inspect", float_model, "--json").stdout)
    assert found["inputs"][0]["shape"] == [None, 4]
    assert (found["parameters"], found["macs_on_accelerator"]) == (12, None)
    assert "dovetail quantize MODEL --data INPUTS" in found["problem"]
    done = invoke("compile", float_model, "--target", "vta:tiny", "-o", tmp_path / "f.dvt")
    refused(done, "quantise the model first, with dovetail quantize")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("x.dvt", "it is a compiled module: dovetail run or dovetail inspect takes it"),
    ],
)
def test_files_of_other_kinds_come_with_advice(name: str, advice: str, tmp_path: Path) -> None:
    for content in (b"", b"\x1c\x00\x00\x00TFL3"):
        (tmp_path / name).write_bytes(content)
        done = invoke("compile", tmp_path / name, "-o", tmp_path / "out.dvt")
        refused(done, f"{name} is not an ONNX model; ")
        refused(done, advice)


def test_a_signature_is_shown_and_checked(module_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="needs the extra sign")
    path = tmp_path / "signed.dvt"
    path.write_bytes(module_file.read_bytes())
    for name in ("mine", "other"):
        assert invoke("keygen", tmp_path / name).exit_code == 0
    assert invoke("sign", path, "--key", tmp_path / "mine.key").exit_code == 0
    signer = json.loads(invoke("inspect", path, "--json").stdout)["signed_by"]
    assert len(bytes.fromhex(signer)) == 32
    said = invoke("inspect", path).stderr
    assert f"signed by key {signer[:16]}..., not checked" in said
    assert "checked with" in invoke("inspect", path, "--key", tmp_path / "mine.pub").stderr
    wrong = invoke("inspect", path, "--key", tmp_path / "other.pub")
    refused(wrong, "is signed by another key")


def test_shells_complete_the_words_of_the_command() -> None:
    for shell in ("bash", "zsh", "fish"):
        script = invoke("completion", shell)
        assert script.exit_code == 0
        assert f"_DOVETAIL_COMPLETE={shell}_complete" in script.stdout
    refused(invoke("completion", "csh"), "'csh' is not one of 'bash', 'zsh', 'fish'", 2)
