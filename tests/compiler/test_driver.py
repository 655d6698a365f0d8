"""The driver: targets, options, what a module says, and the errors of bad input."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dovetail.compiler import CompileOptions, compile
from dovetail.compiler.errors import (
    ModelError,
    OptionError,
    TargetError,
    UnsupportedOperatorError,
)
from dovetail.compiler.options import CompileOptions as Options
from dovetail.compiler.targets.table import find_target
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.runtime import Module, run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.errors import DeviceError
from tests.end_to_end.models import Network, random_network

STEPS = (
    *("import", "partition", "integer_layers", "fold_constants", "convert_layout"),
    *("split_transposed", "fold_pads", "fold_lookups", "eliminate_dead"),
    *("fixed_averages", "real_finishes", "exact_sums", "constant_channels", "raise_transposes"),
    *("across_channels", "split_bands", "drop_taps", "pad_pixels"),
    "long_windows",
    *("shared_heads", "cached_attention", "differences", "split_products"),
    *("turned_rows", "grouped_rows", "rows_to_pixels", "channel_tables"),
    *("dense_to_conv", "move_pixels", "head_lanes", "shared_rows"),
    *(
        "own_channels",
        "split_groups",
        "two_halves",
        "own_rows",
        "own_parts",
        "align_channels",
        "select_channels",
        "own_operands",
    ),
    "own_borders",
    *(
        "narrow_limits",
        "eliminate_dead",
        "fuse",
        "lower",
        "schedule",
        "place",
        "operations",
        "order",
        "tokens",
    ),
    "check",
)


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    net = Network(np.random.default_rng(1))
    x = net.conv(net.input(3, 8, 8), 6, pads=(1, 1, 1, 1), activation="Relu")
    return net.model(net.dense(net.global_average(x), 4))


def float_model() -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 4, 4])]
    node = helper.make_node("Relu", ["x"], ["y"], name="act")
    return helper.make_model(helper.make_graph([node], "g", inputs, outputs))


@pytest.mark.parametrize("config", CONFIGS)
def test_a_module_says_what_it_is_for(model: onnx.ModelProto, config: str) -> None:
    module = compile(model, f"vta:{config}")
    assert module.target == f"vta:{config}"
    assert accelerator_part(module).configuration == find_config(config)
    (signature,) = module.inputs
    assert (signature.name, signature.shape, signature.dtype) == ("x", (1, 3, 8, 8), "int8")
    assert module.outputs[0].shape == (1, 4)


def test_a_configuration_of_ones_own_is_a_target(model: onnx.ModelProto) -> None:
    config = replace(find_config("tiny"), name="mine", acc_depth=256, bus_bytes=4, queue_depth=8)
    module = Module.from_bytes(compile(model, config).to_bytes())
    assert module.target == "vta:mine"
    assert accelerator_part(module).configuration == config
    x = np.random.default_rng(0).integers(-128, 128, (1, 3, 8, 8), np.int8)
    found = run(module, x, "sim:mine")
    (wanted,) = run(compile(model, "cpu"), x).outputs.values()
    np.testing.assert_array_equal(next(iter(found.outputs.values())), wanted)
    assert found.cycles == accelerator_part(module).expected_cycles
    with pytest.raises(DeviceError, match="compiled for 'vta:mine' cannot run on 'sim:tiny'"):
        run(module, x, "sim:tiny")


def test_the_default_target_is_the_benchmark_configuration(model: onnx.ModelProto) -> None:
    assert compile(model).target == compile(model, "vta").target == "vta:zynq7020"


def test_compiling_twice_gives_the_same_bytes(model: onnx.ModelProto) -> None:
    assert compile(model).to_bytes() == compile(model).to_bytes()


def test_a_path_is_read(model: onnx.ModelProto, tmp_path: Path) -> None:
    onnx.save(model, tmp_path / "model.onnx")
    module = compile(tmp_path / "model.onnx", "vta:tiny")
    assert module.to_bytes() == compile(model, "vta:tiny").to_bytes()


def test_every_instruction_belongs_to_a_layer_and_layers_add_up(model: onnx.ModelProto) -> None:
    part = accelerator_part(compile(model, "vta:tiny"))
    assert len(part.layer_of) == len(part.program)
    assert set(part.layer_of) == set(range(len(part.layers)))
    assert [layer.kind for layer in part.layers] == [
        *("Conv2d+Requantize", "AveragePool2d", "Conv2d+Requantize")
    ]
    assert [layer.macs for layer in part.layers] == [8 * 8 * 6 * 27, 0, 24]


def test_every_step_is_dumped_in_order(model: onnx.ModelProto, tmp_path: Path) -> None:
    compile(model, "vta:tiny", CompileOptions(dump=tmp_path / "dump", verify=True))
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert names == [f"{number:02d}_{step}.txt" for number, step in enumerate(STEPS)]
    assert (tmp_path / "dump" / names[STEPS.index("order")]).read_text().startswith("load")


@pytest.mark.parametrize("verify", [False, True])
def test_the_program_of_a_cpu_is_verified_where_that_is_asked_for(
    verify: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOVETAIL_VERIFY", raising=False)
    found: list[object] = []
    place = "dovetail.compiler.targets.cpu.segment.verify"
    monkeypatch.setattr(place, lambda program, intrinsics: found.append(program))
    compile(float_model(), "cpu", CompileOptions(verify=verify))
    assert len(found) == verify


def test_the_program_of_a_cpu_is_dumped(tmp_path: Path) -> None:
    compile(float_model(), "cpu", CompileOptions(dump=tmp_path))
    (path,) = tmp_path.glob("*_program.txt")
    assert 'function "kernel0"' in path.read_text()


def test_dumps_do_not_change_the_module(model: onnx.ModelProto, tmp_path: Path) -> None:
    options = CompileOptions(dump=tmp_path, verify=True, time=True)
    assert compile(model, "vta", options).to_bytes() == compile(model).to_bytes()


def test_times_are_printed_to_standard_error(
    model: onnx.ModelProto, capsys: pytest.CaptureFixture[str]
) -> None:
    compile(model, "vta:tiny", CompileOptions(time=True))
    captured = capsys.readouterr()
    assert not captured.out
    assert re.search(r"\d ms  tokens", captured.err)


def test_options_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DOVETAIL_DUMP", "DOVETAIL_VERIFY", "DOVETAIL_TIME"):
        monkeypatch.delenv(name, raising=False)
    assert CompileOptions.from_environment() == CompileOptions()
    monkeypatch.setenv("DOVETAIL_DUMP", "somewhere")
    monkeypatch.setenv("DOVETAIL_VERIFY", "1")
    monkeypatch.setenv("DOVETAIL_TIME", "0")
    assert CompileOptions.from_environment() == Options(dump=Path("somewhere"), verify=True)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("DOVETAIL_OVERLAP", "rows", "nothing, units, tiles, layers"),
        ("DOVETAIL_MOST_WORK", "much", "a number, 0 or more"),
        ("DOVETAIL_MOST_COMPILE_SECONDS", "nan", "a number, 0 or more"),
        ("DOVETAIL_MOST_MEMORY", "-5", "a number, 0 or more"),
    ],
)
def test_what_the_environment_says_wrongly_is_named(
    name: str, value: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(OptionError, match=f"^{name} is '{value}'; required .*{wanted}"):
        CompileOptions.from_environment()


@pytest.mark.parametrize(
    ("wrong", "wanted"),
    [
        ({"effort": -1}, "from 0 to 100"),
        ({"effort": 100.5}, "from 0 to 100"),
        ({"effort": float("nan")}, "from 0 to 100"),
        ({"effort": "1"}, "from 0 to 100"),
        ({"batch": 0}, "from 1 on"),
        ({"batch": 1.5}, "from 1 on"),
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any], wanted: str) -> None:
    assert (Options(effort=0).effort, Options(effort=100, batch=1).batch) == (0, 1)
    with pytest.raises(OptionError, match=wanted):
        Options(**wrong)


@pytest.mark.parametrize("model", [3, None, {"a": 1}, b"no model"])
def test_what_is_not_a_model_is_one_error(model: object) -> None:
    with pytest.raises(ModelError, match=r"not a model; required|not an ONNX model"):
        compile(model)


def test_what_is_not_a_target_is_one_error(model: onnx.ModelProto) -> None:
    with pytest.raises(TargetError, match="int is not a target; required a name"):
        compile(model, cast(Any, 3))


@pytest.mark.parametrize("text", ["gpu", "vta:huge", "vta-tiny", ""])
def test_an_unknown_target_lists_those_there_are(text: str) -> None:
    with pytest.raises(TargetError, match="tiny"):
        find_target(text)


def test_a_float_model_is_refused() -> None:
    with pytest.raises((ModelError, UnsupportedOperatorError), match=r"'act'.* quanti"):
        compile(float_model(), "vta:tiny")


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "noise.onnx"
    path.write_bytes(b"not a model")
    with pytest.raises(ModelError, match="not an ONNX model"):
        compile(path)
    with pytest.raises(ModelError, match="no model file"):
        compile(tmp_path / "absent.onnx")


def test_a_layer_that_does_not_fit_runs_on_the_cpu_and_says_why() -> None:
    net = Network(np.random.default_rng(1))
    wide = net.model(net.conv(net.conv(net.input(3, 14, 14), 3, (1, 1)), 8, (12, 12)))
    conv = compile(wide, "vta:tiny").placement[4]
    assert (conv.operator, conv.where) == ("Conv", "cpu")
    assert re.search("wgt scratchpad: 144 words required .*, 128 available", conv.reason)
    assert all(each.where == "accelerator" for each in compile(wide).placement)


def test_an_input_that_nothing_reads_stays_one_of_the_module() -> None:
    net = Network(np.random.default_rng(1))
    two = net.model(net.conv(net.input(3, 4, 4), 2))
    one = onnx.ModelProto.FromString(two.SerializeToString())
    two.graph.input.append(helper.make_tensor_value_info("z", TensorProto.INT8, [1, 2]))
    module = compile(two, "vta:tiny")
    assert [(each.name, each.dtype) for each in module.inputs] == [("x", "int8"), ("z", "int8")]
    x, z = (np.ones(each.shape, each.dtype) for each in module.inputs)
    (found,) = run(module, {"x": x, "z": z}).outputs.values()
    (alone,) = run(compile(one, "vta:tiny"), {"x": x}).outputs.values()
    np.testing.assert_array_equal(found, alone)


@pytest.mark.parametrize("seed", range(6))
def test_modules_survive_their_file(seed: int, tmp_path: Path) -> None:
    module = compile(random_network(seed), "vta:tiny")
    module.save(tmp_path / "m.dvt")
    loaded = type(module).load(tmp_path / "m.dvt")
    assert loaded.to_bytes() == module.to_bytes()
    assert loaded == module


RESIDUAL = """
import hashlib
import numpy as np
from dovetail.compiler import compile
from tests.end_to_end.models import Network

net = Network(np.random.default_rng(3))
x = net.conv(net.input(3, 8, 8), 6, pads=(1, 1, 1, 1), activation="Relu")
y = net.conv(net.conv(x, 6, pads=(1, 1, 1, 1)), 6, pads=(1, 1, 1, 1))
print(hashlib.sha256(compile(net.model(net.add(y, x)), "vta:tiny").to_bytes()).hexdigest())
"""


def test_a_module_has_the_same_bytes_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", RESIDUAL],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).resolve().parents[2],
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(found) == 1
