"""The commands and snippets of README.md and the pages of docs/ run, on a small model.

Guides run whole, in ``test_guides``.  ``NOT_RUN`` and ``SLOW`` list what does not, with reasons.
"""

import os
import re
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.explore.space import load_space
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.compiler.loops.parse import parse
from dovetail.runtime.module import Module
from tests.once import made_once

from .page import Block, blocks_of, run_block

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page
    for page in (
        *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
        *sorted(ROOT.glob("docs/*.md")),
        *sorted(ROOT.glob("examples/*/README.md")),
    )
    if blocks_of(page)
]
NOT_RUN = {
    "make demo": "tests/examples runs the demonstration",
    "make test": "it would run itself",
    "pip install": "the environment has all extras",
    "dovetail bitstream": "synthesis, placement and routing take a quarter of an hour",
    "openFPGALoader": "needs a board",
    "dovetail run model.dvt --device board": "needs a board",
    "from dovetail.bitstreams.boards import find_board": "tests/bitstreams emulates boards",
    "dovetail profile model_int8.onnx --target vta:tiny --records": "takes what tuning.md finds",
    'with dovetail.Session("model.dvt", device="cuda")': "needs a GPU; tests/runtime/gpu has none",
    "module = dovetail.compile(model.eval()": "needs torch; tests/compiler/dynamo has it",
    "import torch": "as well",
    "dovetail quantize decoder.onnx": "as well; tests/compiler/front/onnx/quantize/test_command.py",
    "dovetail generate": "needs a language model; tests/compiler/cli/test_generate.py has one",
    "dovetail compile model_int8.onnx --tokens": "as well",
    "with dovetail.Generator(": "as well; tests/runtime/generate",
    "dovetail compile model.pt2": "tests/compiler/cli/test_torch.py runs it",
    "dovetail run model.dvt --input x=picture": "as well",
    "schedule = (": "tests/compiler/targets/cpu/llvm/test_schedules.py has this schedule",
}
"""Beginnings of commands and of Python blocks, and why they are not run here."""
SLOW = {
    "dovetail run model.dvt --device rtl": "building the RTL takes a minute",
    "dovetail debug model.dvt --device rtl": "as well, with waveforms",
    "dovetail tune": "searches",
    "dovetail compile model.onnx --target cpu --records build": "takes what a search found",
    "dovetail benchmark": "many rounds of processes",
    "python -m examples.networks resnet18": "a large network",
    "dovetail quantize resnet18": "as well",
    "dovetail profile resnet18": "as well",
}
"""Commands that only ``make snippets`` runs, with the reason."""
if not os.environ.get("SLOW_SNIPPETS"):
    NOT_RUN |= SLOW
SMALLER = (
    ("vta:zynq7020", "vta:tiny"),
    ('device="rtl"', 'device="sim"'),
    ("--minutes 10", "--minutes 0.1"),
    ("-o build/plans", "-o build/plans --minutes 0.1"),
    ("networks resnet18", "networks resnet18 --size 32 --width 0.125"),
    ("explore resnet8_int8.onnx vww_int8.onnx", "explore model_int8.onnx"),
    ("--space examples/explore/space.toml", "--space space.toml"),
    ('Path("resnet8_int8.onnx")', 'Path("model_int8.onnx")'),
    (" --dim batch=1", ""),
    ("--around 90", "--around 9"),
    ("window.fst", "window.vcd"),
)
"""Small things stand for large ones: the smallest accelerator, seconds for minutes."""
LANGUAGES = {"sh", "python", "text", "toml", ""}


def float_model() -> onnx.ModelProto:
    """Three convolutions and a dense layer on images of 8x8."""
    rng = np.random.default_rng(1)
    shapes = {"w1": (4, 1, 3, 3), "w2": (4, 4, 3, 3), "w3": (4, 4, 3, 3), "w4": (256, 10)}
    constants = [
        numpy_helper.from_array(rng.normal(scale=0.3, size=shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    names = ["image", "conv1", "conv2", "conv3"]
    nodes = [
        helper.make_node("Conv", [source, f"w{n}"], [name], name, pads=[1, 1, 1, 1])
        for n, (source, name) in enumerate(pairwise(names), 1)
    ]
    nodes += [
        helper.make_node("Flatten", ["conv3"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w4"], ["logits"], "dense"),
    ]
    x = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])
    graph = helper.make_graph(nodes, "small", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def write_files(folder: Path) -> None:
    """Write the files that the pages speak of."""
    folder.mkdir()
    images = np.random.default_rng(2).random((4, 1, 1, 8, 8), np.float32)
    model = float_model()
    onnx.save(model, folder / "model.onnx")
    whole = quantize_model(model, [{"image": image} for image in images]).model
    onnx.save(whole, folder / "model_int8.onnx")
    np.savez(folder / "pictures.npz", image=images[:, 0])
    np.savez(folder / "images.npz", image=images[:, 0])
    np.save(folder / "image.npy", images[0])
    np.save(folder / "labels.npy", np.arange(4))
    for name in ("model.dvt", "other.dvt"):
        compile(whole, "vta:tiny").save(folder / name)
    (folder / "space.toml").write_text('[base]\nconfig = "tiny"\n[hardware]\nqueue_depth = [4]\n')


@pytest.fixture
def files(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder with those files, which is the current one."""
    made = made_once(tmp_path_factory, "snippets", write_files)
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return tmp_path


def names_of(page: str) -> dict[str, Any]:
    """Names that snippets of a page use without defining them."""
    image = np.load("image.npy")
    given: dict[str, Any] = {"__name__": "__main__", "image": image, "Path": Path}
    given["images"] = np.load("images.npz")["image"]
    if page == "debug.md":
        given["module"] = Module.load(Path("model.dvt"))
    if page == "cpu.md":
        text = (ROOT / "docs" / "loops.md").read_text(encoding="utf-8")
        found = re.search(r'```\n(function "softmax".*?)```', text, re.DOTALL)
        assert found is not None
        given |= {"function": parse(found[1]), "x": np.ones((4, 10), np.float32)}
    return given


def skipped(code: str) -> bool:
    return any(code.startswith(beginning) for beginning in NOT_RUN)


def smaller(code: str) -> str:
    for large, small in SMALLER:
        code = code.replace(large, small)
    return code


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_snippets_run(page: Path, files: Path) -> None:
    names = names_of(page.name)
    if page.name == "benchmarks.md":
        Path("mine.toml").write_text('base = "tiny"\n')
    for block in blocks_of(page):
        text = smaller(block.text)
        if block.language == "toml":
            tomllib.loads(text)
            Path("parsed.toml").write_text(text)
            load_space(Path("parsed.toml"))
        elif block.language == "python" and not skipped(text):
            run_block(Block("python", text, block.line), page, names)
        elif block.language == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                if line.strip() and not skipped(line):
                    run_block(Block("sh", line, block.line), page, names)


def test_every_reason_belongs_to_something() -> None:
    codes = [
        code
        for page in PAGES
        for block in blocks_of(page)
        for code in (smaller(block.text).splitlines() if block.language == "sh" else [block.text])
    ]
    for beginning in NOT_RUN | SLOW:
        assert any(code.startswith(beginning) for code in codes), beginning


def test_every_block_of_commands_says_its_language() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        text = page.read_text(encoding="utf-8")
        for language, code in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            assert language in LANGUAGES | {"diff", "eval-rst", "toctree", "none"}, page
            assert language or not re.match(r"(dovetail|make|pip|python|import|from) ", code), page
