"""``dovetail quantize`` and ``dovetail convert`` of files that are not ONNX."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.onnx.quantize import float_model, quantize_model
from dovetail.compiler.front.onnx.source import SourceModel
from tests.compiler.cli.commands import invoke, refused
from tests.compiler.front.torch.mutate import FILES

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

from tests.compiler.front.tflite.cases import cases
from tests.compiler.front.tflite.metadata import metadata
from tests.compiler.front.tflite.networks import mobile_net

PICTURES, COUNTER, QUANTISED, WORDS = (
    next(path for path in FILES if path.stem == name)
    for name in ("pictures", "counter", "quantised", "words")
)


def test_a_float_tflite_model_runs_on_the_accelerator_whole(tmp_path: Path) -> None:
    (tmp_path / "float.tflite").write_bytes(mobile_net())
    images = np.random.default_rng(8).random((6, 16, 16, 3), np.float32)
    np.save(tmp_path / "images.npy", images)
    out = tmp_path / "int8.onnx"
    arguments = ("--data", tmp_path / "images.npy", "--compare", "--target", "vta:zynq7020")
    done = invoke("quantize", tmp_path / "float.tflite", "-o", out, *arguments, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["float"] == {}
    assert found["integer"]["Conv"] == 8
    assert found["cost"]["cpu"] == 0
    assert found["cost"]["parts"] == 1
    assert found["comparison"]["outputs"]["mean"] < 0.05
    assert [each.name for each in onnx.load(out).graph.output] == ["shares", "mean"]


def test_pictures_are_prepared_as_the_model_says(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="no Pillow")
    content = mobile_net(metadata=metadata([120.0, 110.0, 100.0], [60.0]))
    (tmp_path / "float.tflite").write_bytes(content)
    (tmp_path / "pictures").mkdir()
    pixels = np.random.default_rng(8).integers(0, 256, (4, 16, 16, 3), np.uint8)
    for number, each in enumerate(pixels):
        image.fromarray(each).save(tmp_path / "pictures" / f"{number}.png")
    values = (pixels.astype(np.float64) - [120, 110, 100]) / 60
    np.save(tmp_path / "values.npy", values.astype(np.float32))
    made = {}
    for name, data in {
        "pictures": ("pictures",),
        "values": ("values.npy",),
        "other": ("pictures", "--mean", "0.5"),
    }.items():
        out = tmp_path / f"{name}.onnx"
        arguments = ("-o", out, "--data", tmp_path / data[0], *data[1:])
        done = invoke("quantize", tmp_path / "float.tflite", *arguments)
        assert done.exit_code == 0, done.output
        made[name] = out.read_bytes()
        told = "pictures are less 120, 110, 100, and divided by 60" in done.stderr
        assert told == (name == "pictures")
    assert made["pictures"] == made["values"] != made["other"]


def test_a_program_of_torch_is_quantised(tmp_path: Path) -> None:
    with np.load(PICTURES.with_suffix(".npz")) as archive:
        np.save(tmp_path / "x.npy", archive["input0"])
    arguments = ("-o", tmp_path / "int8.onnx", "--data", tmp_path / "x.npy", "--compare")
    done = invoke("quantize", PICTURES, *arguments, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["integer"]["Conv"] == 3
    assert max(found["comparison"]["outputs"].values()) < 0.05


def test_models_that_are_not_float_are_refused(tmp_path: Path) -> None:
    case = next(each for each in cases("products") if each.dtype == "int8")
    (tmp_path / "int8.tflite").write_bytes(case.content)
    np.save(tmp_path / "x.npy", case.inputs[0])
    rest = ("-o", tmp_path / "out.onnx", "--data", tmp_path / "x.npy")
    for model in (tmp_path / "int8.tflite", QUANTISED):
        refused(invoke("quantize", model, *rest), "the model is quantised already")
    refused(invoke("quantize", WORDS, *rest), "for input 'tokens'; required [2, 8]")
    refused(invoke("quantize", COUNTER, *rest, "--dim", "n=3"), "no input has a dimension 'n'")
    refused(invoke("convert", tmp_path / "int8.tflite", "-o", tmp_path / "y.onnx"), "as it is")


PLAIN = '<ir_version: 8, opset_import: ["": 17{}]> m (float[1, 2, 6, 6] x, float[3, 2, 1, 1] w) '
CALLED = """ <domain: "l", opset_import: ["": 17]>
f (x, w) => (y) { c = Conv (x, w) y = Relu (c) }"""
BRANCH = """k = Constant <value = bool {1}> () c = Conv (x, w) y = If (k)
<then_branch = a () => (float[1, 3, 6, 6] t) { t = Relu (c) },
else_branch = b () => (float[1, 3, 6, 6] e) { e = Neg (c) }>"""
LOOP = """=> (float[n] y) { n = Constant <value = int64 {3}> () c = Conv (x, w) p = Loop (n, , c)
<body = a (int64 i, bool go, float[1, 3, 6, 6] s) => (bool on, float[1, 3, 6, 6] t)
{ on = Identity (go) d = Sub (c, s) f = Cast <to = 1> (i) t = Add (d, f) }> y = Conv (p, v) }"""
UNUSUAL = {
    "function": PLAIN.format(', "l": 1') + "=> (float[n] y) { y = l.f (x, w) }" + CALLED,
    "body": PLAIN.format("") + f"=> (float[n] y) {{ {BRANCH} }}",
    "domain": PLAIN.format(', "com.microsoft": 1')
    + "=> (float[n] y) { c = Conv (x, w) y = com.microsoft.Gelu (c) }",
    "old": PLAIN.format("").replace("17", "7").replace("ir_version: 8", "ir_version: 3")
    + "=> (float[n] y) { c = Conv (x, w) y = Upsample <scales = [1., 1., 2., 2.]> (c) }",
}


def weighed(text: str) -> onnx.ModelProto:
    """The model with its weights, which old models need not have as inputs in ONNX Runtime."""
    model = onnx.parser.parse_model(text)
    for seed, each in enumerate(model.graph.input[1:]):
        shape = [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        weights = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, each.name))
    del model.graph.input[1:]
    return model


X = {"x": np.random.default_rng(5).normal(size=(1, 2, 6, 6)).astype(np.float32)}


def check_near(model: onnx.ModelProto, quantized: onnx.ModelProto) -> None:
    """By ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    # Without it, sums of bytes saturate on x86 that has no VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    (wanted,), (found,) = (
        onnxruntime.InferenceSession(each.SerializeToString(), options).run(None, X)
        for each in (model, quantized)
    )
    assert 0 < np.abs(found - wanted).max() < 0.03 * np.abs(wanted).max()


