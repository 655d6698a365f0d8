"""Commands that need an optional package say so, and name an extra that brings it."""

import multiprocessing
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from dovetail.bitstreams.platforms import platform_files
from dovetail.compiler.front.table import open_model
from dovetail.compiler.targets.table import find_target
from dovetail.isa.errors import DovetailError
from dovetail.runtime.devices import DEVICES, open_device
from dovetail.runtime.generate.hugging_face import HuggingFace
from dovetail.runtime.trust.signature import make_keys
from dovetail.vta_hw.build import verilator_directory

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
DISTRIBUTIONS = {"serial": "pyserial"}
"""Names under which packages are installed, where they differ from the import."""


def board(folder: Path) -> object:
    return platform_files(("amaranth_boards.ulx3s", "ULX3S_85F_Platform"), None, "top")


CASES: tuple[tuple[str, str, Callable[[Path], object]], ...] = (
    ("verilator", "", lambda folder: verilator_directory()),
    ("tokenizers", "", HuggingFace),
    ("cryptography", "", lambda folder: make_keys(folder / "key")),
    ("tflite", "compiler.front.tflite", lambda folder: open_model("x.tflite")),
    ("llvmlite", "compiler.targets.cpu", lambda folder: find_target("cpu")),
    ("pyopencl", "runtime.gpu.opencl", lambda folder: open_device("opencl")),
    ("wgpu", "runtime.gpu.webgpu", lambda folder: open_device("webgpu")),
    ("serial", "runtime.board", lambda folder: open_device("board:ulx3s@/dev/none")),
    ("amaranth_boards", "", board),
)
"""A package, the part of Dovetail that imports it at its head, and what asks for it."""


def said(place: int, folder: Path) -> str:
    """The error of a case; in a process of its own, as modules are forgotten."""
    package, part, ask = CASES[place]
    for name in list(sys.modules):
        if name.split(".")[0] == package or (part and f"{name}.".startswith(f"dovetail.{part}.")):
            del sys.modules[name]
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        return f"nothing, but {ask(folder)}"
    except DovetailError as error:
        return str(error)


@pytest.mark.parametrize("place", range(len(CASES)), ids=[case[0] for case in CASES])
def test_a_missing_package_is_named_with_its_extra(place: int, tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        text = pool.apply(said, (place, tmp_path))
    package = CASES[place][0]
    assert package in text.lower()
    (extra,) = re.findall(r"pip install 'dovetail\[(\w+)\]'", text)
    named = [re.split(r"[^\w-]", each)[0].replace("-", "_") for each in EXTRAS[extra]]
    assert DISTRIBUTIONS.get(package, package) in named


def test_each_device_names_an_extra_there_is() -> None:
    assert {each.extra for each in DEVICES.values()} <= EXTRAS.keys()
