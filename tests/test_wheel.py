"""The wheel: all that the package needs without the repository, ``import dovetail`` first."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions
from dovetail.runtime import run
from dovetail.simulator_code import write

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("isa", "vta_hw", "vta_sim", "runtime", "bitstreams", "compiler", "package")
LEFT_OUT = {"report.json", "README.md"}
MADE = {".pyc", ".code"}
"""Files beside the sources that only the repository needs."""

LEAN = """
import sys
sys.modules["llvmlite"] = None
import dovetail, numpy as np
assert dovetail.__file__.startswith(sys.argv[1]), dovetail.__file__
image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
with open("own.toml", "w") as file:
    file.write('base = "tiny"\\nact_depth = 4096\\n')
options = dovetail.CompileOptions(effort=0.02)
result = dovetail.run(dovetail.compile(sys.argv[2], "vta:own.toml", options), image)
print(result.cycles, *result.outputs["logits"].view(np.int32).flat)
try:
    dovetail.compile(sys.argv[2], "cpu")
except dovetail.DovetailError as error:
    assert "pip install 'dovetail[cpu]'" in str(error), error
else:
    raise AssertionError("compiled for the CPU without LLVM")
"""
"""Without LLVM: the simulator's machine code is the wheel's."""

USED = """
import sys
import dovetail
assert "numpy" not in sys.modules
assert dovetail.__file__.startswith(sys.argv[1]), dovetail.__file__
assert sorted(dir(dovetail)) == sorted(dovetail.__all__)
import numpy as np
from dovetail.compiler.explore.clock import load_clock_model
path, image = sys.argv[2], np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
module = dovetail.compile(path, "vta:tiny", dovetail.CompileOptions(effort=0.02))
module.save(__import__("pathlib").Path("digits.dvt"))
with dovetail.Session("digits.dvt", device="sim") as session:
    (logits,) = session.run(["logits"], {"image": image})
    (same,) = session.run(None, image)
    assert (session.run(image).outputs["logits"] == logits).all() and (same == logits).all()
(expected,) = dovetail.Session(dovetail.compile(path, "cpu")).run(None, image)
assert (logits == expected).all()
assert isinstance(dovetail.find_config("tiny"), dovetail.HardwareConfig)
try:
    dovetail.find_config("huge")
except dovetail.DovetailError:
    print(len(load_clock_model("ECP5").records))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, made from a copy: nothing is left in the repository."""
    if int(metadata.version("setuptools").split(".")[0]) < 77:
        pytest.skip("needs setuptools 77")
    place = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        kept_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, place / "source" / name, ignore=kept_out)
    write(place / "source" / "vta_sim" / "native", lanes=(4,))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place / "source")
    code = f"from setuptools.build_meta import build_wheel; build_wheel({str(place)!r})"
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, cwd=place / "source", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place / "unpacked")
    return place / "unpacked"


def test_every_file_of_the_sources_is_in_it(unpacked: Path) -> None:
    for name in SOURCES:
        for path in (ROOT / name).rglob("*"):
            if path.is_file() and path.suffix not in MADE and path.name not in LEFT_OUT:
                inside = path.relative_to(ROOT / "package" if name == "package" else ROOT)
                assert (unpacked / "dovetail" / inside).is_file(), inside
    assert (unpacked / "dovetail" / "py.typed").is_file()


def outside(code: str, unpacked: Path, model: Path, folder: Path) -> str:
    """Output of ``code`` when the package is the wheel's content."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(unpacked), str(model)],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_works_without_the_repository(
    unpacked: Path, digits_model: Path, tmp_path: Path
) -> None:
    said = outside(USED, unpacked, digits_model, tmp_path)
    assert int(said) >= len(list((ROOT / "bitstreams").glob("ulx3s-*/manifest.json")))


def test_it_compiles_and_simulates_without_llvm(
    unpacked: Path, digits_model: Path, tmp_path: Path
) -> None:
    said = outside(LEAN, unpacked, digits_model, tmp_path)
    (tmp_path / "own.toml").write_text('base = "tiny"\nact_depth = 4096\n')
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    options = CompileOptions(effort=0.02)
    result = run(compile(digits_model, f"vta:{tmp_path}/own.toml", options), image)
    logits = result.outputs["logits"].view(np.int32)
    assert said.split() == [str(result.cycles), *map(str, logits.flat)]