@pytest.mark.parametrize("name", UNUSUAL)
def test_functions_bodies_and_old_operators_are_written_anew(name: str) -> None:
    model = weighed(UNUSUAL[name])
    done = quantize_model(model, [X])
    assert done.integer["Conv"] == 1
    again = quantize_model(float_model(SourceModel(model)), [X])
    assert (again.model.graph.node, again.integer) == (done.model.graph.node, done.integer)
    check_near(model, done.model)


def test_a_loop_stays_float_between_integer_layers() -> None:
    model = weighed(PLAIN.replace(" w) ", " w, float[2, 3, 1, 1] v) ").format("") + LOOP)
    done = quantize_model(model, [X])
    assert (done.integer, done.kept) == ({"Conv": 2}, (("node 'p' (Loop)", "loops stay float"),))
    check_near(model, done.model)


def test_a_malformed_model_is_refused_as_by_compile() -> None:
    model = onnx.parser.parse_model(
        PLAIN.format("") + "=> (float[n] y) { c = Conv (x, w) y = Add (c, w) }"
    )
    with pytest.raises(ModelError, match=r"node 'y' \(Add\): .* shapes that broadcast"):
        float_model(SourceModel(model))


def test_a_model_of_tokens_becomes_integer(tmp_path: Path) -> None:
    tokens = np.random.default_rng(3).integers(0, 5, (6, 2, 8))
    np.save(tmp_path / "tokens.npy", tokens)
    out = tmp_path / "words.onnx"
    done = invoke("quantize", WORDS, "-o", out, "--data", tmp_path / "tokens.npy", "--json")
    assert done.exit_code == 0, done.output
    kept = json.loads(done.stdout)["float"]
    assert [name.split("(")[1] for name in kept] == ["Max)", "Min)", "ArgMax)"]
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(out.read_bytes(), options)
    (places,) = session.run(None, {"tokens": tokens[0]})
    assert places.dtype == np.int64
    assert places.shape == (2, 8)


def test_a_converted_model_has_the_sizes_that_are_given(tmp_path: Path) -> None:
    out = tmp_path / "counter.onnx"
    done = invoke("convert", COUNTER, "-o", out, "--dim", "s77=3", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["inputs"], found["opset"]) == (["x", "count"], 21)
    assert found["outputs"] == ["mul", "mul_1", "count.updated"]
    sizes = onnx.load(out).graph.input[0].type.tensor_type.shape.dim
    assert [each.dim_value for each in sizes] == [3, 6]
