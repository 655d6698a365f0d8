"""Every command gives one JSON object, shows on a terminal that it is at work, and says the same
in words: all that is no time of this machine is kept."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.__main__ import main
from dovetail.compiler.cli.output import human
from dovetail.compiler.front.onnx.quantize import quantize_model
from tests.kept import check_kept
from tests.runtime.generate.step_models import step_model

from .commands import PROGRAM, invoke

KEPT = Path(__file__).with_name("kept_words.json")
MEASURED = {"benchmark", "devices", "tune"}
"""Commands that say little that does not depend on the machine."""
LONG = {"completion", "config manual", "config show"}
"""Commands that write texts, which are tested where they are made."""
AT_ONCE = {"assemble", "disassemble", "completion", "keygen", "sign"}
AT_ONCE |= {"config check", "config manual", "config new", "config show"}
"""Commands that take no two seconds of anything."""


def commands(group: click.Group, *before: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        else:
            yield " ".join((*before, name))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a float model of one convolution, a quantised one with its module, and a module
    of a language model.
    """
    folder = tmp_path_factory.mktemp("models")
    weights = numpy_helper.from_array(np.ones((2, 3, 1, 1), np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size, 4, 4])
        for name, size in (("x", 3), ("y", 2))
    ]
    graph = helper.make_graph([node], "float", tensors[:1], tensors[1:], [weights])
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    x = np.random.default_rng(1).random((1, 3, 4, 4), np.float32)
    np.save(folder / "x.npy", x)
    onnx.save(model, folder / "float.onnx")
    onnx.save(quantize_model(model, [{"x": x}]).model, folder / "int8.onnx")
    compile(folder / "int8.onnx", "vta:tiny").save(folder / "int8.dvt")
    compile(step_model("row"), "cpu").save(folder / "step.dvt")
    return folder


@pytest.fixture
def folder(tmp_path: Path, models: Path) -> Path:
    """With files for the commands to work on."""
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    (tmp_path / "program.s").write_text(PROGRAM)
    (tmp_path / "own.toml").write_text('base = "tiny"')
    (tmp_path / "space.toml").write_text('[base]\nconfig = "tiny"\n[hardware]\nblock = [4]\n')
    (tmp_path / "zynq.toml").write_text('base = "zynq7020"\nblock = 8\n')
    return tmp_path


CASES = {
    "assemble": "program.s -o p.bin",
    "benchmark": "int8.onnx --devices sim --target vta:tiny --rounds 1",
    "bitstream": "--board arty-z7-20 --config zynq.toml -o new/board",
    "check": "int8.onnx",
    "compile": "int8.onnx --target vta:tiny -o new.dvt",
    "completion": "bash",
    "config check": "own.toml",
    "config manual": "own.toml",
    "config new": "new.toml --base tiny",
    "config show": "tiny",
    "convert": "float.onnx -o again.onnx",
    "debug": "int8.dvt -c where",
    "devices": "",
    "disassemble": "int8.dvt",
    "explore": "int8.onnx --space space.toml -o new/sweep --jobs 1",
    "export c": "int8.onnx -o new/c",
    "export metal": "int8.onnx -o new/metal",
    "export web": "int8.onnx -o new/web",
    "generate": "step.dvt --prompt a --steps 2",
    "inspect": "int8.dvt",
    "keygen": "own",
    "profile": "int8.dvt",
    "quantize": "float.onnx -o quantised.onnx --data x.npy",
    "run": "int8.dvt --input x=x.npy --output-dir new/out",
    "sign": "int8.dvt --key own.key",
    "tune": "float.onnx -o tuned --trials 1 --jobs 1",
    "validate": "int8.dvt int8.onnx",
    "verilog": "--config tiny -o tiny.v",
}


MADE = {"config new": ("new.toml",), "keygen": ("own.key", "own.pub")}
"""Files that commands do not replace."""
VARIES = re.compile(
    r'(?<=seconds": )[\d.e-]+|(?<=second": )[\d.e-]+|(?<=known": )\d+|\d+(?= of them known)'
    r"|(?<=seconds )[\d.e-]+|[\d,.]+(?= tokens a second)|[0-9a-f]{64}"
)
"""Times, keys, and what earlier runs leave in the cache."""
LONG_NUMBERS = re.compile(r"\d+\.\d{13,}")
"""Another CPU may round their last digits otherwise."""


def test_every_command_is_tried_here() -> None:
    assert set(CASES) == set(commands(main))


@pytest.mark.parametrize("name", CASES)
def test_a_command_gives_one_object_shows_its_progress_and_says_the_same_in_words(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[object] = []

    class Watched:
        """Stands for the line on the terminal."""

        def __init__(self, *columns: object, disable: bool = False, **options: object) -> None:
            self.disabled = disable

        def add_task(self, text: str, **options: object) -> int:
            if not self.disabled:
                shown.append(text)
            return 0

        def update(self, line: int, **values: object) -> None:
            pass

        def __enter__(self) -> "Watched":
            return self

        def __exit__(self, *error: object) -> None:
            pass

    monkeypatch.setattr("rich.progress.Progress", Watched)
    monkeypatch.setattr(human, "_force_terminal", True)
    # What takes long to generate is tested where it is made.
    monkeypatch.setattr("dovetail.bitstreams.zynq_archive.make_archive", lambda board: b"project")
    monkeypatch.setattr("dovetail.vta_hw.verilog.emit_verilog", lambda config: "module m;\n")
    monkeypatch.chdir(folder)
    if name == "sign":
        assert invoke("keygen", "own").exit_code == 0
    done = invoke(*name.split(), *CASES[name].split(), "--json")
    assert done.exit_code == 0, done.output
    found: Any = json.loads(done.stdout)
    assert isinstance(found, dict)
    assert found
    assert bool(shown) == (name not in AT_ONCE)
    if name in MEASURED | LONG:
        return
    monkeypatch.setattr(human, "_force_terminal", False)
    for made in MADE.get(name, ()):
        (folder / made).unlink()
    words = invoke(*name.split(), *CASES[name].split())
    assert words.exit_code == 0, words.output
    text = "\n".join((*map(str, shown), json.dumps(found, indent=1), words.stdout, words.stderr))
    text = LONG_NUMBERS.sub(lambda found: f"{float(found[0]):.12g}", text)
    check_kept(KEPT, name, VARIES.sub("#", re.sub("[ ━─│]{2,}", " ", text)).splitlines())
